"""What the operator may do, and why: every right it is given, one verb each.

The roles that `shoal install` makes are these rights and nothing else; the operator asks for the same list when it
starts, so that a missing one is a sentence instead of a surprise. Nothing here starts shells in pods or touches nodes;
Secrets are touched for languages alone that keep a key of the job's own in one, and where plugin ssh is on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from shoal.dialects.dialect import Dialect, Kin
from shoal.kube.kinds import (
    CONFIG_MAP,
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
    SECRET,
    STORAGE_CLASS,
    Kind,
)
from shoal.kube.objects import Obj
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.pod_groups import COMMAND

# Of whose pods the annotations count when a PodGroup is made for them.
OWNERS_OF_PODS = (
    REPLICA_SET, JOB,
    Kind("apps", "v1", "StatefulSet", "statefulsets", True), Kind("apps", "v1", "DaemonSet", "daemonsets", True),
)  # fmt: skip
IMPLICIT = "to create PodGroups for pods of Volcano's scheduler that name none"
VALIDATING = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
MUTATING = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
)

_COPIES = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource; `names` limits it to objects of those names."""

    group: str
    resource: str  # with its subresource: frameworks/status
    verb: str
    why: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}"


def job_rights(dialects: Iterable[Dialect]) -> list[Right]:
    """Where jobs live: in all namespaces, or in the one that is served. Each once, whoever needs it."""
    found = [right for dialect in dialects for right in _of_language(dialect)]
    return list(dict.fromkeys(found))


def _of_language(dialect: Dialect) -> list[Right]:
    kind = dialect.kind
    has_status = "status" in kind.subresources
    rights = [
        *_on(kind, _COPIES, "to see jobs"),
        *_on(kind, ("get",), "to look again after a write whose fate is unknown"),
        *_on(kind, ("delete",), "to delete jobs whose time of retention is over"),
        Right(kind.group, f"{kind.plural}/status" if has_status else kind.plural, "patch", "to keep the ledger"),
        Right(kind.group, f"{kind.plural}/finalizers", "update", "to own pods in a way that a job outlives them"),
        *_on(POD, ("create", "delete", "get", *_COPIES), "to run the tasks"),
        *_on(EVENT, ("create", "patch"), "to tell what happens"),
    ]
    rights += _of_kin(dialect)
    if dialect.anchor_name is not None:
        rights += _on(CONFIG_MAP, ("create", "delete", "get", *_COPIES), "to hold the pods of an attempt together")
        rights.append(
            Right("", "configmaps/finalizers", "update", "to own pods in a way that an attempt outlives them")
        )
    return rights


def _of_kin(dialect: Dialect) -> list[Right]:
    """Groups, companions and orders, where a language has them, and a ledger that is an annotation of the job."""
    rights: list[Right] = []
    if dialect.kin is not None:
        kind = dialect.kind
        rights += _on(kind, ("patch",), "to keep the ledger, and names of claims")
        rights += _on(POD, ("patch",), "to mark pods that the operator itself sends away")
        for child in dialect.kin.children:
            rights += _on_groups(dialect.kin) if child.kind == dialect.kin.group else _on_child(child.kind)
    if dialect.orders is not None:
        rights += _on(dialect.orders.kind, ("delete", *_COPIES), "to obey orders to jobs, once each")
    return rights


def group_rights(dialect: Dialect) -> list[Right]:
    """On the objects that stand for gangs; part of what the language needs."""
    return _on_groups(dialect.kin) if dialect.kin is not None else []


def _on_groups(kin: Kin) -> list[Right]:
    told = Right(kin.group.group, f"{kin.group.plural}/status", "patch", "to say that the pods of a gang are up")
    return [*_on_child(kin.group), *([told] if kin.answer is not None else [])]


def placing_rights(dialects: Iterable[Dialect]) -> list[Right]:
    """In the cluster: to see what the scheduler of gangs speaks of. Its objects have no namespace."""
    kins = [dialect.kin for dialect in dialects if dialect.kin is not None]
    kinds = dict.fromkeys(kind for kin in kins if kin.looks is not None for kind in kin.looks.kinds)
    return [right for kind in kinds for right in _on(kind, ("get",), "to place gangs where they were admitted to")]


def _on_child(kind: Kind) -> list[Right]:
    return _on(kind, ("create", "delete", "get", "patch", *_COPIES), "to keep what jobs own besides pods")


def lease_rights(names: Iterable[str]) -> list[Right]:
    """In the operator's own namespace. Who may create cannot be told by name."""
    limited = tuple(names)
    return [
        *_on(LEASE, ("create",), "to be the first to lead"),
        *_on(LEASE, (*_COPIES, "patch"), "to lead, and to see who does", limited),
    ]


def rival_rights(names: Iterable[str]) -> list[Right]:
    """In the whole cluster: Leases of the same name are those of other installations' schedulers."""
    return _on(
        LEASE, _COPIES, "to see whether another installation's scheduler answers for the same pods", tuple(names)
    )


def secret_rights(secret: str) -> list[Right]:
    """In the operator's own namespace: the one Secret that holds the webhook's certificate."""
    return _on(SECRET, (*_COPIES, "patch"), "to keep the webhook's certificate", (secret,))


def webhook_rights(configuration: str) -> list[Right]:
    """In the cluster: to tell the API server whom to trust."""
    why = "to tell the API server whom to trust"
    verbs = (*_COPIES, "patch")
    return [right for kind in (VALIDATING, MUTATING) for right in _on(kind, verbs, why, (configuration,))]


def neighbour_rights(dialects: Iterable[Dialect]) -> list[Right]:
    """In the cluster, for the webhook: to see what new jobs are checked against."""
    why = "to check new jobs against what else there is"
    return [right for dialect in dialects for kind in dialect.neighbours for right in _on(kind, ("list",), why)]


def queue_rights(queue: Kind) -> list[Right]:
    """In the cluster, for the webhook beside our scheduler: to see what gangs and queues are checked against."""
    return _on(queue, ("list",), "to check gangs and queues against the queues there are")


def scheduler_rights(group: Kind, queue: Kind, *, hypernodes: bool = True) -> list[Right]:
    """In the whole cluster: who places pods looks at all of them. `group` and `queue` as the cluster serves them."""
    stored = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME)
    seen = (NODE, POD, *stored, STORAGE_CLASS, PRIORITY_CLASS)
    kept = (RESOURCE_QUOTA, POD_DISRUPTION_BUDGET)
    told = f"{group.plural}/status" if "status" in group.subresources else group.plural
    rights = [
        *(right for kind in seen for right in _on(kind, _COPIES, "to know what there is room for")),
        *(right for kind in kept for right in _on(kind, _COPIES, "to keep within quotas and disruption budgets")),
        *(right for kind in stored for right in _on(kind, ("patch",), "to choose volumes for the nodes of their pods")),
        Right("", "pods/binding", "create", "to place pods"),
        Right("", "pods/status", "patch", "to say why a pod waits, and why it has to go"),
        *_on(POD, ("delete",), "to make room for those who deserve it"),
        Right("", "pods/eviction", "create", "the same, where a disruption budget has a say"),
        *_on(group, (*_COPIES, "patch"), "to know gangs, and to ask elastic ones for pods"),
        Right(group.group, told, "patch", "to say what became of a gang"),
        *_on(group, ("get", "create", "delete"), IMPLICIT),
        *_on(POD, ("get",), IMPLICIT),
        *(right for kind in (NAMESPACE, *OWNERS_OF_PODS) for right in _on(kind, ("get",), IMPLICIT)),
        *_on(queue, (*_COPIES, "create", "patch"), "to know shares, and to close queues below a closed one"),
        Right(queue.group, f"{queue.plural}/status", "patch", "to say what a queue holds"),
        *_on(COMMAND, (*_COPIES, "delete"), "to obey orders to queues, once each"),
        *_on(EVENT, ("create", "patch"), "to tell what happens"),
    ]
    if hypernodes:
        rights += _on(HYPER_NODE, _COPIES, "to know which nodes are near each other")
    return list(dict.fromkeys(rights))


def rules(rights: Iterable[Right]) -> list[Obj]:
    """The rules of a Role: verbs of the same resource together."""

    def place(right: Right) -> tuple[str, str, tuple[str, ...]]:
        return right.group, right.resource, right.names

    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(dict.fromkeys(right.verb for right in members)),
        }
        for (group, resource, names), members in groupby(sorted(rights, key=place), place)
    ]


def _on(kind: Kind, verbs: Iterable[str], why: str, names: tuple[str, ...] = ()) -> list[Right]:
    return [Right(kind.group, kind.plural, verb, why, names) for verb in verbs]
