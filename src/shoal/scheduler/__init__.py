"""The scheduler program: watch events update the planner's view, plans are made and executed.

`loop.Scheduler` is the main loop, for the embedded cluster and for Kubernetes alike. `feeding` converts watch events to
the planner's types, `carrying` binds and evicts, `telling` writes the status of pods and groups, `queues` keeps the
Queue objects. `program` is the process on an external cluster. Nothing here decides placement: that is
`shoal.scheduler.planner`, which is loaded when the loop begins and not before, because it imports numpy.
"""
