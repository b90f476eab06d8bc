"""Installs the operator's objects on a cluster, upgrades them, and removes them.

Everything is applied server-side by one field manager, so an upgrade changes the fields it set and keeps those of
others (the webhook's certificate, an administrator's label). Objects that an earlier installation of the same name
created and this one no longer contains are removed. Labels, never names, determine whether an object is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shoal.cluster.client import DeleteOptions, DeletionPropagation, PatchType
from shoal.controller_runtime.crd_installer import MANAGER, DiscoveryCluster, apply_crd
from shoal.controller_runtime.labels import INSTANCE, PART_OF
from shoal.dialects import NAMES, gang_backends, load
from shoal.dialects.gang_backends.delegate import has_gangs
from shoal.install.manifests import definitions, render, scheduler_definitions
from shoal.install.operator_deployment import DIALECTS
from shoal.install.options import InstallOptions
from shoal.install.scheduler_deployment import SCHEDULERS
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind
from shoal.kube.objects import Obj, at_path, labels_of, name_of, namespace_of
from shoal.operator.gang_scheduler_detection import AUTO, choose
from shoal.operator.job_kinds import status_model_of


class NotInstalled(Exception):
    """The cluster lacks something that the objects need; the message names it and the way out."""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What became of one object."""

    kind: str
    name: str
    action: str  # created, configured, unchanged, deleted, kept, left alone
    remark: str = ""

    def __str__(self) -> str:
        line = f"{self.kind} {self.name} {self.action}"
        return f"{line}: {self.remark}" if self.remark else line


Progress = Callable[[ApplyResult], None]


# --- installing ----------------------------------------------------------------------------------------------------


async def install(
    cluster: DiscoveryCluster, options: InstallOptions, report: Progress, *, dry_run: bool = False
) -> None:
    plain: list[str] = []
    for name in options.dialects:
        for definition in definitions((name,)):
            status = status_model_of(load(name), definition)
            standing = await apply_crd(cluster, definition, status=status, dry_run=dry_run)
            report(ApplyResult("CustomResourceDefinition", standing.name, standing.action, standing.remark))
            if not standing.has_status and standing.name == load(name).kind.resource:
                plain.append(name)
    for definition in scheduler_definitions() if options.scheduler else ():
        standing = await apply_crd(cluster, definition, dry_run=dry_run)
        report(ApplyResult("CustomResourceDefinition", standing.name, standing.action, standing.remark))
    # Chosen here, because the operator is given the rights on one gang scheduler only.
    gang_scheduler = gang_backends.NAMES[0] if options.gangScheduler == AUTO else options.gangScheduler
    if any(has_gangs(load(name)) for name in options.dialects):
        chosen = await choose(cluster, options.gangScheduler)
        report(ApplyResult("gang scheduler", chosen.backend.name, "chosen", chosen.why))
        gang_scheduler = chosen.backend.name
    options = replace(options, plainStatus=tuple(plain), gangScheduler=gang_scheduler)
    wanted = render(options)
    if options.scheduler:
        for other in await other_schedulers(cluster, options.namespace):
            report(other)
    for obj in wanted:
        report(await apply(cluster, obj, dry_run=dry_run))
    # What an earlier installation of this name has left; a namespace is never surplus.
    kept = {_identity(obj) for obj in wanted}
    for obj in reversed(await _installed_objects(cluster, options)):
        if obj["kind"] != "Namespace" and _identity(obj) not in kept:
            report(await _remove(cluster, obj, dry_run=dry_run))


async def other_schedulers(cluster: DiscoveryCluster, namespace: str) -> list[ApplyResult]:
    """Of other namespaces: one of them works, and this one waits."""
    kind = await cluster.find_kind("apps/v1", "Deployment")
    assert kind is not None  # every cluster that runs an operator has it
    found = (await cluster.list(kind, labels=SCHEDULERS)).items
    why = (
        f"it places pods of the whole cluster too, so the scheduler in {namespace} only stands by. Keep one of them: "
        "to remove the other, repeat its installation without --scheduler"
    )
    return [
        ApplyResult("Deployment", f"{namespace_of(each)}/{name_of(each)}", "is a scheduler too", why)
        for each in found
        if namespace_of(each) != namespace
    ]


async def apply(cluster: DiscoveryCluster, obj: Obj, *, dry_run: bool) -> ApplyResult:
    kind = await _kind(cluster, obj)
    if kind is None:
        raise NotInstalled(
            f"this cluster does not serve the kind {obj['kind']} of {obj['apiVersion']}. "
            f"Install its CustomResourceDefinition, or leave out the option that needs it"
        )
    name, namespace = name_of(obj), namespace_of(obj)
    before: Obj | None = None
    try:
        before = await cluster.get(kind, name, namespace)
    except ApiError as refused:
        if refused.code != 404:
            raise
    if before is not None and before["kind"] == "Namespace" and labels_of(before).get(PART_OF) != "shoal":
        return ApplyResult("Namespace", name, "left alone", "it existed before")
    try:
        after = await cluster.patch(
            kind, name, namespace,
            patch=obj, patch_type=PatchType.APPLY, field_manager=MANAGER, force=True, dry_run=dry_run,
        )  # fmt: skip
    except ApiError as refused:
        if dry_run and refused.code == 404 and namespace:  # the namespace itself was not created
            return ApplyResult(kind.kind, name, "created", "not checked: its namespace does not exist yet")
        raise
    same = before is not None and before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return ApplyResult(kind.kind, name, "created" if before is None else "unchanged" if same else "configured")


# --- removing ------------------------------------------------------------------------------------------------------


async def uninstall(
    cluster: DiscoveryCluster, options: InstallOptions, report: Progress, *, crds: bool = False, dry_run: bool = False
) -> None:
    """Everything that carries the name of this installation, the operator first. Kinds and jobs stay without `crds`."""
    found = await _installed_objects(cluster, options)
    # The dialects that it serves, from its own settings.
    containers = [each for obj in found for each in at_path(obj, "spec", "template", "spec", "containers", default=())]
    env = {each["name"]: each.get("value") or "" for container in containers for each in container.get("env") or ()}
    served = [name for name in env.get(DIALECTS, "").split(",") if name in NAMES]
    options = replace(options, dialects=tuple(dict.fromkeys((*options.dialects, *served))))
    for obj in reversed(found):
        if obj["kind"] != "Namespace":
            report(await _remove(cluster, obj, dry_run=dry_run))
    if crds:
        for definition in definitions(options.dialects):
            report(await remove_definition(cluster, name_of(definition), dry_run=dry_run))
    for obj in found:
        if obj["kind"] == "Namespace":
            report(await remove_namespace(cluster, obj, options, are_jobs_gone=crds, dry_run=dry_run))


async def remove_definition(cluster: DiscoveryCluster, name: str, *, dry_run: bool) -> ApplyResult:
    try:
        found = await cluster.get(CUSTOM_RESOURCE_DEFINITION, name)
    except ApiError as refused:
        if refused.code == 404:
            return ApplyResult("CustomResourceDefinition", name, "kept", "it does not exist")
        raise
    if labels_of(found).get(PART_OF) != "shoal":
        return ApplyResult("CustomResourceDefinition", name, "left alone", "it is not Shoal's")
    return await _remove(cluster, {**found, "kind": "CustomResourceDefinition"}, dry_run=dry_run)


async def remove_namespace(
    cluster: DiscoveryCluster, obj: Obj, options: InstallOptions, *, are_jobs_gone: bool, dry_run: bool
) -> ApplyResult:
    """A namespace takes everything in it along, so it stays while jobs live there."""
    name = name_of(obj)
    for dialect in () if are_jobs_gone else map(load, options.dialects):
        try:
            if (await cluster.list(dialect.kind, name, limit=1)).items:
                return ApplyResult("Namespace", name, "kept", f"it contains {dialect.kind.plural}")
        except ApiError as refused:
            if refused.code != 404:
                raise
    return await _remove(cluster, obj, dry_run=dry_run)


async def _remove(cluster: DiscoveryCluster, obj: Obj, *, dry_run: bool) -> ApplyResult:
    kind = await _kind(cluster, obj)
    assert kind is not None  # it was found under it
    how = DeleteOptions(propagation=DeletionPropagation.BACKGROUND, dry_run=dry_run)
    try:
        await cluster.delete(kind, name_of(obj), namespace_of(obj), how)
    except ApiError as refused:
        if refused.code != 404:
            raise
    return ApplyResult(kind.kind, name_of(obj), "deleted")


# --- finding -------------------------------------------------------------------------------------------------------


async def _installed_objects(cluster: DiscoveryCluster, options: InstallOptions) -> list[Obj]:
    """In the order in which they are applied, wherever in the cluster they are."""
    found: list[Obj] = []
    labels = f"{PART_OF}=shoal,{INSTANCE}={options.name}"
    # The kinds of everything that could have been installed, as far as this cluster serves them.
    anything = [
        *render(InstallOptions(webhook=True, serviceMonitor=True)),
        *render(InstallOptions(watchNamespace="anywhere", createNamespace=False)),
    ]
    kinds = [
        await cluster.find_kind(*kind) for kind in dict.fromkeys((obj["apiVersion"], obj["kind"]) for obj in anything)
    ]
    for kind in filter(None, kinds):
        place = options.namespace if kind.namespaced and kind.kind not in ("Role", "RoleBinding") else None
        found += (await cluster.list(kind, place, labels=labels)).items
    return found


async def _kind(cluster: DiscoveryCluster, obj: Obj) -> Kind | None:
    if obj["kind"] == NAMESPACE.kind:
        return NAMESPACE
    return await cluster.find_kind(obj["apiVersion"], obj["kind"])


def _identity(obj: Obj) -> tuple[str, str, str]:
    return str(obj["kind"]), namespace_of(obj), name_of(obj)
