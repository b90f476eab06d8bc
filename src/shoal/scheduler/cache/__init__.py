"""What the scheduler knows of the cluster, kept up to date by informer events and by the outcomes of its requests.

`scheduler_cache.SchedulerCache` is the interface: `apply` takes events, `assume` takes a plan before watches show it,
`take_changes` returns what changed for the effects. It writes the planner's `ClusterView`, which all others only read.
"""
