"""Adopts the orphans that a new job selects, before it creates pods: else it would create too many, and remove some.

Each adoption has a version. When the informer is as new as the last of them, it shows all adopted pods that still
exist, so that is the one thing to wait for.
"""

from __future__ import annotations

from shoal.cluster.client import Cluster, PatchType
from shoal.cluster.informer import Informer
from shoal.dialects.capabilities import Adoption
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, key_of, namespace_of
from shoal.kube.owners import is_controlled_by
from shoal.operator.job_cache import version_of


async def adopt_orphans(cluster: Cluster, adoption: Adoption, manifest: Obj, pods: Informer) -> None:
    """Until `pods` shows all of them as the job's."""
    labels = adoption.orphans(manifest)
    if not labels:
        return
    adopted: list[int] = []
    for pod in (await cluster.list(POD, namespace_of(manifest), labels=labels)).items:
        key, patch = key_of(pod), adoption.adopt_patch(pod, manifest)
        if patch is None:
            adopted += [version_of(pod)] if is_controlled_by(pod, manifest) else []  # already adopted
            continue
        try:
            patched = await cluster.patch(POD, key.name, key.namespace, patch=patch, patch_type=PatchType.STRATEGIC)
        except ApiError as refused:
            if refused.code not in (404, 409, 422):  # gone, another by now, or leaving
                raise
        else:
            adopted.append(version_of(patched))
    if adopted:
        await pods.wait_for_version(max(adopted))
