"""The scheduler program: watch events update the planner's view, plans are made and executed.

`scheduler.Scheduler` is the main loop, for the embedded cluster and for Kubernetes alike. `cache` converts
watch events to the planner's types, `binder` binds and evicts, `status_writer` writes the status of pods and groups,
`queue_controller` keeps the Queue objects. `manager` is the process on an external cluster. Nothing here decides
placement: that is `shoal.scheduler.planner`, which is loaded when the loop begins and not before, because it imports
numpy.
"""
