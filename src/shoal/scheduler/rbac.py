"""The rights of the scheduler, each with the reason it is needed."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.controller_runtime.rights import INFORMER_VERBS, Permission, permissions_on
from shoal.kube.kinds import (
    EVENT,
    JOB,
    LEASE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    REPLICA_SET,
    RESOURCE_QUOTA,
    STORAGE_CLASS,
    Kind,
)
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.pod_groups import COMMAND

# Of whose pods the annotations count when a PodGroup is made for them.
OWNERS_OF_PODS = (
    REPLICA_SET, JOB,
    Kind("apps", "v1", "StatefulSet", "statefulsets", True), Kind("apps", "v1", "DaemonSet", "daemonsets", True),
)  # fmt: skip


IMPLICIT = "to create PodGroups for pods of Volcano's scheduler that name none"


def conflict_rights(names: Iterable[str]) -> list[Permission]:
    """In the whole cluster: Leases of the same name are those of other installations' schedulers."""
    return permissions_on(
        LEASE, INFORMER_VERBS, "to see whether another installation's scheduler answers for the same pods", tuple(names)
    )


def queue_rights(queue: Kind) -> list[Permission]:
    """In the cluster, for the webhook beside our scheduler: to see what gangs and queues are checked against."""
    return permissions_on(queue, ("list",), "to check gangs and queues against the queues there are")


def scheduler_rights(group: Kind, queue: Kind, *, hypernodes: bool = True) -> list[Permission]:
    """In the whole cluster: who places pods looks at all of them. `group` and `queue` as the cluster serves them."""
    stored = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME)
    seen = (NODE, POD, *stored, STORAGE_CLASS, PRIORITY_CLASS)
    kept = (RESOURCE_QUOTA, POD_DISRUPTION_BUDGET)
    told = f"{group.plural}/status" if "status" in group.subresources else group.plural
    rights = [
        *(right for kind in seen for right in permissions_on(kind, INFORMER_VERBS, "to know what there is room for")),
        *permissions_on(NAMESPACE, INFORMER_VERBS, "to know which namespaces a pod's affinity selects"),
        *(
            right
            for kind in kept
            for right in permissions_on(kind, INFORMER_VERBS, "to keep within quotas and disruption budgets")
        ),
        *(
            right
            for kind in stored
            for right in permissions_on(kind, ("patch",), "to choose volumes for the nodes of their pods")
        ),
        Permission("", "pods/binding", "create", "to place pods"),
        Permission("", "pods/status", "patch", "to say why a pod waits, and why it has to go"),
        *permissions_on(POD, ("delete",), "to make room for those who deserve it"),
        Permission("", "pods/eviction", "create", "the same, where a disruption budget has a say"),
        *permissions_on(group, (*INFORMER_VERBS, "patch"), "to know gangs, and to ask elastic ones for pods"),
        Permission(group.group, told, "patch", "to say what became of a gang"),
        *permissions_on(group, ("get", "create", "delete"), IMPLICIT),
        *permissions_on(POD, ("get",), IMPLICIT),
        *(right for kind in (NAMESPACE, *OWNERS_OF_PODS) for right in permissions_on(kind, ("get",), IMPLICIT)),
        *permissions_on(
            queue, (*INFORMER_VERBS, "create", "patch"), "to know shares, and to close queues below a closed one"
        ),
        Permission(queue.group, f"{queue.plural}/status", "patch", "to say what a queue holds"),
        *permissions_on(COMMAND, (*INFORMER_VERBS, "delete"), "to obey orders to queues, once each"),
        *permissions_on(EVENT, ("create", "patch"), "to emit Events"),
    ]
    if hypernodes:
        rights += permissions_on(HYPER_NODE, INFORMER_VERBS, "to know which nodes are near each other")
    return list(dict.fromkeys(rights))
