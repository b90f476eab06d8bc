"""The scheduler program: a cache, a cycle and effects, connected by two channels.

`scheduler.Scheduler` connects them, for the embedded cluster and for Kubernetes alike. `cache` converts watch events to
the planner's types, `cycle` runs the planner and prepares its decisions, `effects` sends the requests: binds,
evictions, volumes, and the status of pods, groups and queues. `channels` defines what passes between them. `manager` is
the process on an external cluster. Nothing here decides placement: that is `shoal.scheduler.planner`, which is loaded
when the scheduler begins and not before, because it imports numpy.
"""
