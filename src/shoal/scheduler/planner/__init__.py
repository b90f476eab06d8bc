"""Which pods run where, and why not: input a view of the cluster, output a plan with a message per decision.

A message is a code with parameters (`shoal.kube.messages`); `shoal.scheduler.messages` has the texts.

Pods, gangs, queues, preemption and topology are planned from a `ClusterView` (`planner.cluster_view`) by
`planner.plan(view, now)`; these two load numpy, so import them where the first plan is made and not where a program
starts:

    view = ClusterView(settings)
    view.set_node(...); view.set_pod(...); view.set_group(...); view.set_queue(...)   # from watches, in any order
    made = planner.plan(view, now)         # pure: the view is as before, the same view and moment give the same plan
    view.assume(made, now)                 # before executing it: no free resource is given away twice
    # bind `made.binds`, request `made.shrinks` from elastic jobs, delete `made.evictions`, write `made.groups` as
    # phases and conditions (only where changed), report `made.waits` on lone pods and
    # `plan_builder.pod_waits(made, view)` on pods of gangs

A watch event that shows what was assumed changes nothing; one that contradicts it (a bind was rejected: the pod is
still without a node) is simply set again. Plan after events, and at `made.wake_at` if nothing happens before.
"""
