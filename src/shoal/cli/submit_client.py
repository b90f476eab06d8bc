"""Sending manifests to a cluster: jobs are created, all other objects are brought to what the file specifies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import click

from shoal.cli.context import format_api_error
from shoal.cli.job_lookup import FoundJob
from shoal.cli.manifest_files import Manifest
from shoal.cluster.client import Cluster

if TYPE_CHECKING:
    from shoal.kube.errors import ApiError
    from shoal.kube.kinds import Kind
    from shoal.kube.objects import Obj


_MISTAKEN = (400, 422)  # what an API server returns for a wrong object


class DiscoveringCluster(Cluster, Protocol):
    """A cluster whose served kinds can be queried."""

    async def find_kind(self, api_version: str, kind: str) -> Kind | None: ...


async def submit(
    cluster: DiscoveringCluster,
    manifests: Sequence[Manifest],
    namespace: str,
    *,
    dry_run: bool = False,
    on_stored: Callable[[Obj], None] = lambda _: None,
) -> list[tuple[Obj, FoundJob | None]]:
    """Each object as the cluster stored it, with its language where it is a job.
    Stops at the first rejection, which lists what `shoal validate` lists. What is stored and probably not meant is
    reported on standard error."""
    from shoal.cli.lint import lint_warnings, undecodable, unknown_fields
    from shoal.dialects import dialect_of
    from shoal.kube.errors import ApiError

    made: list[tuple[Obj, FoundJob | None]] = []
    kinds = [await kind_of(cluster, manifest) for manifest in manifests]
    for manifest in manifests:
        dialect = dialect_of(manifest.api_version, manifest.kind)
        if dialect is None:
            continue
        if undecodable(dialect.kind, manifest.obj) or unknown_fields(lint_warnings(manifest, dialect.kind)):
            raise click.ClickException(_listed(manifest))
    for manifest, kind in zip(manifests, kinds, strict=True):
        dialect = dialect_of(manifest.api_version, manifest.kind)
        try:
            stored = await send(cluster, manifest, kind, namespace, is_job=dialect is not None, dry_run=dry_run)
        except ApiError as refused:
            raise click.ClickException(explain(refused, manifest)) from None
        for remark in lint_warnings(manifest, dialect.kind) if dialect is not None else ():
            click.echo(f"{manifest.where}: warning: {remark}", err=True)
        on_stored(stored)
        made.append((stored, FoundJob(stored, dialect) if dialect is not None else None))
    return made


def _listed(manifest: Manifest, refused: ApiError | None = None) -> str:
    """Everything that is wrong with it, as `shoal validate` reports it, and what this cluster alone can find."""
    from shoal.cli.offline_validation import format_result, make_machinery, validate

    verdict = validate(make_machinery(), manifest)
    return "\n".join(format_result(manifest, verdict.with_more(refused.causes if refused is not None else ())))


async def send(cluster: Cluster, manifest: Manifest, kind: Kind, namespace: str, *, is_job: bool, dry_run: bool) -> Obj:
    from shoal.cluster.client import PatchType

    meta = manifest.obj.get("metadata") or {}
    where = (meta.get("namespace") or namespace) if kind.namespaced else ""
    if is_job or not meta.get("name"):
        return await cluster.create(kind, manifest.obj, where, dry_run=dry_run)
    return await cluster.patch(
        kind, meta["name"], where,
        patch=manifest.obj, patch_type=PatchType.APPLY, field_manager="shoal", force=True, dry_run=dry_run,
    )  # fmt: skip


async def kind_of(cluster: DiscoveringCluster, manifest: Manifest) -> Kind:
    from shoal.cli.lint import kind_hint
    from shoal.dialects import dialect_of, dialects

    found = await cluster.find_kind(manifest.api_version, manifest.kind)
    if found is not None:
        return found
    is_ours = dialect_of(manifest.api_version, manifest.kind) is not None
    meant = kind_hint(manifest, (dialect.kind for dialect in dialects())) or "."
    hint = ". `shoal install` installs it, and the operator that runs such jobs." if is_ours else meant
    raise click.ClickException(
        f"{manifest.where}: this cluster does not serve the kind {manifest.kind} of {manifest.api_version}{hint}"
    )


def explain(refused: ApiError, manifest: Manifest) -> str:
    from shoal.dialects import dialect_of

    if refused.reason == "AlreadyExists":
        name = (manifest.obj.get("metadata") or {}).get("name")
        hint = f"Delete it with `shoal delete {name}`, or rename this one."
        return f"{manifest.where}: {manifest} already exists. {hint}"
    if refused.code in _MISTAKEN and dialect_of(manifest.api_version, manifest.kind) is not None:
        return _listed(manifest, refused)
    return f"{manifest.where}: {format_api_error(refused)}"
