"""Who runs where, and why not: a snapshot goes in, a plan with a sentence for each decision comes out.

This is the pod-by-pod scheduler of a small cluster: resources, node selectors, required node affinity, taints.
Groups, queues and preemption get their modules beside these; `plan` stays the one story.
"""

from shoal.scheduling.planning import Bind, Plan, Wait, plan
from shoal.scheduling.snapshot import Node, Pod, Snapshot

__all__ = ["Bind", "Node", "Plan", "Pod", "Snapshot", "Wait", "plan"]
