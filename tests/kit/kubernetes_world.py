"""Scenarios on a real Kubernetes: its API server, scheduler and controllers, and `shoal node` as its node.

Every scenario has a namespace of its own and its own operator for it, in this process; the rest is shared. A person
hears of things by watches, and two watches are not in step; but versions count through all kinds. So what happened is
put in their order at the end and held to the promises then.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from prometheus_client import CollectorRegistry

from kit.control_plane import ControlPlane
from kit.quiescence import rested
from kit.scenario import FRAMEWORK, NAMESPACE, World
from shoal.cluster.client import DeleteOptions as Deletion
from shoal.cluster.client import DeletionPropagation, LogOptions, WatchEventType
from shoal.cluster.clock import SystemClock
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.dialect import definitions_of
from shoal.dialects.framework import settings
from shoal.kube import kinds
from shoal.kube.kinds import CONFIG_MAP, POD, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj, is_terminating, name_of
from shoal.operator.dialect_registration import install
from shoal.operator.embedded import JobReconciler

WATCHED = (FRAMEWORK, POD, CONFIG_MAP)
GIVEN = "kube-root-ca.crt"  # every namespace gets it


class Moved:
    """The cluster as a scenario sees it: what it calls the default namespace is one of its own, and what it wrote has
    been heard of when the call returns."""

    def __init__(
        self, cluster: KubernetesCluster, namespace: str, heard: Callable[[Kind, Obj], Awaitable[Obj]]
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._heard = heard

    def _home(self, namespace: str) -> str:
        return self._namespace if namespace == NAMESPACE else namespace

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return await self._cluster.get(kind, name, self._home(namespace))

    async def create(self, kind: Kind, obj: Obj, namespace: str = "", **more: Any) -> Obj:
        meta = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
        made = await self._cluster.create(kind, {**obj, "metadata": meta}, self._home(namespace), **more)
        return await self._heard(kind, made)

    async def patch(self, kind: Kind, name: str, namespace: str = "", **more: Any) -> Obj:
        return await self._heard(kind, await self._cluster.patch(kind, name, self._home(namespace), **more))

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: Deletion | None = None) -> Obj:
        left = await self._cluster.delete(kind, name, self._home(namespace), options)
        return await self._heard(kind, left) if is_terminating(left) else left

    def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]:
        return self._cluster.logs(pod, self._home(namespace), options)


class Retold(World):
    """What was heard, told again in its order."""

    async def until(self, is_so: Callable[[], bool]) -> None:
        raise AssertionError("this is over")

    async def rest(self, seconds: float) -> None:
        raise AssertionError("this is over")

    def _changed(self) -> None:
        """Nobody waits."""


class KubernetesWorld(World):
    is_real = has_processes = True
    watched: tuple[Kind, ...] = WATCHED
    retold: type[World] = Retold

    def __init__(self, plane: ControlPlane, *, config: Obj | None = None) -> None:
        super().__init__()
        self._plane = plane
        self._config = self.settings(config)
        self.namespace = f"play-{secrets.token_hex(5)}"
        self._news = asyncio.Event()
        self._stack = AsyncExitStack()
        self._heard: list[tuple[int, str, str, Obj | None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._operator: asyncio.Task[None] | None = None
        self.cluster: KubernetesCluster
        self._loop: JobReconciler

    @property
    def kubeconfig(self) -> Path:
        return Path(self._plane.kubeconfig)

    def settings(self, config: Obj | None) -> Any:
        return settings(config or {}, relaxed=True)

    async def __aenter__(self) -> Self:
        connection = from_kubeconfig(self.kubeconfig)
        self.cluster = await self._stack.enter_async_context(open_client(connection))
        self.user = Moved(self.cluster, self.namespace, self._own_words)  # type: ignore[assignment]
        await install(self.cluster, definitions_of(self.dialect))
        await self.cluster.create(kinds.NAMESPACE, {"metadata": {"name": self.namespace}})
        await self._give_account()
        self._tasks = [asyncio.create_task(self._follow(kind)) for kind in self.watched]
        self.start_operator()
        return self

    async def __aexit__(self, failed: object, *_: object) -> None:
        try:
            await self.kill_operator()
            if failed is None:
                await self._hear_all()
                self._retell()
            await self.cluster.delete(
                kinds.NAMESPACE, self.namespace, options=Deletion(propagation=DeletionPropagation.BACKGROUND)
            )
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._stack.aclose()

    async def _give_account(self) -> None:
        """Pods are refused until the namespace has its default account, which a controller makes in its own time."""
        async for event in self.cluster.watch(SERVICE_ACCOUNT, self.namespace, initial_events=True):
            if event.type is not WatchEventType.BOOKMARK and name_of(event.object) == "default":
                return

    # The operator's lives

    def start_operator(self, **config: Any) -> None:
        self._config = self._config.model_copy(update=config)
        loop = JobReconciler(
            self.cluster, self.dialect,
            settings=self._config, clock=SystemClock(), metrics=Metrics(CollectorRegistry()),
            history=self.snapshots.append, namespace=self.namespace,
        )  # fmt: skip
        self._loop = loop
        self.promises.watch_steps(loop)
        self._operator = asyncio.create_task(loop.run())

    async def kill_operator(self) -> None:
        if self._operator is not None:
            self._operator.cancel()
            await asyncio.gather(self._operator, return_exceptions=True)
            self._operator = None

    async def restart_operator(self, **config: Any) -> None:
        await self.kill_operator()
        self.start_operator(**config)

    # What is heard

    async def _follow(self, kind: Kind) -> None:
        version = ""
        while True:
            async for event in self.cluster.watch(
                kind, self.namespace, resource_version=version, initial_events=not version
            ):
                version = event.resource_version
                if event.type is not WatchEventType.BOOKMARK and name_of(event.object) != GIVEN:
                    self._hear(kind, event.object, is_gone=event.type is WatchEventType.DELETED)

    def _hear(self, kind: Kind, obj: Obj, *, is_gone: bool) -> None:
        told = None if is_gone else obj
        self._heard.append((int(obj["metadata"]["resourceVersion"]), kind.resource, name_of(obj), told))
        objects = self._tables[kind.resource]
        objects.pop(name_of(obj), None)
        if told is not None:
            objects[name_of(obj)] = told
            self._record(objects, name_of(obj), told)
        self._changed()

    async def _own_words(self, kind: Kind, obj: Obj) -> Obj:
        """Wait until an answer to a write has been heard by the watches, too."""
        if kind in self.watched:
            await self._hear_until(lambda: self._last(kind).get(name_of(obj), 0) >= _version(obj))
        return obj

    def _last(self, kind: Kind) -> dict[str, int]:
        return {name: number for number, resource, name, _ in self._heard if resource == kind.resource}

    async def _hear_all(self) -> None:
        """Everything that is so now."""
        for kind in self.watched:
            page = await self.cluster.list(kind, self.namespace)
            there = {name_of(obj): _version(obj) for obj in page.items if name_of(obj) != GIVEN}
            await self._hear_until(lambda k=kind, t=there, v=int(page.resource_version): self._has_heard(k, t, v))  # type: ignore[misc]

    def _has_heard(self, kind: Kind, there: dict[str, int], version: int) -> bool:
        last, known = self._last(kind), self._tables[kind.resource]
        return all(last.get(name, 0) >= number for name, number in there.items()) and all(
            name in there or _version(obj) > version for name, obj in known.items()
        )

    def _retell(self) -> None:
        story = self.retold()
        for _, resource, name, obj in sorted(self._heard, key=lambda heard: heard[0]):
            story.wrote(resource, name, obj)
        story.promises.raise_broken()

    # Time

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Until it is so, and until all watches have told what was so then: one may be ahead of the others, and a
        Framework is heard to be over before its last pod is heard to be gone."""
        await self._hear_until(is_so)
        await self._hear_all()
        self.promises.raise_broken()

    async def _hear_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self._hear_more()

    async def rest(self, seconds: float) -> None:
        await self._hear_all()
        await rested(
            self._loop, lambda: self._tables,
            namespace=self.namespace, changed=self._changed, news=self._hear_more,
        )  # fmt: skip
        self.promises.raise_broken()

    async def _hear_more(self) -> None:
        self._news.clear()
        working = [task for task in (self._operator, *self._tasks) if task is not None]
        news = asyncio.ensure_future(self._news.wait())
        await asyncio.wait((news, *working), return_when=asyncio.FIRST_COMPLETED)
        news.cancel()
        for task in working:
            if task.done():
                task.result()

    def _changed(self) -> None:
        self._news.set()


def _version(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])
