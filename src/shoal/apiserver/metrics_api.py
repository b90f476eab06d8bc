"""Current usage of nodes and pods, as `kubectl top` requests it (metrics.k8s.io/v1beta1).

The figures come from the agents of this process at the time of the request; nothing is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime

from shoal.cluster.client import NodeServices, NodeUsage, Usage
from shoal.kube.errors import not_found
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.times import rfc3339


async def gather(nodes: Mapping[str, NodeServices]) -> dict[str, NodeUsage]:
    """Queries all nodes at once: the first query of a node takes a moment."""
    usages = await asyncio.gather(*(services.usage() for services in nodes.values()))
    return dict(zip(nodes, usages, strict=True))


def node_metrics(kind: Kind, node: Obj, usage: NodeUsage, now: datetime) -> Obj:
    return _metrics(kind, node, usage.window_seconds, now) | {"usage": _figures(usage.node)}


def pod_metrics(kind: Kind, pod: Obj, usages: Mapping[str, NodeUsage], now: datetime) -> Obj | None:
    """None where nothing is known: the pod has not started, or its node does not report."""
    usage = usages.get((pod.get("spec") or {}).get("nodeName") or "")
    containers = usage.pods.get(pod["metadata"]["uid"]) if usage else None
    if usage is None or not containers:
        return None
    listed = [{"name": name, "usage": _figures(used)} for name, used in sorted(containers.items())]
    return _metrics(kind, pod, usage.window_seconds, now) | {"containers": listed}


def missing(kind: Kind, name: str) -> Exception:
    """A node or pod that is there but has no figures reads as not found, as metrics servers have it."""
    return not_found(kind, name)


def as_list(kind: Kind, items: list[Obj]) -> Obj:
    return {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": {}, "items": items}


def _metrics(kind: Kind, obj: Obj, window_seconds: float, now: datetime) -> Obj:
    meta = obj["metadata"]
    kept = {key: meta[key] for key in ("name", "namespace", "labels") if key in meta}
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": {**kept, "creationTimestamp": rfc3339(now)},
        "timestamp": rfc3339(now),
        "window": f"{round(window_seconds, 3):g}s",
    }


def _figures(usage: Usage) -> dict[str, str]:
    return {"cpu": f"{round(usage.cpu_cores * 1e9)}n", "memory": f"{usage.memory_bytes // 1024}Ki"}
