"""A node for the simulated cluster: places pods, plays their fates on the virtual clock, and lets them go when told.

It writes what a kubelet writes: a running status with addresses, a final one with exit codes, and, for a pod that was
told to go, the last status before the pod is removed. A pod that others take away at once leaves its process behind
for as long as that process takes to go, which is why nobody should.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kit.pod_behavior import Fate, fate_of
from shoal.cluster.client import Cluster, DeleteOptions, Preconditions
from shoal.cluster.clock import Clock, sleep
from shoal.cluster.informer import Change, Informer
from shoal.dialects.framework import DIALECT
from shoal.dialects.framework.barrier import TIMED_OUT, progress
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, annotations_of, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.times import rfc3339

NODE = "node-1"
STEP_SECONDS = 0.1  # from one state of a pod to the next
NOBODY_COMPLAINS = (404, 409, 422)  # the pod has gone meanwhile


class FakeKubelet:
    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._addresses = 0
        self.running: dict[str, str] = {}  # uid of a pod with a living process -> its name
        self.step_seconds = STEP_SECONDS
        self.places = True  # pods itself, where no scheduler does
        self.is_silent = False  # the node has lost its connection: its processes run on, and nobody hears of them

    async def run(self) -> None:
        try:
            await Informer(self._cluster, POD, on_change=self._changed, clock=self._clock).run()
        finally:
            for task in (*self._lives.values(), *self._ends.values()):
                task.cancel()

    def _changed(self, change: Change) -> None:
        if change.old is not None and (change.new is None or uid_of(change.new) != uid_of(change.old)):
            self._gone(change.old)
        if change.new is not None:
            self._see(change.new)

    def _see(self, pod: Obj) -> None:
        uid = uid_of(pod)
        if uid not in self._lives and (self.places or pod["spec"].get("nodeName")):
            self._lives[uid] = asyncio.create_task(self._live(pod))
        if is_terminating(pod) and uid not in self._ends and not self.is_silent:
            self._ends[uid] = asyncio.create_task(self._end(pod))

    def _gone(self, pod: Obj) -> None:
        uid = uid_of(pod)
        if task := self._lives.pop(uid, None):
            task.cancel()
        if uid in self.running and uid not in self._ends and not self.is_silent:
            self._ends[uid] = asyncio.create_task(self._outlive(pod))

    async def _outlive(self, pod: Obj) -> None:
        await sleep(self._clock, fate_of(pod).leaves_after + self.step_seconds)
        self.running.pop(uid_of(pod), None)

    async def _live(self, pod: Obj) -> None:
        fate, uid = fate_of(pod), uid_of(pod)
        if fate.unplaced:
            return
        try:
            if not pod["spec"].get("nodeName"):
                await sleep(self._clock, self.step_seconds)
                await self._cluster.bind(name_of(pod), namespace_of(pod), node=NODE, uid=uid)
            await sleep(self._clock, self.step_seconds)
            self._addresses += 1
            address = {"podIP": f"10.0.{self._addresses // 250}.{self._addresses % 250 + 1}", "hostIP": "10.1.0.1"}
            self.running[uid] = name_of(pod)
            if fate.barrier_seconds is not None:
                await self._tell(pod, phase="Pending", **address)
                if not await self._passes_barrier(pod, fate.barrier_seconds):
                    self.running.pop(uid, None)
                    await self._tell(pod, **self._ended(pod, fate, TIMED_OUT))
                    return
            await self._tell(pod, phase="Running", **address, **self._ready(True), containerStatuses=[_runs(pod)])
            if fate.after is None:
                return
            await sleep(self._clock, fate.after)
            self.running.pop(uid, None)
            if uid not in self._ends:
                await self._tell(pod, **self._ended(pod, fate, fate.code))
        except ApiError as refused:
            if refused.code not in NOBODY_COMPLAINS:
                raise

    async def _passes_barrier(self, pod: Obj, seconds: float) -> bool:
        """What the init container does: look at the Framework whenever it changes, until all have an address."""
        over = asyncio.get_running_loop().create_future()

        def look(change: Change) -> None:
            if change.new is not None and progress(change.new).is_passed and not over.done():
                over.set_result(True)

        selected = f"metadata.name={annotations_of(pod)['FC_FRAMEWORK_NAME']}"
        copy = Informer(
            self._cluster, DIALECT.kind, namespace_of(pod), fields=selected, on_change=look, clock=self._clock
        )
        looking = asyncio.create_task(copy.run())
        timer = self._clock.call_later(seconds, lambda: over.done() or over.set_result(False))
        try:
            return bool(await over)
        finally:
            looking.cancel()
            timer.cancel()

    async def _end(self, pod: Obj) -> None:
        fate, uid = fate_of(pod), uid_of(pod)
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        in_time = fate.leaves_after <= grace
        # Nobody waits for the node where a pod is deleted by force: the node takes its time all the same.
        await sleep(self._clock, min(fate.leaves_after, grace or fate.leaves_after) + self.step_seconds)
        if life := self._lives.get(uid):
            life.cancel()
        self.running.pop(uid, None)
        try:
            if (pod.get("status") or {}).get("phase") == "Running":
                await self._tell(pod, **self._ended(pod, fate, fate.leaves_with if in_time else 137))
            now = DeleteOptions(grace_seconds=0, preconditions=Preconditions(uid=uid))
            await self._cluster.delete(POD, name_of(pod), namespace_of(pod), now)
        except ApiError as refused:
            if refused.code not in NOBODY_COMPLAINS:
                raise

    def _ended(self, pod: Obj, fate: Fate, code: int) -> dict[str, Any]:
        if fate.pod_reason:
            return {"phase": "Failed", "reason": fate.pod_reason, **self._ready(False), "containerStatuses": []}
        ended = {
            "exitCode": code,
            "reason": fate.reason or ("Error" if code else "Completed"),
            "finishedAt": rfc3339(self._clock.now()),
        }
        if fate.message:
            ended["message"] = fate.message
        status = {**_runs(pod), "ready": False, "state": {"terminated": ended}}
        return {"phase": "Failed" if code else "Succeeded", **self._ready(False), "containerStatuses": [status]}

    async def _tell(self, pod: Obj, **status: Any) -> None:
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self._cluster.patch(POD, name_of(pod), namespace_of(pod), patch=patch, subresource="status")

    def _ready(self, is_so: bool) -> Obj:
        since = rfc3339(self._clock.now())
        return {"conditions": [{"type": "Ready", "status": str(is_so), "lastTransitionTime": since}]}


def _runs(pod: Obj) -> Obj:
    name = pod["spec"]["containers"][0]["name"]
    return {
        "name": name,
        "image": "scenario",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {}},
    }
