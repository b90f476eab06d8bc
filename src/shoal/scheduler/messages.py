"""The text of every message of the scheduler and its planner, by code. The one place to change it.

A message with which something waits is `Waiting` in an Event; its cause alone is the message of a condition, whose type
says the rest. The same holds for `Evicted`. All other codes are parts of messages, grouped by their first word.
"""

from __future__ import annotations

from shoal.kube.messages import Catalog, Message

CATALOG = Catalog(
    {
        # results for a group or pod
        "Waiting": "waiting: {cause}",
        "Scheduled": "{placed} pods placed, {total} in all",
        "Scheduled.One": "1 pod placed, {total} in all",
        "Scheduled.Placed": "{count} pods are placed",
        "Scheduled.OnePlaced": "1 pod is placed",
        "Scheduled.Admitted": "the PodGroup is admitted to its queue; its pods may be created",
        "Scheduled.Finished": "the pods of the group have finished",
        "Scheduled.Pod": "Successfully assigned {pod} to {node}",
        "Evicted": "evicted: {cause}",
        "Undone": "undone: {count} of the gang's pods found no node in time after the others were bound",
        "Shrink": "shrunk by {count}: {cause}",
        # why pods are chosen for eviction
        "GivesWay": "{group} was {cause}",
        "Eviction.Preempt": "preempted by {group} of higher priority in queue {queue}",
        "Eviction.Reclaim": (
            "reclaimed for {group} in queue {queue}, because the queue of the evicted pods holds more than it deserves"
        ),
        "Eviction.Reserve": "preempted on nodes that are reserved for {group} in queue {queue}",
        # parts of many messages
        "All": "{parts:; }",
        "Pods": "{count} pods",
        "Pods.One": "1 pod",
        "Pods.More": "{count} more pods",
        "Pods.OneMore": "1 more pod",
        "Nodes": "{count} nodes",
        "Nodes.All": "all {count} nodes",
        "Nodes.One": "1 node",
        "Nodes.Only": "the only node",
        # too few pods of a gang
        "Group.Missing": "there is no PodGroup {group} yet",
        "Group.Unreadable": "PodGroup {group} cannot be read: {error}",
        "Pod.Unreadable": "this pod cannot be read: {error}",
        "Members.Missing": "{members} exist",
        "Members.Gated": "{members} are free of scheduling gates; {gated} have some",
        "Members.OneGated": "{members} are free of scheduling gates; 1 has some",
        "Members.Subgroups": "pods of {unit} exist for too few of the subgroups the gang needs at once",
        "Members.Count": "{exist} of the {least} pods the gang needs at once",
        "Members.CountOfRole": "{exist} of the {least} pods of {role} the gang needs at once",
        # resources
        "Resources.NoNode": "the cluster has no node yet",
        "Resources.Short": "needs {need} {resource}, the most free is {free} of {whole} on node {node}",
        "Resources.OnNoNode": "needs {need} {resource}, and no node that could take the pod has any",
        "Resources.Pods": "node {node} already runs as many pods as it may ({whole})",
        "Resources.Device": "needs {need} of one device, and no device has so much left",
        "Resources.InAll": (
            "needs {need} {resource}, {free} of {whole} are free, the most on one node is {most} on node {node}"
        ),
        "Resources.NoPlace": "the free nodes cannot take all pods of the gang together",
        "Resources.Leaving": "other pods on the chosen nodes must terminate first",
        "Resources.LeavingPods": "{count} pods on the chosen nodes must terminate first",
        "Resources.LeavingPod": "1 pod on the chosen nodes must terminate first",
        # places for a whole gang
        "Gang.TooFew": "needs {pods} at once, {fits} would fit, {missing} missing: {cause}",
        "Gang.TooFewOfUnit": "needs {pods} of {unit} at once, {fits} would fit, {missing} missing: {cause}",
        "Gang.Apart": "needs {pods} at once, and the free nodes cannot take all of them together",
        "Gang.Subgroup": "needs 1 whole subgroup of {unit}, and none fits",
        "Gang.Subgroups": "needs {count} whole subgroups of {unit} at once, and so many do not fit",
        "Topology.Unknown": (
            "needs {pods} near each other, and no topology of the cluster is known: create HyperNodes or set tiers"
        ),
        "Topology.NoSuchTier": (
            "needs {pods} near each other, and no tier of the topology is named {tier}: "
            "set tierName of HyperNodes to it or name another tier"
        ),
        "Topology.NoDomain": "needs {pods} in one {tier}, and no node is in any {tier}",
        "Topology.Hole": ("needs {need} {resource} in one {tier}, the most free is {free} in {tier} {domain}"),
        "Topology.Roomiest": "in {tier} {domain}, which has the most free, {cause}",
        "Topology.Full": (
            "needs {pods} in {tier} {domain}, where the other pods of the gang run, and too little is free there"
        ),
        # nodes that are excluded whatever is free on them
        "Barred.NodeAffinity": "{count} nodes do not match the pod's node affinity",
        "Barred.NodeAffinity.One": "1 node does not match the pod's node affinity",
        "Barred.NodeSelector": "{count} nodes do not match the pod's node selector",
        "Barred.NodeSelector.One": "1 node does not match the pod's node selector",
        "Barred.Volumes": "{count} nodes do not reach the pod's volumes",
        "Barred.Volumes.One": "1 node does not reach the pod's volumes",
        "Barred.Taint": "{count} nodes have the taint {taint}, which the pod does not tolerate",
        "Barred.Taint.One": "1 node has the taint {taint}, which the pod does not tolerate",
        "Barred.Cordoned": "{count} nodes are cordoned",
        "Barred.Cordoned.One": "1 node is cordoned",
        "Barred.Gone": "{count} nodes are gone",
        "Barred.Gone.One": "1 node is gone",
        "Barred.NotReady": "{count} nodes are not ready",
        "Barred.NotReady.One": "1 node is not ready",
        # nodes that rules about other pods close
        "Closed.HostPort": "host port {port} is taken on {nodes}",
        "Closed.AntiAffinity": "required pod anti-affinity to {others}, per {key}, excludes {nodes}",
        "Closed.AntiAffinityOfOthers": "required pod anti-affinity of pods there, per {key}, excludes {nodes}",
        "Closed.Affinity": "required pod affinity: no {others} in the same {key} as {nodes}",
        "Closed.AffinityNowhere": "required pod affinity: no {others} is on any node",
        "Closed.AffinityLabel": "required pod affinity needs the label {key}, which is missing on {nodes}",
        "Closed.Spread": "topology spread over {key} with maxSkew {max_skew} allows no more on {nodes}",
        "Closed.SpreadLabel": "topology spread needs the label {key}, which is missing on {nodes}",
        "Closed.Reservation": "a group that has waited longer reserves {nodes}",
        "Closed.Full": "too little is free on {nodes}",
        "Others": "pod",
        "Others.Selected": "pod with {selector}",
        "Others.InNamespaces": "{others} of {namespaces: or }",
        "Namespaces.All": "any namespace",
        "Namespaces.Named": "namespace {namespaces: or }",
        "Namespaces.Selected": "a namespace with {selector}",
        # what helps
        "Remedy.NeverFits": "the request would not fit even without other pods, so request less or add nodes",
        "Remedy.NoNodeTakesIt": "a smaller request would find no node either, so {ways:, or }",
        "Remedy.NodeSelector": "label a node or change the node selector",
        "Remedy.NodeAffinity": "label a node or change the node affinity",
        "Remedy.Taint": "tolerate a taint or remove it",
        "Remedy.Volumes": "use volumes that a node reaches",
        "Remedy.Cordoned": "uncordon a node",
        "Remedy.NotReady": "bring a node back",
        "Remedy.AddNodes": "add nodes",
        "Remedy.MoreNodes": "request less or add nodes",
        "Remedy.Guarantees": "lower the guarantees of other queues, request less, or name another queue",
        "Remedy.Capability": "raise its capability, request less, or name another queue",
        "Remedy.CapabilityAbove": (
            "raise the capability of queue {queue} above it, request less, or name another queue"
        ),
        # quotas
        "Quota.OverCluster": (
            "needs {need} {resource}, and admitted groups may request {limit} in this cluster, so {remedy}"
        ),
        "Quota.Cluster": (
            "needs {need} {resource}; admitted groups may request {limit} in this cluster and already request {used}"
        ),
        "Quota.Guaranteed": (
            "needs {need} {resource}, and of the {used} that are free {limit} are guaranteed to queue {queue}"
        ),
        "Quota.OverNamespace": (
            "needs {need} {resource}, and quota {quota} of namespace {namespace} allows {limit} in all, "
            "so request less or have the quota raised"
        ),
        "Quota.Namespace": (
            "needs {need} {resource}, and quota {quota} of namespace {namespace} allows {limit}, "
            "of which {used} are used"
        ),
        "Quota.OverQueue": "needs {need} {resource}, and queue {queue} may hold {limit} in all, so {remedy}",
        "Quota.Queue": "needs {need} {resource}, and queue {queue} may hold {limit} and already counts {used}",
        "Quota.Weight": (
            "needs {need} {resource}; by weight queue {queue} has a share of {limit} now, of which {used} are used; "
            "the share grows when other queues need less, or with more weight"
        ),
        # evictions that are not possible
        "Preemption.TooLittle": (
            "evicting all preemptible pods of lower priority in the same queue would not free enough"
        ),
        "Budget.Blocks": "the disruption budget {budget} protects pods that would be evicted",
        "Budget.Block": "the disruption budgets {budgets:, } protect pods that would be evicted",
        "Budget.MoreBlock": "the disruption budgets {budgets:, } and {more} more protect pods that would be evicted",
        "Budget.Name": "{budget} of namespace {namespace}",
        # the turn of a group in its queue
        "Turn.QueueClosed": "queue {queue} is closed; the PodGroup is admitted when the queue is opened",
        "Turn.QueueClosedToPods": "queue {queue} is closed; pods are placed again when the queue is opened",
        "Turn.TimedOut": (
            "the PodGroup was admitted, but none of its pods could be placed in time; "
            "it is not admitted again for {seconds:g} seconds"
        ),
        "Turn.Behind": "{group} is ahead in queue {queue}, which admits strictly in order",
        "Turn.JobsAhead": "{count} jobs ahead in queue {queue}",
        "Turn.JobAhead": "1 job ahead in queue {queue}",
        # volume claims
        "Claim.Missing": "the claim {claim} does not exist; create it or remove it from the pod",
        "Claim.Deleted": "the claim {claim} is being deleted",
        "Claim.VolumeMissing": "the volume {volume} of the claim {claim} does not exist",
        "Claim.Failed": "the claim {claim} got no volume and is retried soon: {error}",
        "Claim.Unbound": "the claim {claim} has no volume yet",
        "Claim.NoVolume": (
            "no free volume satisfies the claim {claim} ({size} of class {storage_class}), and no provisioner makes one"
        ),
        "Claim.Preparing": "the pod has a node, and the volume of {claims:, } is being prepared",
        # queues
        "Queue.Missing": "there is no queue {queue}; create it or name another",
        "Queue.RootStaysOpen": "queue root is above all others and cannot be closed; close the queues below it",
        "Queue.ParentClosed": "queue {queue} is below {parent}, which is closed; open {parent} first",
        "Queue.Closed": "queue {queue} is closed and admits no PodGroups; open it or name another",
        "Queue.NotALeaf": "queue {queue} has queues below it, and jobs go into those; name one of them",
        "Queue.ParentMissing": "queue {queue}: parent {parent!r} does not exist; create it first",
        "Queue.TooDeep": "queue {queue} would be more than {most} queues deep; choose a higher parent",
        "Queue.ParentRunsPods": "queue {parent} runs pods and cannot have queues below it; let them end first",
        "Queue.BelowItself": "queue {queue} would be below itself; choose another parent than {parent}",
        "Queue.AlwaysThere": "queue {queue} is always there and cannot be deleted",
        "Queue.HasChildren": "queue {queue} has queues below it ({children:, }); delete those first",
        "Queue.RunsPods": "queue {queue} runs pods; close it and let them end first",
        "Queue.BelowZero": "queue {queue}: {field} of {resource} is below zero; give zero or more",
        "Queue.OutOfOrder": (
            "queue {queue}: {low} of {resource} is {low_amount} and {high} {high_amount}; "
            "lower the first or raise the second"
        ),
        "Queue.OverParent": (
            "queue {queue} may hold {amount} {resource} and {parent} above it only {limit}; "
            "lower the first or raise the second"
        ),
        "Queue.SiblingsOverParent": (
            "the queues below {parent} would have a {field} of {amount} {resource} together, "
            "and {parent} has {limit}; lower one or raise it"
        ),
        "Queue.UnknownCommand": ("queue {queue} does not know the Command action {command}; known are {known: and }"),
        "Queue.DeservedUnused": (
            "queue {queue} has deserved resources, which counts only where sharing is by capacity"
        ),
        "Queue.GuaranteesOverCluster": "queues are guaranteed more {resource} than the cluster has",
        "Hierarchy.EmptyStep": '"{path}": every step needs a name, for example root/sci/dev',
        "Hierarchy.NotALeaf": '"{path}": queue {queue} is below it; only leaves of the hierarchy are queues',
        "Hierarchy.Weights": ('"{weights}": {count} weights for the {steps} steps of "{path}"; give one for each'),
        "Hierarchy.NotAWeight": '"{weights}": "{weight}" is not a number greater than zero',
    }
)
_LEADS = frozenset({"Waiting", "Evicted"})


def text(message: Message) -> str:
    return CATALOG.text(message)


def condition_text(message: Message) -> str:
    """As the message of a condition, whose type states already that it waits or is evicted."""
    return CATALOG.text(message.parameters["cause"] if message.code in _LEADS else message)
