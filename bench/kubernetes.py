"""The operator on a real API server with fifty hollow nodes: how fast, how much processor time, memory and requests.

Beside every line stands the same number of bare pods, made by a plain loop on the same server: what is left over is
ours. "Life" is from submission to Completed; requests are those the operator counts itself, its Lease left out. One
figure is stricter than it sounds: 5,000 tasks run when the status of their Framework says so of each. On two cores the
control plane is the bottleneck of every line, so its processor time stands beside them too.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet import (
    BARE,
    FRAMEWORK,
    JOBS,
    Cost,
    Operated,
    Servers,
    Tally,
    hollow_nodes,
    looking_on,
    make_namespaces,
    operated,
    plane,
)
from harness import Metric

from kit.framework_notation import fw, role
from kit.pod_behavior import Fate, exits, runs
from shoal.cluster.kubernetes import KubernetesCluster
from shoal.dialects.framework import DIALECT
from shoal.dialects.framework.compression import unpacked
from shoal.engine import Create, TaskRef
from shoal.engine.writes import BuildContext
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj

AT_ONCE = 64
TASKS, JOB_COUNT, LARGE = 300, 100, 5_000
WORK_SECONDS = 5.0
REST_SECONDS = 5.0


def _costs(line: str) -> list[Metric]:
    return [
        Metric(f"{line}: processor time of the operator", "s"),
        Metric(f"{line}: memory of the operator", "MB"),
        Metric(f"{line}: creates", "requests"),
        Metric(f"{line}: patches", "requests"),
        Metric(f"{line}: deletes", "requests"),
        Metric(f"{line}: reads", "requests"),
        Metric(f"{line}: processor time of the control plane", "s"),
        Metric(f"{line}: the same for the bare pods", "s"),
    ]


ONE, MANY, HUGE = "1 x 300", "100 x 3", "1 x 5,000"
METRICS = [
    Metric(f"{ONE}: submitted to all pods created", "s", 1.0),
    Metric(f"{ONE}: bare create loop", "s"),
    Metric(f"{ONE}: times the bare loop", "", 1.0 / 0.6),
    *_costs(ONE),
    Metric(f"{ONE}: processor time per pod, its life", "ms", 3),
    Metric(f"{ONE}: API writes per pod, its life", "writes", 6),
    Metric(f"{MANY}: 5 s of work, submitted to all Completed", "s", 9.0),
    Metric(f"{MANY}: bare pods to all Succeeded", "s"),
    Metric(f"{MANY}: times the bare pods", "", 9.0 / 6.5),
    *_costs(MANY),
    Metric(f"{MANY}: processor time per pod, its life", "ms", 3),
    Metric(f"{MANY}: API writes per pod, its life", "writes", 6),
    Metric("at rest for 5 s: API writes", "writes", 0),
    Metric(f"{HUGE}: submitted to all running", "s", 60),
    Metric(f"{HUGE}: bare pods to all running", "s"),
    Metric(f"{HUGE}: times the bare pods", ""),
    *_costs(HUGE),
    Metric("10,000 pods cached: memory of the operator", "MB", 300),
]


def run() -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        plane(Path(folder)) as started,
        hollow_nodes(started.kubeconfig),
    ):
        return asyncio.run(_measure(started.kubeconfig, Servers(Path(folder))))


async def _measure(kubeconfig: str, servers: Servers) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(looking_on(kubeconfig))
        await make_namespaces(cluster)
        bare = Bare(cluster, await stack.enter_async_context(Tally(cluster, POD, BARE).following()), servers)
        await bare.make("warm", TASKS, exits(0, after=0.0), until="Succeeded")
        few = await bare.make("few", TASKS, exits(0, after=WORK_SECONDS), until="Succeeded")
        shoal = await stack.enter_async_context(operated(kubeconfig))
        jobs = Jobs(
            cluster,
            shoal,
            servers,
            await stack.enter_async_context(Tally(cluster, POD, JOBS).following()),
            await stack.enter_async_context(Tally(cluster, FRAMEWORK, JOBS).following()),
        )
        figures = await jobs.one(few) | await jobs.many(few) | await jobs.at_rest()
        large = await bare.make("large", LARGE, runs(), until="Running")
        return figures | await jobs.huge(large) | await jobs.full()


@dataclass(frozen=True)
class Yardstick:
    """What bare pods took: seconds until all were made and until all were there, and what that cost the servers."""

    made: float
    there: float
    servers: float


class Bare:
    """Pods as the operator would make them, made by a loop."""

    def __init__(self, cluster: KubernetesCluster, pods: Tally, servers: Servers) -> None:
        self._cluster = cluster
        self._pods = pods
        self._servers = servers

    async def make(self, name: str, count: int, fate: Fate, *, until: str) -> Yardstick:
        """Until all are in that phase."""
        total, there = self._pods.total + count, self._pods.states[until] + count
        pods = [self._pod(name, number, fate) for number in range(count)]
        before, began = self._servers.processor_seconds(), time.monotonic()
        making = asyncio.create_task(_all(self._cluster.create(POD, pod, BARE) for pod in pods))
        await self._pods.until(lambda pods: pods.total >= total)
        made = time.monotonic() - began
        await making
        await self._pods.until(lambda pods: pods.states[until] >= there)
        return Yardstick(made, time.monotonic() - began, self._servers.processor_seconds() - before)

    def _pod(self, name: str, number: int, fate: Fate) -> Obj:
        manifest = framework(name, number + 1, fate)
        manifest["metadata"] |= {"namespace": BARE, "uid": "00000000-0000-0000-0000-000000000000"}
        pod = DIALECT.build_pod(manifest, Create(TaskRef("worker", number), BuildContext()))
        del pod["metadata"]["ownerReferences"]
        return pod


class Jobs:
    """The lines of the table, in order: each leaves its jobs behind."""

    def __init__(
        self, cluster: KubernetesCluster, shoal: Operated, servers: Servers, pods: Tally, frameworks: Tally
    ) -> None:
        self._cluster = cluster
        self._shoal = shoal
        self._servers = servers
        self._pods = pods
        self._frameworks = frameworks
        self._completed = 0

    async def one(self, bare: Yardstick) -> dict[str, float]:
        work = exits(0, after=WORK_SECONDS)
        await self._to_the_end([framework("warm", 3, exits(0, after=0.0))])
        before, began = await self._cost(), time.monotonic()
        await self._submit([framework("one", TASKS, work)])
        await self._pods.until(lambda pods: pods.total >= TASKS)
        seconds = time.monotonic() - began
        await self._ended(1)
        cost = (await self._cost()).since(before)
        figures = [seconds, bare.made, seconds / bare.made, *self._costs(cost, bare)]
        return _named(f"{ONE}:", [*figures, *_per_pod(cost)])

    async def many(self, bare: Yardstick) -> dict[str, float]:
        work = exits(0, after=WORK_SECONDS)
        before, began = await self._cost(), time.monotonic()
        await self._to_the_end([framework(f"many{number}", TASKS // JOB_COUNT, work) for number in range(JOB_COUNT)])
        seconds = time.monotonic() - began
        cost = (await self._cost()).since(before)
        figures = [seconds, bare.there, seconds / bare.there, *self._costs(cost, bare)]
        return _named(f"{MANY}:", [*figures, *_per_pod(cost)])

    async def at_rest(self) -> dict[str, float]:
        await asyncio.sleep(1.0)  # Events may still be on their way
        before = await self._cost()
        await asyncio.sleep(REST_SECONDS)
        return _named("at rest", [(await self._cost()).since(before).writes])

    async def huge(self, bare: Yardstick) -> dict[str, float]:
        before, began = await self._cost(), time.monotonic()
        await self._runs("large")
        seconds = time.monotonic() - began
        cost = (await self._cost()).since(before)
        return _named(f"{HUGE}:", [seconds, bare.there, seconds / bare.there, *self._costs(cost, bare)])

    async def full(self) -> dict[str, float]:
        await self._runs("larger")
        return _named("10,000 pods", [self._shoal.memory_megabytes])

    async def _runs(self, name: str) -> None:
        """As many more pods run, and the status of the Framework says so of each task."""
        wanted = self._pods.states["Running"] + LARGE
        await self._submit([framework(name, LARGE, runs())])
        await self._pods.until(lambda pods: pods.states["Running"] >= wanted)
        async for event in self._cluster.watch(FRAMEWORK, JOBS, fields=f"metadata.name={name}", initial_events=True):
            if event.object.get("status"):
                whole = await self._cluster.get(FRAMEWORK, name, JOBS)
                if all(state == "AttemptRunning" for state in _task_states(whole)):
                    return

    async def _to_the_end(self, frameworks: list[Obj]) -> None:
        await self._submit(frameworks)
        await self._ended(len(frameworks))

    async def _submit(self, frameworks: list[Obj]) -> None:
        await _all(self._cluster.create(FRAMEWORK, each, JOBS) for each in frameworks)

    async def _ended(self, count: int) -> None:
        self._completed += count
        await self._frameworks.until(lambda tally: tally.states["Completed"] >= self._completed)

    async def _cost(self) -> Cost:
        return await self._shoal.cost(self._servers.processor_seconds())

    def _costs(self, cost: Cost, bare: Yardstick) -> list[float]:
        requests = [cost.asked(*verbs) for verbs in (("create",), ("patch",), ("delete",), ("get", "list", "watch"))]
        return [cost.processor_seconds, self._shoal.memory_megabytes, *requests, cost.servers_seconds, bare.servers]


def _per_pod(cost: Cost) -> list[float]:
    return [cost.processor_seconds * 1000 / TASKS, cost.writes / TASKS]


def framework(name: str, tasks: int, fate: Fate) -> Obj:
    return fw(name, role("worker", tasks, fate=fate))


def _task_states(whole: Obj) -> list[str]:
    status: Any = unpacked(whole["status"])
    return [task["state"] for part in status["attemptStatus"]["taskRoleStatuses"] for task in part["taskStatuses"]]


def _named(prefix: str, figures: Iterable[float]) -> dict[str, float]:
    names = [metric.name for metric in METRICS if metric.name.startswith(prefix)]
    return dict(zip(names, figures, strict=True))


async def _all(requests: Iterable[Any]) -> None:
    """So many at once, in order."""
    waiting = iter(list(requests))

    async def one() -> None:
        for request in waiting:
            await request

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
