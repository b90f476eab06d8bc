"""Sending manifests to a cluster: jobs are created, everything beside them is brought to what the file says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import click

from shoal.cli.jobs import Found
from shoal.cli.manifests import Manifest
from shoal.cli.reaching import sentence_of
from shoal.cluster.port import Cluster

if TYPE_CHECKING:
    from shoal.kube.kinds import Kind
    from shoal.kube.objects import Obj


class Discovering(Cluster, Protocol):
    """A cluster that can be asked what it serves."""

    async def find_kind(self, api_version: str, kind: str) -> Kind | None: ...


async def submit(
    cluster: Discovering, manifests: Sequence[Manifest], namespace: str, *, dry_run: bool = False
) -> list[tuple[Obj, Found | None]]:
    """Each object as the cluster stored it, with its language where it is a job. Stops at the first refusal.

    What is probably not meant is told, on standard error, before anything is sent.
    """
    from shoal.dialects import dialect_of
    from shoal.kube.errors import ApiError

    made: list[tuple[Obj, Found | None]] = []
    kinds = [await _kind_of(cluster, manifest) for manifest in manifests]
    for manifest in manifests:
        _look_over(manifest)
    for manifest, kind in zip(manifests, kinds, strict=True):
        dialect = dialect_of(manifest.api_version, manifest.kind)
        try:
            stored = await _send(cluster, manifest, kind, namespace, is_job=dialect is not None, dry_run=dry_run)
        except ApiError as refused:
            raise click.ClickException(f"{manifest.where}: {_explained(refused, manifest)}") from None
        made.append((stored, Found(stored, dialect) if dialect is not None else None))
    return made


def _look_over(manifest: Manifest) -> None:
    """Jobs only: what is beside them is the cluster's to judge."""
    from shoal.cli.remarks import remarks, unreadable
    from shoal.dialects import dialect_of

    dialect = dialect_of(manifest.api_version, manifest.kind)
    if dialect is None:
        return
    wrong = unreadable(dialect.kind, manifest.obj)
    if wrong:
        told = "\n".join(f"  {misfit.cause()}" for misfit in wrong)
        raise click.ClickException(f"{manifest.where}: {manifest} cannot be read:\n{told}")
    for remark in remarks(manifest, dialect.kind):
        click.echo(f"{manifest.where}: warning: {remark}", err=True)


async def _send(
    cluster: Cluster, manifest: Manifest, kind: Kind, namespace: str, *, is_job: bool, dry_run: bool
) -> Obj:
    from shoal.cluster.port import PatchType

    meta = manifest.obj.get("metadata") or {}
    where = (meta.get("namespace") or namespace) if kind.namespaced else ""
    if is_job or not meta.get("name"):
        return await cluster.create(kind, manifest.obj, where, dry_run=dry_run)
    return await cluster.patch(
        kind, meta["name"], where,
        patch=manifest.obj, patch_type=PatchType.APPLY, field_manager="shoal", force=True, dry_run=dry_run,
    )  # fmt: skip


async def _kind_of(cluster: Discovering, manifest: Manifest) -> Kind:
    from shoal.cli.remarks import hint
    from shoal.dialects import dialect_of, dialects

    found = await cluster.find_kind(manifest.api_version, manifest.kind)
    if found is not None:
        return found
    is_ours = dialect_of(manifest.api_version, manifest.kind) is not None
    meant = hint(manifest, (dialect.kind for dialect in dialects())) or "."
    way_out = ". `shoal install` teaches it, and brings the operator that runs such jobs." if is_ours else meant
    raise click.ClickException(
        f"{manifest.where}: this cluster knows no kind {manifest.kind} in {manifest.api_version}{way_out}"
    )


def _explained(refused: object, manifest: Manifest) -> str:
    if getattr(refused, "reason", "") == "AlreadyExists":
        name = (manifest.obj.get("metadata") or {}).get("name")
        return f"there is a {manifest} already. Delete it with `shoal delete {name}`, or give this one another name."
    return sentence_of(refused)
