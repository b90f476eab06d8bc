"""The kinds of a job language on a cluster: installed where they are missing, used as they are where others own them.

Where the account may not read definitions, discovery decides.
"""

from __future__ import annotations

from dataclasses import replace

from shoal.controller_runtime.crd_installer import CrdUnusable, DiscoveryCluster, apply_crd
from shoal.controller_runtime.labels import with_install_labels
from shoal.dialects.capabilities import StatusSchema
from shoal.dialects.dialect import Dialect, DialectWrapper, definitions_of
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, name_of
from shoal.kube.structural_schema import kinds_of
from shoal.logs import Logger

log = Logger(__name__)


async def served(cluster: DiscoveryCluster, dialect: Dialect) -> Dialect:
    """The dialect as this cluster can serve it; `CrdUnusable` where it cannot."""
    try:
        definition = with_install_labels(definitions_of(dialect)[0])
        crd = await apply_crd(cluster, definition, status=status_model_of(dialect, definition))
    except ApiError as refused:
        if refused.code != 403:
            raise
        kind, *_ = [await _discover(cluster, dialect, each, refused) for each in definitions_of(dialect)]
        return dialect if "status" in kind.subresources else without_status(dialect)
    log.info("definition", name=crd.name, action=crd.action, remark=crd.remark)
    for other in definitions_of(dialect)[1:]:
        await _ensure_installed(cluster, dialect, other)
    return dialect if crd.has_status else without_status(dialect)


async def _ensure_installed(cluster: DiscoveryCluster, dialect: Dialect, definition: Obj) -> None:
    """Install a kind that ships with the dialect: without it no job of the dialect would be reconciled."""
    try:
        crd = await apply_crd(cluster, with_install_labels(definition))
    except ApiError as refused:
        if refused.code != 403:
            raise
        await _discover(cluster, dialect, definition, refused)
        return
    log.info("definition", name=crd.name, action=crd.action, remark=crd.remark)


def status_model_of(dialect: Dialect, definition: Obj) -> Obj | None:
    """What jobs of the language keep in their status, if that is their definition and does not say it."""
    schema = dialect.capability(StatusSchema) if name_of(definition) == dialect.kind.resource else None
    return schema.schema() if schema is not None else None


def without_status(dialect: Dialect) -> Dialect:
    """For definitions whose status is a field like any other."""
    plain = DialectWrapper(dialect)
    plain.kind = replace(dialect.kind, subresources=dialect.kind.subresources - {"status"})
    return plain


async def _discover(cluster: DiscoveryCluster, dialect: Dialect, definition: Obj, refused: ApiError) -> Kind:
    """The kind as it is served; `CrdUnusable` where it is not."""
    wanted = kinds_of(definition)[0]
    kind = await cluster.find_kind(wanted.api_version, wanted.kind)
    if kind is None:
        need = "" if wanted.resource == dialect.kind.resource else f", which {dialect.kind} needs"
        raise CrdUnusable(
            f"this cluster does not know {wanted}{need}, and this account may not define it ({refused.message}). "
            f"Let an administrator run `shoal install`, or `shoal crds | kubectl apply -f -`"
        )
    return kind
