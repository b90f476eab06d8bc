"""Who runs where, and why not: a view of the cluster goes in, a plan with a sentence for each decision comes out.

Pods, gangs, queues, preemption and topology are planned from a `ClusterView` (`shoal.scheduler.planner.cache`) by
`planner.plan(view, now)`; these two load numpy, so import them where the first plan is made and not where a program
starts:

    view = ClusterView(settings)
    view.set_node(...); view.set_pod(...); view.set_group(...); view.set_queue(...)   # from watches, in any order
    made = planner.plan(view, now)         # pure: the view is as before, the same view and moment give the same plan
    view.assume(made, now)                 # before acting on it: no hole is given away twice
    # bind `made.binds`, ask elastic jobs for `made.shrinks`, delete `made.evictions`, write `made.groups` as phases and
    # conditions (only where changed), tell lone pods `made.waits` and pods of gangs `verdicts.pod_waits(made, view)`

A watch event that shows what was assumed changes nothing; one that contradicts it (a bind was refused: the pod is still
without a node) is simply set again. Plan after events, and at `made.wake_at` if nothing happens before.
"""
