"""Roles of the operator, and their bindings: for each option exactly the rights it needs."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.controller_runtime.rights import lease_permissions, policy_rules
from shoal.dialects import NAMES, load
from shoal.dialects.gang_backends import backend
from shoal.dialects.gang_backends.delegate import has_gangs, with_backend, without_groups
from shoal.dialects.without_secrets import without_secrets
from shoal.install.options import InstallOptions, build_object
from shoal.kube.objects import Obj
from shoal.operator.rbac import (
    group_rights,
    job_rights,
    placing_rights,
    secret_rights,
    validation_rights,
    webhook_rights,
)
from shoal.scheduler.api import pod_groups
from shoal.scheduler.rbac import queue_rights

RBAC = "rbac.authorization.k8s.io"


def operator_roles(options: InstallOptions) -> Iterator[Obj]:
    yield from job_roles(options)
    gang_scheduler = backend(options.gangScheduler)
    for name in NAMES:  # for the cluster-scoped objects of gang schedulers, also where one namespace is served
        wanted = policy_rules(placing_rights([with_backend(load(name), gang_scheduler)]))
        if wanted and name in options.dialects:
            yield from bound_role(options, "ClusterRole", f"{options.name}-{name}-gangs", wanted)
    own = policy_rules(lease_permissions([f"{options.name}-{shard}" for shard in range(options.shards)]))
    if options.webhook:
        own += policy_rules(secret_rights(f"{options.name}-webhook"))
    yield from bound_role(options, "Role", options.name, own)
    if options.webhook:
        yield from webhook_roles(options)


def job_roles(options: InstallOptions) -> Iterator[Obj]:
    """What the dialects that are served need, in the whole cluster or in the one namespace that is served."""
    wanted: list[Obj] = []
    gang_scheduler = backend(options.gangScheduler)
    for name in NAMES:
        dialect = load(name)
        if name in options.dialects:
            secretless = job_rights([without_secrets(without_groups(dialect))])
            wanted += policy_rules(secretless)
            if options.sshPlugin:
                rights = job_rights([without_groups(dialect)])
                wanted += policy_rules([right for right in rights if right not in secretless])
            if has_gangs(dialect) and gang_scheduler.kind is not None:
                wanted += policy_rules(group_rights(with_backend(dialect, gang_scheduler)))
        if name in options.plainStatus:  # the status is a plain field: writing it is a patch of the job itself
            wanted.append({"apiGroups": [dialect.kind.group], "resources": [dialect.kind.plural], "verbs": ["patch"]})
    if not options.watchNamespace:
        yield from bound_role(options, "ClusterRole", options.name, wanted)
        return
    for obj in bound_role(options, "Role", f"{options.name}-jobs", wanted):
        obj["metadata"]["namespace"] = options.watchNamespace
        yield obj


def webhook_roles(options: InstallOptions) -> Iterator[Obj]:
    wanted = list(policy_rules(webhook_rights(options.name)))
    for dialect in (load(each) for each in NAMES if each in options.dialects):
        # What new jobs are checked against; queues are those of the scheduler that places the gangs.
        checked = with_backend(dialect, backend(options.gangScheduler)) if has_gangs(dialect) else dialect
        wanted += policy_rules(validation_rights([checked]))
    if options.scheduler:
        wanted += policy_rules(queue_rights(pod_groups.QUEUE))
    yield from bound_role(options, "ClusterRole", f"{options.name}-webhook", wanted)


def bound_role(
    options: InstallOptions, kind: str, name: str, wanted: list[Obj], *, account: str = ""
) -> tuple[Obj, Obj]:
    """A Role or ClusterRole, and its binding to the service account; without one, to the operator's."""
    namespaced = kind == "Role"
    role = build_object(options, f"{RBAC}/v1", kind, name, namespaced=namespaced, rules=list(wanted))
    binding = build_object(
        options, f"{RBAC}/v1", f"{kind}Binding", name,
        namespaced=namespaced,
        roleRef={"apiGroup": RBAC, "kind": kind, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": account or options.name, "namespace": options.namespace}],
    )  # fmt: skip
    return role, binding
