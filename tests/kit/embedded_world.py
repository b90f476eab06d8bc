"""Scenarios with real processes: a whole cluster in this process, as `shoal up` runs it, in a throw-away folder.

The operator cannot die alone here; `restart_operator` ends the whole cluster and starts it again on the same folder,
while the pods' processes live on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from kit.operator_faults import meddle
from kit.quiescence import rested
from kit.scenario import NAMESPACE, World
from shoal.dialects.framework import settings
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.local.cluster import ClusterConfig, RunningCluster, start_cluster
from shoal.local.data_dir import DataFolder
from shoal.node.sandbox.interface import Network
from shoal.operator.embedded import JobReconciler
from shoal.scheduler.planner.gang_types import PlannerSettings as SchedulerSettings


class RealWorld(World):
    is_real = has_processes = True

    def __init__(
        self,
        folder: Path,
        *,
        config: Obj | None = None,
        network: Network | None = None,
        capacity: Mapping[str, str] | None = None,
        nodes: int | None = None,
        scheduler: SchedulerSettings | None = None,
    ) -> None:
        """`capacity` is that of each node."""
        super().__init__()
        self._data = DataFolder(folder / "data")
        self._dialects = self.settings(config)
        self._network = network
        self._capacity = {"cpu": "64", "memory": "64Gi", **(capacity or {})}
        self._nodes = nodes
        self._scheduler = scheduler
        self._news = asyncio.Event()
        self._stack = AsyncExitStack()
        self.pod_refusal: ApiError | None = None  # how the operator is answered when it makes a pod, while it is set
        self.hidden: set[str] = set()  # uids of pods the operator never hears of
        self.hosted: RunningCluster
        self._loop: JobReconciler

    def settings(self, config: Obj | None) -> Mapping[str, Any]:
        """Of every language, by name."""
        return {"framework": settings(config or {}, relaxed=True)}

    async def __aenter__(self) -> Self:
        self._data.make()
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hosted.stop_pods()
        await self._stack.aclose()

    async def _start(self) -> None:
        config = ClusterConfig(
            capacity=self._capacity, network=self._network,
            dialects=self._dialects, on_job_loop=self._look_over,
            nodes=self._nodes, scheduler=self._scheduler,
        )  # fmt: skip
        self.hosted = await self._stack.enter_async_context(start_cluster(self._data, config))
        self.look_at(self.hosted.cluster.machinery, self.hosted.cluster)

    def _look_over(self, loop: JobReconciler) -> None:
        if loop._kind == self.dialect.kind:
            self._loop = loop
            meddle(loop, refusal=lambda: self.pod_refusal, hides=self.hidden.__contains__)
            self.promises.watch_steps(loop)

    @property
    def kubeconfig(self) -> Path:
        return self._data.kubeconfig

    async def restart_operator(self, **_: Any) -> None:
        await self.kill_operator()
        await self.start_operator()

    async def kill_operator(self) -> None:
        await self._stack.aclose()

    async def start_operator(self) -> None:
        self._stack = AsyncExitStack()
        await self._start()

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self._hear()
        self.promises.raise_broken()

    async def rest(self, seconds: float) -> None:
        await self._rested()
        self.promises.raise_broken()

    async def _rested(self) -> None:
        await rested(self._loop, lambda: self._tables, namespace=NAMESPACE, changed=self._changed, news=self._hear)

    async def _hear(self) -> None:
        self._news.clear()
        await self.hosted.wait_or_raise(self._news.wait())

    def _changed(self) -> None:
        self._news.set()
