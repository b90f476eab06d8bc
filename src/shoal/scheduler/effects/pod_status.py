"""Writes the condition PodScheduled of pods that wait, and an Event about one of each gang; only when it has changed.

A new reason is written at once, another message for the same reason within a moment: figures change with every pod that
is created or deleted, and each message is a write. An autoscaler finds only those pods Unschedulable that more nodes
would help. The group of a gang has an Event per message; users look at pods first, so one pod of each gang has it as
well. Events on all of them would be thousands of the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from shoal.cluster.client import Cluster, PatchType
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import WARNING, EventRecorder
from shoal.cluster.informer import Informer
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.conditions import POD_TOO_LARGE, TOO_LARGE, condition_of, is_true, with_condition
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj, uid_of
from shoal.kube.times import rfc3339
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.effects.events import record
from shoal.scheduler.messages import condition_text
from shoal.scheduler.planner.plan_types import Wait

COALESCE_SECONDS = 5.0  # delay of another message for the same reason
REASON_CHANGED = "the pod waits for another reason now"


class PodStatusWriter:
    def __init__(
        self,
        cluster: Cluster,
        pods: Informer,
        *,
        cache: SchedulerCache,
        recorder: EventRecorder,
        clock: Clock,
        at_once: asyncio.Semaphore,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._at_once = at_once
        self._waits: dict[Key, Wait] = {}
        # pods whose messages are Events too, and the gangs they represent
        self._gang_of_event_pod: dict[Key, Key | None] = {}
        self._event_pod_of_gang: dict[Key, Key] = {}  # the same by gang
        self._successors: set[Key] = set()  # pods that represent a gang since another left, and have no Event yet
        self._work = WorkQueue("waiting pods", self._write, clock=clock, coalesce_seconds=COALESCE_SECONDS)

    def report(self, waits: Sequence[Wait]) -> None:
        """Expects, of a gang, all pods that are to carry the message."""
        self._choose_event_pods(waits)
        for wait in waits:
            if self._cache.unreadable:
                # Where a group cannot be read, the planner has none; its pods report the group's error.
                pod = self._cache.view.pods.get(wait.pod)
                if pod is not None and pod.group in self._cache.unreadable:
                    wait = replace(wait, message=self._cache.unreadable[pod.group])
            before = self._waits.get(wait.pod)
            self._waits[wait.pod] = wait
            if before is None or (before.uid, before.reason, before.too_large) != (
                wait.uid, wait.reason, wait.too_large,
            ):  # fmt: skip
                self._work.add(wait.pod)
            elif before.message != wait.message:
                self._work.add_after_delay(wait.pod)

    def _choose_event_pods(self, waits: Sequence[Wait]) -> None:
        """The first by name of a gang whose Events no pod has yet; a later pod does not take over."""
        first: dict[Key, Key] = {}  # of each gang
        for wait in waits:
            pod = self._cache.view.pods.get(wait.pod)
            if pod is None:
                continue
            if pod.group is None:
                self._gang_of_event_pod[pod.key] = None
            elif pod.group not in self._event_pod_of_gang:
                first[pod.group] = min(first.get(pod.group, pod.key), pod.key)
        for gang, key in first.items():
            self._event_pod_of_gang[gang], self._gang_of_event_pod[key] = key, gang

    def remove(self, key: Key) -> None:
        """The pod is bound, or was deleted."""
        self._waits.pop(key, None)
        self._successors.discard(key)
        gang = self._gang_of_event_pod.pop(key, None)
        if gang is None:
            return
        del self._event_pod_of_gang[gang]
        members = self._cache.view.groups.get(gang)
        left = [key for key in members.waiting if key in self._waits] if members is not None else []
        if left:
            successor = min(left)
            self._event_pod_of_gang[gang], self._gang_of_event_pod[successor] = successor, gang
            self._successors.add(successor)
            self._work.add_after_delay(successor)  # the whole gang may be bound in a moment

    async def close(self) -> None:
        await self._work.close()

    async def _write(self, key: Key) -> None:
        wait, pod = self._waits.get(key), self._pods.objects.get(key)
        if wait is None or pod is None or uid_of(pod) != wait.uid or pod["spec"].get("nodeName"):
            return
        known = condition_of(pod, "PodScheduled") or {}
        is_known = (known.get("status"), known.get("reason"), known.get("message")) == (
            "False", wait.reason, condition_text(wait.message),
        )  # fmt: skip
        if not is_known or is_true(pod, POD_TOO_LARGE) != wait.too_large:
            now = rfc3339(self._clock.now())
            moved = known.get("lastTransitionTime") if known.get("status") == "False" else None
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": wait.reason,
                "message": condition_text(wait.message),
                "lastTransitionTime": moved or now,
            }
            status: Obj = {"conditions": [condition, *size_conditions(pod, wait, now)]}
            in_view = self._cache.view.pods.get(key)
            if in_view is not None and (node := self._cache.view.gang_of(in_view).nominated.get(key)):
                status["nominatedNodeName"] = node
            patch = {"metadata": {"uid": wait.uid}, "status": status}
            try:
                async with self._at_once:
                    await self._cluster.patch(
                        POD, key.name, key.namespace, patch=patch, patch_type=PatchType.STRATEGIC, subresource="status"
                    )
            except ApiError as refused:
                if refused.code in (404, 409):
                    return  # gone, or another pod by now
                raise
        elif key not in self._successors:
            return
        self._successors.discard(key)
        if key in self._gang_of_event_pod:
            await record(self._recorder, pod, WARNING, "FailedScheduling", wait.message)


def size_conditions(pod: Obj, wait: Wait, now: str) -> list[Obj]:
    """Whether the pod is too large for all nodes; no condition where that was never reported."""
    known = condition_of(pod, POD_TOO_LARGE)
    before = [known] if known is not None else []
    if wait.too_large:
        why = condition_text(wait.message)
        return with_condition(before, POD_TOO_LARGE, True, now=now, reason=TOO_LARGE, message=why)
    if known is None:
        return []
    return with_condition(before, POD_TOO_LARGE, "Unknown", now=now, reason="WaitsOtherwise", message=REASON_CHANGED)
