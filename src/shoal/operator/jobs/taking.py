"""Orphans that a new job selects are its own before it makes pods: else it would make too many, and remove some."""

from __future__ import annotations

from shoal.cluster.port import Cluster, PatchType
from shoal.dialects.dialect import Dialect
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj, key_of, namespace_of
from shoal.kube.owners import is_controlled_by

PATIENCE_SECONDS = 5.0  # for a copy to show what was taken; a pod may be gone before any copy showed it


async def take_orphans(cluster: Cluster, dialect: Dialect, manifest: Obj) -> list[Key]:
    """The pods that are the job's now."""
    labels = dialect.orphans(manifest) if dialect.orphans is not None else ""
    if not labels or dialect.take is None:
        return []
    taken: list[Key] = []
    for pod in (await cluster.list(POD, namespace_of(manifest), labels=labels)).items:
        key, patch = key_of(pod), dialect.take(pod, manifest)
        if patch is None:
            taken += [key] if is_controlled_by(pod, manifest) else []  # somebody was faster
            continue
        try:
            await cluster.patch(POD, key.name, key.namespace, patch=patch, patch_type=PatchType.STRATEGIC)
        except ApiError as refused:
            if refused.code not in (404, 409, 422):  # gone, another by now, or leaving
                raise
        else:
            taken.append(key)
    return taken
