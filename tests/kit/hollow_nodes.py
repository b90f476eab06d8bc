"""Hollow nodes: they take pods over the API as kubelets do, and run nothing.

For tests and measurements of everything above a node. Pods run for as long as their fate says (`kit.pod_behavior`), in
real seconds or at another `pace`; without one until they are told to go. A hollow node asks as little of the server as
a real one: a write when a pod runs, one when it has ended, one when it goes. Where no scheduler is at work, the nodes
place the pods themselves.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from kit.pod_behavior import fate_of
from shoal.cluster.client import Cluster, DeleteOptions, OutcomeUnknown, PatchType, Preconditions
from shoal.cluster.informer import Change, Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NODE, POD
from shoal.kube.objects import Obj, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.times import rfc3339

ROOM = {"cpu": "10k", "memory": "100Ti", "pods": "100k", "nvidia.com/gpu": "10k"}
AT_ONCE = 64
GONE = (404, 409, 422)  # the pod has gone meanwhile, or somebody else placed it


class HollowNodes:
    def __init__(
        self,
        cluster: Cluster,
        count: int = 1,
        *,
        places: bool = True,
        prefix: str = "hollow",
        namespace: str | None = None,
        pace: float = 1.0,  # real seconds in a second of a fate
        comes_back: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`comes_back` is awaited where a request got no answer; then it is made again, as kubelets do."""
        self.names = [f"{prefix}-{number}" for number in range(count)]
        self.lived: dict[str, Obj] = {}  # every pod that ever ran here, by uid
        self._cluster = cluster
        self._places = places
        self._pace = pace
        self._comes_back = comes_back
        self._next = itertools.cycle(self.names)
        self._addresses = itertools.count(1)
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._copy = Informer(cluster, POD, namespace, on_change=self._changed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HollowNodes]:
        await asyncio.gather(*(self._register(name) for name in self.names))
        watching = asyncio.create_task(self._copy.run())
        try:
            await self._copy.synced.wait()
            yield self
        finally:
            tasks = [watching, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _register(self, name: str) -> None:
        node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
        try:
            await self._cluster.create(NODE, node)
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise
        ready = {"type": "Ready", "status": "True", "reason": "Hollow", "message": "as ready as it gets"}
        status = {"capacity": ROOM, "allocatable": ROOM, "conditions": [ready]}
        await self._cluster.patch(NODE, name, patch={"status": status}, subresource="status")
        # A new node is kept free until a controller has seen that it is ready; where there is none, we saw it.
        await self._cluster.patch(NODE, name, patch={"spec": {"taints": None}})

    def _changed(self, change: Change) -> None:
        if change.old is not None and (change.new is None or uid_of(change.new) != uid_of(change.old)):
            self._forget(uid_of(change.old))
        pod = change.new
        if pod is None:
            return
        node = pod["spec"].get("nodeName")
        if node is None and self._places and not is_terminating(pod):
            self._once("place", pod, self._place)
        elif node in self.names:
            self._once("live", pod, self._live)
            if is_terminating(pod):
                self._once("leave", pod, self._leave)

    def _once(self, what: str, pod: Obj, work: Callable[[Obj], Awaitable[None]]) -> None:
        key = (what, uid_of(pod))
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._quietly(work, pod))

    def _forget(self, uid: str) -> None:
        for what in ("place", "live", "leave"):
            task = self._tasks.pop((what, uid), None)
            if task is not None:
                task.cancel()

    async def _quietly(self, work: Callable[[Obj], Awaitable[None]], pod: Obj) -> None:
        try:
            await work(pod)
        except ApiError as refused:
            if refused.code not in GONE:
                raise

    async def _place(self, pod: Obj) -> None:
        if fate_of(pod).unplaced:
            return
        node = next(self._next)
        await self._ask(lambda: self._cluster.bind(name_of(pod), namespace_of(pod), node=node, uid=uid_of(pod)))

    async def _live(self, pod: Obj) -> None:
        fate = fate_of(pod)
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return
        number = next(self._addresses)
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        self.lived[uid_of(pod)] = pod
        await self._tell(
            pod, phase="Running", podIP=address, podIPs=[{"ip": address}], hostIP="10.255.0.1",
            conditions=[{"type": "Ready", "status": "True"}], containerStatuses=_containers(pod, {"running": {}}),
        )  # fmt: skip
        if fate.after is not None:
            await asyncio.sleep(fate.after * self._pace)  # the work itself
            await self._end(pod, fate.code)

    async def _leave(self, pod: Obj) -> None:
        life = self._tasks.get(("live", uid_of(pod)))
        if life is not None:
            life.cancel()
        fate = fate_of(pod)
        if fate.leaves_after:
            await asyncio.sleep(fate.leaves_after * self._pace)  # the process takes its time
        if uid_of(pod) in self.lived and (pod.get("status") or {}).get("phase") == "Running":
            await self._end(pod, fate.leaves_with)
        now = DeleteOptions(grace_seconds=0, preconditions=Preconditions(uid=uid_of(pod)))
        await self._ask(lambda: self._cluster.delete(POD, name_of(pod), namespace_of(pod), now))

    async def _end(self, pod: Obj, code: int) -> None:
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": rfc3339(datetime.now(UTC))}
        await self._tell(
            pod, phase="Failed" if code else "Succeeded", conditions=[{"type": "Ready", "status": "False"}],
            containerStatuses=_containers(pod, {"terminated": ended}),
        )  # fmt: skip

    async def _tell(self, pod: Obj, **status: Any) -> None:
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self._ask(
            lambda: self._cluster.patch(
                POD, name_of(pod), namespace_of(pod), patch=patch, patch_type=PatchType.MERGE, subresource="status"
            )
        )

    async def _ask(self, request: Callable[[], Awaitable[object]]) -> None:
        for failures in itertools.count(1):
            try:
                async with self._at_once:
                    await request()
                    return
            except (OutcomeUnknown, OSError, ApiError) as failed:
                is_refusal = isinstance(failed, ApiError) and failed.code < 500
                if self._comes_back is None or is_refusal:
                    raise
                await self._comes_back()
                await breathe(failures)


async def breathe(failures: int) -> None:
    """Before the next try after so many in a row: a server that answers badly is not pressed. Two seconds at most."""
    await asyncio.sleep(min(0.05 * 2 ** min(failures, 6), 2.0))


def _containers(pod: Obj, state: Obj) -> list[Obj]:
    return [
        {
            "name": each["name"], "image": each["image"], "imageID": "", "ready": "running" in state,
            "restartCount": 0, "state": state,
        }
        for each in pod["spec"]["containers"]
    ]  # fmt: skip
