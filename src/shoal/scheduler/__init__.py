"""The scheduler program: watches go into the planner's view, plans come out and are carried out.

`loop.Scheduler` is the story, for a cluster of our own and for Kubernetes alike. `feeding` turns what watches tell into
the planner's words, `carrying` binds and evicts, `telling` writes what pods and groups are to know, `queues` keeps the
Queue objects. `program` is the process on somebody's cluster. Nothing here decides who goes where: that is
`shoal.scheduler.planner`, which is loaded when the loop begins and not before, because it brings numpy with it.
"""
