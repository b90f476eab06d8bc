"""The gang scheduler on a real API server with a thousand hollow nodes: how fast pods get their nodes, in gangs of
several sizes, and what that costs the server.

Beside every line stands a bare loop on the same server that creates as many pods and binds them without looking: what
is missing to that is ours. The clock runs from the first pod's creation to the last one's node. Pods are created by
so many requests at once in both cases, and nothing runs on the nodes. `SHOAL_BENCH_NODES` and `SHOAL_BENCH_PODS` make
it smaller.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypedDict

from fleet import BARE, JOBS, Following, Operated, make_namespaces, plane
from harness import Metric

from kit.operators import operator
from shoal.cluster.connecting import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, opened
from shoal.cluster.kubernetes.shapes import Nameplate
from shoal.cluster.port import DeleteOptions
from shoal.cluster.reflecting import Change
from shoal.dialects.gangs import GROUP_NAME, POD_GROUP
from shoal.kube.kinds import NODE, POD
from shoal.kube.objects import Obj

NODES = int(os.environ.get("SHOAL_BENCH_NODES", "1000"))
PODS = int(os.environ.get("SHOAL_BENCH_PODS", "10000"))
AT_ONCE = 64
REST_SECONDS = 5.0  # until everything was told
ROOM = {"cpu": "64", "memory": "256Gi", "pods": str(max(110, 4 * PODS // NODES))}
SIZES = (1, 20, 500, 10_000)  # of gangs; one alone is a pod without a group
NOW = DeleteOptions(grace_seconds=0)


def _line(size: int) -> str:
    size = min(size, PODS)
    return f"{PODS // size:,} x {size:,}"


def _figures(size: int) -> list[Metric]:
    line = _line(size)
    return [
        Metric(f"{line}: pods bound a second", "pods/s"),
        Metric(f"{line}: part of the bare loop", "", 0.85, "higher"),
        Metric(f"{line}: API writes of the scheduler per pod", "writes"),
        Metric(f"{line}: longest time without a bind", "s", 0.5),
        Metric(f"{line}: processor time of the scheduler per pod", "ms"),
    ]


METRICS = [
    Metric("bare create and bind", "pods/s"),
    *(metric for size in SIZES for metric in _figures(size)),
    Metric("memory of the scheduler", "MB"),
]


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder, plane(Path(folder)) as started:
        return asyncio.run(_measure(started.kubeconfig))


async def _measure(kubeconfig: str) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            opened(from_kubeconfig(Path(kubeconfig)), shapes={POD: Glance}, answers={POD: Nameplate})
        )
        await make_namespaces(cluster)
        await _all(_register(cluster, f"hollow-{number}") for number in range(NODES))
        await Bare(cluster).make(min(PODS, 500))  # warm
        bare = await Bare(cluster).make(PODS)
        shoal = await stack.enter_async_context(scheduling(kubeconfig))
        figures = {"bare create and bind": bare}
        for size in SIZES:
            figures |= await Gangs(cluster, shoal).make(min(size, PODS), bare)
        return figures | {"memory of the scheduler": shoal.memory_megabytes}


async def _register(cluster: KubernetesCluster, name: str) -> None:
    await cluster.create(NODE, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    ready = {"type": "Ready", "status": "True", "reason": "Hollow", "message": "as ready as it gets"}
    status = {"capacity": ROOM, "allocatable": ROOM, "conditions": [ready]}
    await cluster.patch(NODE, name, patch={"status": status}, subresource="status")
    await cluster.patch(NODE, name, patch={"spec": {"taints": None}})


@asynccontextmanager
async def scheduling(kubeconfig: str) -> AsyncIterator[Operated]:
    """`shoal scheduler` as people start it."""
    async with operator(kubeconfig, "--volcano", "yes", program="scheduler") as running:
        await running.says("leading")
        yield Operated(running, f"http://127.0.0.1:{await running.port('metrics')}/metrics")


class Bare:
    """Creates pods and binds each as soon as it is there, to the next node in turn."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster
        self._nodes = itertools.cycle(f"hollow-{number}" for number in range(NODES))

    async def make(self, count: int) -> float:
        names = [f"bare-{number}" for number in range(count)]
        began = time.monotonic()
        await _all(self._place(name) for name in names)
        took = time.monotonic() - began
        await _all(self._cluster.delete(POD, name, BARE, NOW) for name in names)
        return count / took

    async def _place(self, name: str) -> None:
        await self._cluster.create(POD, _pod(name, scheduler="nobody"), BARE)
        await self._cluster.bind(name, BARE, node=next(self._nodes))


class Gangs:
    """Pods for the scheduler; their groups are there before the clock starts."""

    def __init__(self, cluster: KubernetesCluster, shoal: Operated) -> None:
        self._cluster = cluster
        self._shoal = shoal

    async def make(self, size: int, bare: float) -> dict[str, float]:
        groups = [f"gang-{number}" for number in range(PODS // size)] if size > 1 else []
        await _all(self._group(name, size) for name in groups)
        pods = [_pod(f"p-{number}", group=groups[number // size] if groups else "") for number in range(PODS)]
        async with Bound(self._cluster).following() as bound:
            before, began = await self._shoal.cost(), time.monotonic()
            making = asyncio.create_task(_all(self._cluster.create(POD, pod, JOBS) for pod in pods))
            await bound.until(lambda bound: bound.count >= len(pods))
            rate = len(pods) / (time.monotonic() - began)
            await making
        await asyncio.sleep(REST_SECONDS)
        cost = (await self._shoal.cost()).since(before)
        await self._clear(pods, groups)
        line = _line(size)
        return {
            f"{line}: pods bound a second": rate,
            f"{line}: part of the bare loop": rate / bare,
            f"{line}: API writes of the scheduler per pod": cost.writes / len(pods),
            f"{line}: longest time without a bind": bound.longest_gap,
            f"{line}: processor time of the scheduler per pod": cost.processor_seconds * 1000 / len(pods),
        }

    async def _group(self, name: str, size: int) -> None:
        await self._cluster.create(POD_GROUP, {"metadata": {"name": name}, "spec": {"minMember": size}}, JOBS)

    async def _clear(self, pods: list[Obj], groups: list[str]) -> None:
        await _all(self._cluster.delete(POD, pod["metadata"]["name"], JOBS, NOW) for pod in pods)
        await _all(self._cluster.delete(POD_GROUP, name, JOBS) for name in groups)


class Bound(Following):
    """How many pods have a node, and how long nobody got one."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        super().__init__(cluster, POD, JOBS)
        self.longest_gap = 0.0
        self.count = 0
        self._last: float | None = None

    def _changed(self, change: Change) -> None:
        if not _node(change.new) or _node(change.old):
            return
        now = time.monotonic()
        if self._last is not None:
            self.longest_gap = max(self.longest_gap, now - self._last)
        self._last = now
        self.count += 1
        self._news.set()


class _Named(TypedDict, total=False):
    name: str
    namespace: str
    uid: str
    resourceVersion: str


class _Placed(TypedDict, total=False):
    nodeName: str


class Glance(TypedDict, total=False):
    """Whoever looks on shall not be what is measured."""

    metadata: _Named
    spec: _Placed


def _node(pod: Obj | None) -> str:
    return str(((pod or {}).get("spec") or {}).get("nodeName") or "")


def _pod(name: str, *, scheduler: str = "shoal", group: str = "") -> Obj:
    requests = {"cpu": "1", "memory": "1Gi"}
    return {
        "metadata": {"name": name, "annotations": {GROUP_NAME: group} if group else {}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "hollow", "resources": {"requests": requests}}],
        },
    }


async def _all(requests: Iterable[Awaitable[object]]) -> None:
    """So many at once."""
    left = iter(requests)

    async def work() -> None:
        for request in left:
            await request

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
