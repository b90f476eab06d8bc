"""The gang scheduler on a real API server with a thousand hollow nodes: how fast pods get their nodes, in gangs of
several sizes, and what that costs the server.

Beside every line stands a bare loop on the same server that creates as many pods and binds them without looking: what
is missing to that is ours. It is taken just before the line, as machines change, with no scheduler there, and somebody
looks on at both in the same way. A gang whose pods are still being made cannot be placed: the longest time without a
bind is that of making one, or of a server that thinks. The clock runs from the first pod's creation until the last one
was seen with a node. Pods are created by so many requests at once in both cases, and nothing runs on the nodes.
`SHOAL_BENCH_NODES` and `SHOAL_BENCH_PODS` make it smaller: five runs with ten thousand pods take twenty minutes.
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

from kit.operator_process import operator
from shoal.cluster.client import DeleteOptions
from shoal.cluster.informer import Change
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.cluster.kubernetes.field_decoders import MetadataOnly
from shoal.kube.kinds import NODE, POD
from shoal.kube.objects import Obj
from shoal.scheduler.api.pod_groups import GROUP_NAME, POD_GROUP

NODES = int(os.environ.get("SHOAL_BENCH_NODES", "1000"))
PODS = int(os.environ.get("SHOAL_BENCH_PODS", "10000"))
AT_ONCE = 64
REST_SECONDS = 5.0  # until everything was told
CLEARED_AT_ONCE = 500
ROOM = {"cpu": "64", "memory": "256Gi", "pods": str(max(110, 4 * PODS // NODES))}
SIZES = (1, 20, 500, 10_000)  # of gangs; one alone is a pod without a group
NOW = DeleteOptions(grace_seconds=0)


def _line(size: int) -> str:
    size = min(size, PODS)
    return f"{PODS // size:,} x {size:,}"


def _figures(size: int) -> list[Metric]:
    line = _line(size)
    return [
        Metric(f"{line}: bare create and bind", "pods/s"),
        Metric(f"{line}: pods bound a second", "pods/s"),
        Metric(f"{line}: part of the bare loop", "", 0.85, "higher"),
        Metric(f"{line}: API writes of the scheduler per pod", "writes"),
        Metric(f"{line}: longest time without a bind", "s"),
        Metric(f"{line}: processor time of the scheduler per pod", "ms"),
    ]


METRICS = [
    *(metric for size in SIZES for metric in _figures(size)),
    Metric("memory of the scheduler", "MB"),
]


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder, plane(Path(folder)) as started:
        return asyncio.run(_measure(started.kubeconfig))


async def _measure(kubeconfig: str) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            open_client(from_kubeconfig(Path(kubeconfig)), shapes={POD: Glance}, answers={POD: MetadataOnly})
        )
        await make_namespaces(cluster)
        await _all(_register(cluster, f"hollow-{number}") for number in range(NODES))
        await Bare(cluster).make(min(PODS, 500))  # warm
        figures: dict[str, float] = {}
        memory = 0.0
        for size in (min(size, PODS) for size in SIZES):
            bare = await Bare(cluster).make(PODS)
            async with scheduling(kubeconfig) as shoal:
                figures |= {f"{_line(size)}: bare create and bind": bare}
                figures |= await Gangs(cluster, shoal).make(size, bare)
                memory = max(memory, shoal.memory_megabytes)
            await _clear(cluster, JOBS, PODS)
            await cluster.delete_collection(POD_GROUP, JOBS)
            taken = (f"{name} {value:.3g}" for name, value in figures.items() if name.startswith(_line(size)))
            print("; ".join(taken), flush=True)
        return figures | {"memory of the scheduler": memory}


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
        pods = [_pod(number, scheduler="nobody") for number in range(count)]
        async with Bound(self._cluster, BARE).following() as bound:
            began = time.monotonic()
            await _all(self._place(pod) for pod in pods)
            await bound.until(lambda bound: bound.count >= count)
            rate = count / (time.monotonic() - began)
        await _clear(self._cluster, BARE, count)
        return rate

    async def _place(self, pod: Obj) -> None:
        await self._cluster.create(POD, pod, BARE)
        await self._cluster.bind(pod["metadata"]["name"], BARE, node=next(self._nodes))


class Gangs:
    """Pods for the scheduler; their groups were let in before the clock starts, and what that cost counts."""

    def __init__(self, cluster: KubernetesCluster, shoal: Operated) -> None:
        self._cluster = cluster
        self._shoal = shoal

    async def make(self, size: int, bare: float) -> dict[str, float]:
        groups = [f"gang-{number}" for number in range(PODS // size)] if size > 1 else []
        before = await self._shoal.cost()
        async with LetIn(self._cluster).following() as let_in:
            await _all(self._group(name, size) for name in groups)
            await let_in.until(lambda let_in: let_in.count >= len(groups))
        pods = [_pod(number, group=groups[number // size] if groups else "") for number in range(PODS)]
        async with Bound(self._cluster, JOBS).following() as bound:
            began = time.monotonic()
            making = asyncio.create_task(_all(self._cluster.create(POD, pod, JOBS) for pod in pods))
            await bound.until(lambda bound: bound.count >= len(pods))
            rate = len(pods) / (time.monotonic() - began)
            await making
        await asyncio.sleep(REST_SECONDS)
        cost = (await self._shoal.cost()).since(before)
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


async def _clear(cluster: KubernetesCluster, namespace: str, count: int) -> None:
    """By the server itself, part by part: no request takes longer than it allows, and ours cost nothing."""
    parts = {_part(number) for number in range(count)}
    await _all(cluster.delete_collection(POD, namespace, labels=f"part={part}", options=NOW) for part in parts)


class LetIn(Following):
    """How many groups may have their pods made."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        super().__init__(cluster, POD_GROUP, JOBS)
        self._names: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._names)

    def _changed(self, change: Change) -> None:
        if change.new is not None and (change.new.get("status") or {}).get("phase") == "Inqueue":
            self._names.add(change.key.name)
            self._news.set()


class Bound(Following):
    """How many pods have a node, and how long nobody got one."""

    def __init__(self, cluster: KubernetesCluster, namespace: str) -> None:
        super().__init__(cluster, POD, namespace)
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


def _part(number: int) -> str:
    return str(number // CLEARED_AT_ONCE)


def _pod(number: int, *, scheduler: str = "shoal", group: str = "") -> Obj:
    requests = {"cpu": "1", "memory": "1Gi"}
    annotations = {GROUP_NAME: group} if group else {}
    return {
        "metadata": {"name": f"p-{number}", "labels": {"part": _part(number)}, "annotations": annotations},
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
