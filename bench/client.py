"""What the client of real clusters costs: processor time per created pod, per listed pod and per watched change.

The server is a real kube-apiserver with its etcd on this machine; only this process's own time is counted, so the
figures hold on a busy machine too. Creates per second are those of the server, told for comparison.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

from harness import Metric

from kit import control_plane
from shoal.cluster.client import WatchEventType
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.cluster.kubernetes.field_decoders import WithoutManagedFields
from shoal.kube.kinds import NAMESPACE, POD, SERVICE_ACCOUNT

PODS = 2_000
CREATORS = 32
METRICS = [
    Metric("processor time per created pod", "ms", 0.16),
    Metric("processor time per listed pod, all fields", "ms", 0.2),
    Metric("processor time per listed pod, without bookkeeping", "ms", 0.04),
    Metric("processor time per watched change", "ms", 0.05),
    Metric("pods created, 32 at a time", "/s", 1_000, "higher"),
]


def run() -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        control_plane.shared(Path(folder), programs=()) as plane,
    ):
        figures = asyncio.run(_measure(Path(plane.kubeconfig)))
    return dict(zip((metric.name for metric in METRICS), figures, strict=True))


async def _measure(kubeconfig: Path) -> tuple[float, ...]:
    connection = from_kubeconfig(kubeconfig)
    async with open_client(connection) as cluster, open_client(connection, shapes={POD: WithoutManagedFields}) as slim:
        namespace = await _namespace(cluster)
        await _create(cluster, namespace, "warm", 200)
        began = time.monotonic()
        created = await _spent(lambda: _create(cluster, namespace, "a", PODS))
        rate = PODS / (time.monotonic() - began)
        listed = await _spent(lambda: cluster.list(POD, namespace))
        slimmed = await _spent(lambda: slim.list(POD, namespace))
        watched = await _watch(slim, namespace, connection)
    there = PODS + 200
    return created / PODS, listed / there, slimmed / there, watched, rate


async def _namespace(cluster: KubernetesCluster) -> str:
    name = f"bench-{secrets.token_hex(4)}"
    await cluster.create(NAMESPACE, {"metadata": {"name": name}})
    await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, name)
    return name


async def _spent(work: Callable[[], Coroutine[Any, Any, object]]) -> float:
    """Milliseconds of this process's processor time."""
    before = time.process_time()
    await work()
    return (time.process_time() - before) * 1000


async def _create(cluster: KubernetesCluster, namespace: str, prefix: str, count: int) -> None:
    numbers = itertools.count()

    async def creator() -> None:
        while (number := next(numbers)) < count:
            await cluster.create(POD, _pod(f"{prefix}-{number}"), namespace)

    await asyncio.gather(*(creator() for _ in range(CREATORS)))


async def _watch(cluster: KubernetesCluster, namespace: str, connection: Any) -> float:
    """All changes are made before they are read: what is counted is the reading alone."""
    async with open_client(connection) as writer:
        version = (await writer.list(POD, namespace, limit=1)).resource_version
        await _create(writer, namespace, "w", PODS)
    before = time.process_time()
    heard = 0
    async with aclosing(cluster.watch(POD, namespace, resource_version=version)) as events:  # type: ignore[type-var]
        async for event in events:
            heard += event.type is not WatchEventType.BOOKMARK
            if heard == PODS:
                break
    return (time.process_time() - before) * 1000 / PODS


def _pod(name: str) -> dict[str, Any]:
    env = [{"name": f"VARIABLE_{number}", "value": f"value {number}"} for number in range(10)]
    container = {
        "name": "main", "image": "python:3.11", "command": ["python", "-m", "train"], "env": env,
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
    }  # fmt: skip
    labels = {f"example.com/label-{number}": f"value-{number}" for number in range(5)}
    return {
        "metadata": {"name": name, "labels": labels, "annotations": {"example.com/note": "x" * 100}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
