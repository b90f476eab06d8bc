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
    """In the whole cluster, because placing one pod depends on all others. `group` and `queue` as the cluster serves
    them."""
    stored = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME)
    seen = (NODE, POD, *stored, STORAGE_CLASS, PRIORITY_CLASS)
    kept = (RESOURCE_QUOTA, POD_DISRUPTION_BUDGET)
    status = f"{group.plural}/status" if "status" in group.subresources else group.plural
    rights = [
        *(right for kind in seen for right in permissions_on(kind, INFORMER_VERBS, "to know what fits where")),
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
        Permission("", "pods/status", "patch", "to report why a pod waits or is evicted"),
        *permissions_on(POD, ("delete",), "to evict pods"),
        Permission("", "pods/eviction", "create", "to evict pods that a disruption budget selects"),
        *permissions_on(group, (*INFORMER_VERBS, "patch"), "to watch gangs, and to reclaim pods from elastic ones"),
        Permission(group.group, status, "patch", "to report the state of gangs"),
        *permissions_on(group, ("get", "create", "delete"), IMPLICIT),
        *permissions_on(POD, ("get",), IMPLICIT),
        *(right for kind in (NAMESPACE, *OWNERS_OF_PODS) for right in permissions_on(kind, ("get",), IMPLICIT)),
        *permissions_on(
            queue, (*INFORMER_VERBS, "create", "patch"), "to know shares, and to close queues below a closed one"
        ),
        Permission(queue.group, f"{queue.plural}/status", "patch", "to report what queues hold"),
        *permissions_on(COMMAND, (*INFORMER_VERBS, "delete"), "to execute Commands for queues and delete them"),
        *permissions_on(EVENT, ("create", "patch"), "to emit Events"),
    ]
    if hypernodes:
        rights += permissions_on(HYPER_NODE, INFORMER_VERBS, "to know which nodes are near each other")
    return list(dict.fromkeys(rights))
