"""A world on a real API server whose operator is a process of its own, and whose pods live on hollow nodes.

The person in it bears a server that goes away and comes back: `answers` says whether there is one, and a test that
takes it away clears it. What is heard after such a gap is listed anew, with what went in it. What is left of a run
stays in its namespace: emptying it would cost the server more than the run did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from kit.control_plane import ControlPlane
from kit.hollow_nodes import HollowNodes, breathe
from kit.kubernetes_world import GIVEN, WATCHED, KubernetesWorld, Moved
from shoal.cluster.client import OutcomeUnknown, WatchEvent, WatchEventType
from shoal.cluster.kubernetes import KubernetesCluster
from shoal.kube import kinds
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, name_of


class OutsideWorld(KubernetesWorld):
    is_disturbed = True
    has_processes = False

    def __init__(self, plane: ControlPlane, cluster: KubernetesCluster, *, pace: float) -> None:
        super().__init__(plane)
        self.cluster = cluster
        self.user = Moved(cluster, self.namespace, self._own_words)  # type: ignore[assignment]
        self.answers = asyncio.Event()
        self.answers.set()
        self.nodes = HollowNodes(cluster, namespace=self.namespace, pace=pace, comes_back=self.answers.wait)

    async def __aenter__(self) -> OutsideWorld:
        await self.cluster.create(kinds.NAMESPACE, {"metadata": {"name": self.namespace}})
        await self._give_account()
        await self._stack.enter_async_context(self.nodes.running())
        self._tasks = [asyncio.create_task(self._follow(kind)) for kind in WATCHED]
        return self

    async def __aexit__(self, failed: object, *_: object) -> None:
        try:
            await self.kill_operator()
            if failed is None:
                await self._hear_all()
                self._retell()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._stack.aclose()

    def start_operator(self, **config: Any) -> None:
        raise AssertionError("the operator of this world is started by its test")

    async def rest(self, seconds: float) -> None:
        """Time is dear here, and tests wait for the last picture."""

    async def _follow(self, kind: Kind) -> None:
        version, failures = "", 0
        while True:
            try:
                version = await self._follow_on(kind, version)
                failures = 0
                continue
            except ApiError as refused:
                if refused.code == 410:
                    version = ""
                elif refused.code < 500:
                    raise
            except (OutcomeUnknown, OSError):
                await self.answers.wait()
            failures += 1
            await breathe(failures)

    async def _follow_on(self, kind: Kind, version: str) -> str:
        """One watch, to its end; the version to go on from."""
        arriving: list[Obj] | None = None if version else []
        events = self.cluster.watch(kind, self.namespace, resource_version=version, initial_events=not version)
        async for event in events:
            if arriving is None:
                self._hear_of(kind, event)
            elif event.type is not WatchEventType.BOOKMARK:
                arriving.append(event.object)
                continue
            elif event.ends_initial_list:
                self._hear_anew(kind, arriving, event.resource_version)
                arriving = None
            version = event.resource_version
        return version if arriving is None else ""

    def _hear_of(self, kind: Kind, event: WatchEvent) -> None:
        if event.type is not WatchEventType.BOOKMARK and name_of(event.object) != GIVEN:
            self._hear(kind, event.object, is_gone=event.type is WatchEventType.DELETED)

    def _hear_anew(self, kind: Kind, listed: Sequence[Obj], version: str) -> None:
        there = {name_of(obj) for obj in listed}
        for name, obj in list(self._tables[kind.resource].items()):
            if name not in there:
                gone = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
                self._hear(kind, gone, is_gone=True)
        for obj in listed:
            self._hear_of(kind, WatchEvent(WatchEventType.MODIFIED, obj))
