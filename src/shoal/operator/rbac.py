"""What the operator may do, and why: every right it is granted, one verb each.

The roles that `shoal install` creates are these rights and nothing else; the operator checks the same list when it
starts, so that a missing one is a message instead of a surprise. Nothing here starts shells in pods or touches nodes;
Secrets are touched only for dialects that keep a key of the job's own in one, and where plugin ssh is on.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.controller_runtime.rights import INFORMER_VERBS, Permission, permissions_on
from shoal.dialects.capabilities import ClusterValidation, DeletionMark, Gangs, JobCommands, OwnedObjects, RunOwner
from shoal.dialects.dialect import Dialect
from shoal.kube.kinds import CONFIG_MAP, EVENT, POD, SECRET, Kind

VALIDATING = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
MUTATING = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
)


def job_rights(dialects: Iterable[Dialect]) -> list[Permission]:
    """Rights where jobs live: in all namespaces, or in the one that is served. Each once, even if needed twice."""
    return list(dict.fromkeys(right for dialect in dialects for right in dialect_rights(dialect)))


def dialect_rights(dialect: Dialect) -> list[Permission]:
    kind = dialect.kind
    has_status = "status" in kind.subresources
    rights = [
        *permissions_on(kind, INFORMER_VERBS, "to see jobs"),
        *permissions_on(kind, ("get",), "to read a job again after a write without a response"),
        *permissions_on(kind, ("delete",), "to delete jobs whose time of retention is over"),
        Permission(
            kind.group, f"{kind.plural}/status" if has_status else kind.plural, "patch", "to store the job state"
        ),
        Permission(kind.group, f"{kind.plural}/finalizers", "update", "to own pods in a way that a job outlives them"),
        *permissions_on(POD, ("create", "delete", "get", *INFORMER_VERBS), "to run the tasks"),
        *permissions_on(EVENT, ("create", "patch"), "to emit Events"),
    ]
    if dialect.state_in_annotation:
        rights += permissions_on(kind, ("patch",), "to store the job state, and names of claims")
    if dialect.capability(DeletionMark) is not None:
        rights += permissions_on(POD, ("patch",), "to mark pods that the operator itself deletes")
    owned, gangs = dialect.capability(OwnedObjects), dialect.capability(Gangs)
    for child in owned.children if owned is not None else ():
        is_group = gangs is not None and child.kind == gangs.group
        rights += group_rights(dialect) if is_group else _on_child(child.kind)
    if (commands := dialect.capability(JobCommands)) is not None:
        rights += permissions_on(commands.kind, ("delete", *INFORMER_VERBS), "to execute commands for jobs, once each")
    if dialect.capability(RunOwner) is not None:
        rights += permissions_on(
            CONFIG_MAP, ("create", "delete", "get", *INFORMER_VERBS), "to hold the pods of an attempt together"
        )
        rights.append(
            Permission("", "configmaps/finalizers", "update", "to own pods in a way that an attempt outlives them")
        )
    return rights


def group_rights(dialect: Dialect) -> list[Permission]:
    """Rights on the objects that represent gangs; included in what the dialect needs."""
    gangs = dialect.capability(Gangs)
    if gangs is None:
        return []
    rights = _on_child(gangs.group)
    if gangs.acknowledges_pods:
        status = f"{gangs.group.plural}/status"
        rights.append(Permission(gangs.group.group, status, "patch", "to say that the pods of a gang are up"))
    return rights


def placing_rights(dialects: Iterable[Dialect]) -> list[Permission]:
    """In the cluster: to read what the gang scheduler refers to. Its objects have no namespace."""
    found = [gangs.cluster_lookups for dialect in dialects if (gangs := dialect.capability(Gangs)) is not None]
    kinds = dict.fromkeys(kind for lookups in found if lookups is not None for kind in lookups.kinds)
    return [
        right
        for kind in kinds
        for right in permissions_on(kind, ("get",), "to place gangs where they were admitted to")
    ]


def _on_child(kind: Kind) -> list[Permission]:
    return permissions_on(
        kind, ("create", "delete", "get", "patch", *INFORMER_VERBS), "to keep what jobs own besides pods"
    )


def secret_rights(secret: str) -> list[Permission]:
    """In the operator's own namespace: the one Secret that holds the webhook's certificate."""
    return permissions_on(SECRET, (*INFORMER_VERBS, "patch"), "to keep the webhook's certificate", (secret,))


def webhook_rights(configuration: str) -> list[Permission]:
    """Cluster-wide rights: to set which certificate the API server trusts."""
    why = "to give the API server the webhook's certificate"
    verbs = (*INFORMER_VERBS, "patch")
    return [right for kind in (VALIDATING, MUTATING) for right in permissions_on(kind, verbs, why, (configuration,))]


def validation_rights(dialects: Iterable[Dialect]) -> list[Permission]:
    """In the cluster, for the webhook: to see what new jobs are checked against."""
    why = "to check new jobs against what else there is"
    return [
        right
        for dialect in dialects
        if (checks := dialect.capability(ClusterValidation)) is not None
        for kind in checks.kinds
        for right in permissions_on(kind, ("list",), why)
    ]
