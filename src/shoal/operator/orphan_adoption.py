"""Orphans that a new job selects are its own before it makes pods: else it would make too many, and remove some.

Each taking has a version. When the copy of pods is as new as the last of them, it shows all that were taken and are
still there, so that is the one thing to wait for.
"""

from __future__ import annotations

from shoal.cluster.client import Cluster, PatchType
from shoal.dialects.capabilities import Adoption
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, key_of, namespace_of
from shoal.kube.owners import is_controlled_by
from shoal.operator.job_cache import version_of


async def adopt_orphans(cluster: Cluster, adoption: Adoption, manifest: Obj) -> int | None:
    """The version at which all of them are the job's; None where there were none."""
    labels = adoption.orphans(manifest)
    if not labels:
        return None
    taken: list[int] = []
    for pod in (await cluster.list(POD, namespace_of(manifest), labels=labels)).items:
        key, patch = key_of(pod), adoption.adopt_patch(pod, manifest)
        if patch is None:
            taken += [version_of(pod)] if is_controlled_by(pod, manifest) else []  # already adopted
            continue
        try:
            now = await cluster.patch(POD, key.name, key.namespace, patch=patch, patch_type=PatchType.STRATEGIC)
        except ApiError as refused:
            if refused.code not in (404, 409, 422):  # gone, another by now, or leaving
                raise
        else:
            taken.append(version_of(now))
    return max(taken, default=None)
