"""Live reads, where the cache of an informer may be late."""

from __future__ import annotations

from shoal.cluster.client import Cluster
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


async def find(cluster: Cluster, kind: Kind, name: str, namespace: str) -> Obj | None:
    """The object, or None where the API server has none of that name."""
    try:
        return await cluster.get(kind, name, namespace)
    except ApiError as refused:
        if refused.code == 404:
            return None
        raise
