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
        "Scheduled": "{placed} pods placed, {total} in total",
        "Scheduled.One": "1 pod placed, {total} in total",
        "Scheduled.Placed": "{count} pods are placed",
        "Scheduled.OnePlaced": "1 pod is placed",
        "Scheduled.Admitted": "the PodGroup is admitted to its queue; its pods may be created",
        "Scheduled.Finished": "the pods of the group have finished",
        "Scheduled.Pod": "Successfully assigned {pod} to {node}",
        "Evicted": "evicted: {cause}",
        "Undone": "rolled back: {count} of the gang's pods could not be placed in time after the others were bound",
        "Shrink": "shrunk by {count}: {cause}",
        # why pods are chosen for eviction
        "GivesWay": "{group} was {cause}",
        "Eviction.Preempt": "preempted by {group} of higher priority in queue {queue}",
        "Eviction.Reclaim": (
            "reclaimed for {group} in queue {queue}, because the queue of the evicted pods exceeds its deserved share"
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
        "Group.Missing": "PodGroup {group} does not exist yet",
        "Group.Unreadable": "PodGroup {group} cannot be read: {error}",
        "Pod.Unreadable": "this pod cannot be read: {error}",
        "Members.Missing": "{members} exist",
        "Members.Gated": "{members} have no scheduling gates; {gated} pods have gates",
        "Members.OneGated": "{members} have no scheduling gates; 1 pod has gates",
        "Members.Subgroups": "too few subgroups of {unit} have their pods; the gang needs them at once",
        "Members.Count": "{exist} of the {least} pods the gang needs at once",
        "Members.CountOfRole": "{exist} of the {least} pods of {role} the gang needs at once",
        # resources
        "Resources.NoNode": "the cluster has no node yet",
        "Resources.Short": "needs {need} {resource}, the most free is {free} of {whole} on node {node}",
        "Resources.OnNoNode": "needs {need} {resource}, but no node that the pod can run on has any",
        "Resources.Pods": "node {node} already runs its maximum number of pods ({whole})",
        "Resources.Device": "needs {need} of one device, but no device has that much free",
        "Resources.InAll": (
            "needs {need} {resource}, {free} of {whole} are free, the most on one node is {most} on node {node}"
        ),
        "Resources.NoPlace": "the free resources do not fit all pods of the gang at once",
        "Resources.Leaving": "other pods on the chosen nodes must terminate first",
        "Resources.LeavingPods": "{count} pods on the chosen nodes must terminate first",
        "Resources.LeavingPod": "1 pod on the chosen nodes must terminate first",
        # places for a whole gang
        "Gang.TooFew": "needs {pods} at once, {fits} would fit, {missing} missing: {cause}",
        "Gang.TooFewOfUnit": "needs {pods} of {unit} at once, {fits} would fit, {missing} missing: {cause}",
        "Gang.Apart": "needs {pods} at once, but the free resources do not fit all of them",
        "Gang.Subgroup": "needs 1 complete subgroup of {unit}, but none fits",
        "Gang.Subgroups": "needs {count} complete subgroups of {unit} at once, but fewer fit",
        "Topology.Unknown": (
            "needs {pods} in one topology domain, but the cluster has no topology: create HyperNodes or set tiers"
        ),
        "Topology.NoSuchTier": (
            "needs {pods} in one topology domain, but no tier is named {tier}: "
            "set tierName of HyperNodes to it or name another tier"
        ),
        "Topology.NoDomain": "needs {pods} in one {tier}, but no node is in any {tier}",
        "Topology.Hole": ("needs {need} {resource} in one {tier}, the most free is {free} in {tier} {domain}"),
        "Topology.Roomiest": "{tier} {domain} has the most free resources: {cause}",
        "Topology.Full": (
            "needs {pods} in {tier} {domain}, where the gang already runs, but too few resources are free there"
        ),
        # nodes that are excluded whatever is free on them
        "Barred.NodeAffinity": "{count} nodes do not match the pod's node affinity",
        "Barred.NodeAffinity.One": "1 node does not match the pod's node affinity",
        "Barred.NodeSelector": "{count} nodes do not match the pod's node selector",
        "Barred.NodeSelector.One": "1 node does not match the pod's node selector",
        "Barred.Volumes": "{count} nodes cannot access the pod's volumes",
        "Barred.Volumes.One": "1 node cannot access the pod's volumes",
        "Barred.Taint": "{count} nodes have the taint {taint}, which the pod does not tolerate",
        "Barred.Taint.One": "1 node has the taint {taint}, which the pod does not tolerate",
        "Barred.Cordoned": "{count} nodes are cordoned",
        "Barred.Cordoned.One": "1 node is cordoned",
        "Barred.Gone": "{count} nodes no longer exist",
        "Barred.Gone.One": "1 node no longer exists",
        "Barred.NotReady": "{count} nodes are not ready",
        "Barred.NotReady.One": "1 node is not ready",
        # nodes that rules about other pods close
        "Closed.HostPort": "host port {port} is taken on {nodes}",
        "Closed.AntiAffinity": "required pod anti-affinity to {others}, per {key}, excludes {nodes}",
        "Closed.AntiAffinityOfOthers": "required pod anti-affinity of running pods, per {key}, excludes {nodes}",
        "Closed.Affinity": "required pod affinity: no {others} in the same {key} as {nodes}",
        "Closed.AffinityNowhere": "required pod affinity: no {others} is on any node",
        "Closed.AffinityLabel": "required pod affinity needs the label {key}, which is missing on {nodes}",
        "Closed.Spread": "topology spread over {key} with maxSkew {max_skew} allows no more pods on {nodes}",
        "Closed.SpreadLabel": "topology spread needs the label {key}, which is missing on {nodes}",
        "Closed.Reservation": "a group that has waited longer reserves {nodes}",
        "Closed.Full": "too few resources are free on {nodes}",
        "Others": "pod",
        "Others.Selected": "pod with {selector}",
        "Others.InNamespaces": "{others} of {namespaces: or }",
        "Namespaces.All": "any namespace",
        "Namespaces.Named": "namespace {namespaces: or }",
        "Namespaces.Selected": "a namespace with {selector}",
        # what helps
        "Remedy.NeverFits": "the request would not fit even without other pods, so request less or add nodes",
        "Remedy.NoNodeTakesIt": "a smaller request would not fit on any node either, so {ways:, or }",
        "Remedy.NodeSelector": "label a node or change the node selector",
        "Remedy.NodeAffinity": "label a node or change the node affinity",
        "Remedy.Taint": "tolerate a taint or remove it",
        "Remedy.Volumes": "use volumes that a node can access",
        "Remedy.Cordoned": "uncordon a node",
        "Remedy.NotReady": "make a node ready again",
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
            "needs {need} {resource}; {used} are free, of which {limit} are guaranteed to queue {queue}"
        ),
        "Quota.OverNamespace": (
            "needs {need} {resource}, and quota {quota} of namespace {namespace} allows {limit} in total, "
            "so request less or raise the quota"
        ),
        "Quota.Namespace": (
            "needs {need} {resource}, and quota {quota} of namespace {namespace} allows {limit}, "
            "of which {used} are used"
        ),
        "Quota.OverQueue": "needs {need} {resource}, and queue {queue} may hold {limit} in total, so {remedy}",
        "Quota.Queue": "needs {need} {resource}, and queue {queue} may hold {limit}, of which {used} are taken",
        "Quota.Weight": (
            "needs {need} {resource}; by weight queue {queue} has a share of {limit} now, of which {used} are used; "
            "the share grows when other queues need less or when the weight of the queue is raised"
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
        "Claim.Failed": "binding the claim {claim} to a volume failed and is retried soon: {error}",
        "Claim.Unbound": "the claim {claim} has no volume yet",
        "Claim.NoVolume": (
            "no free volume satisfies the claim {claim} ({size} of class {storage_class}), "
            "and no provisioner creates one"
        ),
        "Claim.Preparing": "a node is assigned to the pod, and the volume of {claims:, } is being prepared",
        # queues
        "Queue.Missing": "queue {queue} does not exist; create it or name another",
        "Queue.RootStaysOpen": "queue root is the parent of all queues and cannot be closed; close the queues below it",
        "Queue.ParentClosed": "queue {queue} is below {parent}, which is closed; open {parent} first",
        "Queue.Closed": "queue {queue} is closed and admits no PodGroups; open it or name another",
        "Queue.NotALeaf": "queue {queue} has queues below it, and jobs go into those; name one of them",
        "Queue.ParentMissing": "queue {queue}: parent {parent!r} does not exist; create it first",
        "Queue.TooDeep": "queue {queue} would be more than {most} queues deep; choose a higher parent",
        "Queue.ParentRunsPods": "queue {parent} runs pods and cannot have queues below it; wait until they have ended",
        "Queue.BelowItself": "queue {queue} would be below itself; choose another parent than {parent}",
        "Queue.AlwaysThere": "queue {queue} always exists and cannot be deleted",
        "Queue.HasChildren": "queue {queue} has queues below it ({children:, }); delete those first",
        "Queue.RunsPods": "queue {queue} runs pods; close it and wait until they have ended",
        "Queue.BelowZero": "queue {queue}: {field} of {resource} is below zero; give zero or more",
        "Queue.OutOfOrder": (
            "queue {queue}: {low} of {resource} is {low_amount}, more than {high} {high_amount}; "
            "lower {low} or raise {high}"
        ),
        "Queue.OverParent": (
            "queue {queue} may hold {amount} {resource}, but {parent} above it only {limit}; "
            "lower the limit of {queue} or raise that of {parent}"
        ),
        "Queue.SiblingsOverParent": (
            "the queues below {parent} would have a {field} of {amount} {resource} in total, "
            "but {parent} has {limit}; lower one of them or raise {parent}"
        ),
        "Queue.UnknownCommand": (
            "queue {queue} does not support the Command action {command}; supported are {known: and }"
        ),
        "Queue.DeservedUnused": (
            "queue {queue} sets deserved resources, which take effect only if queues share by capacity"
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
