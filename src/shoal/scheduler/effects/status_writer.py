"""Writes the status of waiting pods and groups: conditions, phases, Events; only when it has changed.

A new reason is written at once, another message for the same reason within a moment: figures change with every pod that
is created or deleted, and each message is a write. What groups count (running, succeeded, failed) is coalesced in the
same way. One Event per message, about its subject: the group of a gang, or the pod that belongs to none. Pods of gangs
carry the message too, and an autoscaler finds only those Unschedulable that more nodes would help. Users look at pods
first, so one pod of each gang has the Event as well; all of them would be thousands of the same.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from shoal.cluster.client import Cluster, OutcomeUnknown, PatchType
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.conditions import POD_TOO_LARGE, TOO_LARGE, condition_of, is_true, with_condition
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, key_of, uid_of
from shoal.kube.times import rfc3339
from shoal.scheduler.cache.scheduler_cache import CacheUpdater
from shoal.scheduler.effects.dispatcher import Request
from shoal.scheduler.effects.events import record
from shoal.scheduler.messages import condition_text
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.planner.plan_types import GroupResult, Wait
from shoal.scheduler.planner.snapshot_types import PodState
from shoal.scheduler.scope import SchedulerScope

POD_SECONDS = 5.0  # delay of another message for the same reason
GROUP_SECONDS = 1.0
AT_ONCE = 16
QUOTA = ("quota", "order", "queue")  # not the cluster's fault: no cause for concern
REASON_CHANGED = "it waits for something else by now"


class PodStatusWriter:
    """The condition PodScheduled of pods that wait, and an Event about one of each gang."""

    def __init__(
        self,
        cluster: Cluster,
        pods: Informer,
        *,
        cache_updater: CacheUpdater,
        recorder: EventRecorder,
        clock: Clock,
        at_once: asyncio.Semaphore,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._feed = cache_updater
        self._recorder = recorder
        self._clock = clock
        self._at_once = at_once
        self._waits: dict[Key, Wait] = {}
        # pods whose messages are Events too, and the gangs they represent
        self._gang_of_event_pod: dict[Key, Key | None] = {}
        self._event_pod_of_gang: dict[Key, Key] = {}  # the same by gang
        self._owing: set[Key] = set()  # pods that took over and have not spoken yet
        self._work = WorkQueue("waiting pods", self._report, clock=clock, coalesce_seconds=POD_SECONDS)

    def report(self, waits: Sequence[Wait]) -> None:
        """Expects, of a gang, all pods that are to carry the message."""
        self._choose_event_pods(waits)
        for wait in map(self._in_full, waits) if self._feed.unreadable else waits:
            before = self._waits.get(wait.pod)
            self._waits[wait.pod] = wait
            if before is None or _status_key(before) != _status_key(wait):
                self._work.add(wait.pod)
            elif before.message != wait.message:
                self._work.add_after_delay(wait.pod)

    def remove(self, key: Key) -> None:
        """It has its place, or has gone."""
        self._waits.pop(key, None)
        self._owing.discard(key)
        gang = self._gang_of_event_pod.pop(key, None)
        if gang is not None:
            del self._event_pod_of_gang[gang]
            self._replace_event_pod(gang)

    async def close(self) -> None:
        await self._work.close()

    def _in_full(self, wait: Wait) -> Wait:
        """Where a group cannot be read, the planner has none; its pods report the group's error."""
        pod = self._feed.view.pods.get(wait.pod)
        why = self._feed.unreadable.get(pod.group) if pod is not None and pod.group is not None else None
        return wait if why is None else replace(wait, message=why)

    def _choose_event_pods(self, waits: Sequence[Wait]) -> None:
        """The first by name of a gang whose Events no pod has yet; a later pod does not take over."""
        first: dict[Key, Key] = {}  # of each gang
        for wait in waits:
            pod = self._feed.view.pods.get(wait.pod)
            if pod is None:
                continue
            if pod.group is None:
                self._gang_of_event_pod[pod.key] = None
            elif pod.group not in self._event_pod_of_gang:
                first[pod.group] = min(first.get(pod.group, pod.key), pod.key)
        for gang, key in first.items():
            self._event_pod_of_gang[gang], self._gang_of_event_pod[key] = key, gang

    def _replace_event_pod(self, gang: Key) -> None:
        """The pod with the gang's Events waits no longer; where others follow it, none is left in a moment."""
        members = self._feed.view.groups.get(gang)
        left = [key for key in members.waiting if key in self._waits] if members is not None else []
        if left:
            successor = min(left)
            self._event_pod_of_gang[gang], self._gang_of_event_pod[successor] = successor, gang
            self._owing.add(successor)
            self._work.add_after_delay(successor)

    async def _report(self, key: Key) -> None:
        wait, pod = self._waits.get(key), self._pods.objects.get(key)
        if wait is None or pod is None or uid_of(pod) != wait.uid or pod["spec"].get("nodeName"):
            return
        known = condition_of(pod, "PodScheduled") or {}
        is_known = (known.get("status"), known.get("reason"), known.get("message")) == (
            "False", wait.reason, condition_text(wait.message),
        )  # fmt: skip
        if not is_known or is_true(pod, POD_TOO_LARGE) != wait.too_large:
            if not await self._write(key, pod, wait, known):
                return  # gone, or another pod by now
        elif key not in self._owing:
            return
        self._owing.discard(key)
        if key in self._gang_of_event_pod:
            with suppress(ApiError, OutcomeUnknown):
                await record(self._recorder, pod, WARNING, "FailedScheduling", wait.message)

    async def _write(self, key: Key, pod: Obj, wait: Wait, known: Obj) -> bool:
        """Returns whether the pod still exists."""
        moved = known.get("lastTransitionTime") if known.get("status") == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": wait.reason,
            "message": condition_text(wait.message),
            "lastTransitionTime": moved or rfc3339(self._clock.now()),
        }
        status: Obj = {"conditions": [condition, *self._size_conditions(pod, wait)]}
        if node := self._nominated_node(key):
            status["nominatedNodeName"] = node
        patch = {"metadata": {"uid": wait.uid}, "status": status}
        try:
            async with self._at_once:
                await self._cluster.patch(
                    POD, key.name, key.namespace, patch=patch, patch_type=PatchType.STRATEGIC, subresource="status"
                )
        except ApiError as refused:
            if refused.code in (404, 409):
                return False
            raise
        return True

    def _size_conditions(self, pod: Obj, wait: Wait) -> list[Obj]:
        """Whether it is too large for all nodes; no condition where that was never reported."""
        known, now = condition_of(pod, POD_TOO_LARGE), rfc3339(self._clock.now())
        before = [known] if known is not None else []
        if wait.too_large:
            why = condition_text(wait.message)
            return with_condition(before, POD_TOO_LARGE, True, now=now, reason=TOO_LARGE, message=why)
        if known is None:
            return []
        return with_condition(
            before, POD_TOO_LARGE, "Unknown", now=now, reason="WaitsOtherwise", message=REASON_CHANGED
        )

    def _nominated_node(self, key: Key) -> str:
        pod = self._feed.view.pods.get(key)
        return self._feed.view.gang_of(pod).nominated.get(key, "") if pod is not None else ""


def _status_key(wait: Wait) -> tuple[str, str, bool]:
    """What is written at once where it has changed."""
    return wait.uid, wait.reason, wait.too_large


@dataclass(frozen=True, slots=True)
class ReportedStatus:
    """What a group was last decided to be."""

    uid: str
    phase: PodGroupPhase
    reason: str
    message: Message
    blocked: str
    too_large: bool
    cycle: int = field(compare=False)  # in which that was decided first


class GroupStatusWriter:
    """The status of PodGroups."""

    def __init__(
        self,
        cluster: Cluster,
        groups: Informer,
        *,
        cache_updater: CacheUpdater,
        scope: SchedulerScope,
        recorder: EventRecorder,
        clock: Clock,
        at_once: asyncio.Semaphore,
        submit_low_priority: Callable[[Request], None],
    ) -> None:
        """`submit_low_priority`: sends what only reports a success, when no other request waits."""
        self._cluster = cluster
        self._groups = groups
        self._feed = cache_updater
        self._scope = scope
        self._recorder = recorder
        self._clock = clock
        self._at_once = at_once
        self._say = submit_low_priority
        self._reported: dict[Key, ReportedStatus] = {}
        self._heard: dict[Key, int] = {}  # how many pods of each waited at the last report
        self._refused: set[Key] = set()  # written on a version that was no longer the last
        self._unknown: dict[Key, str] = {}  # groups that we ourselves called Unknown, and their uids
        self._work = WorkQueue("pod groups", self._write, clock=clock, coalesce_seconds=GROUP_SECONDS)

    def causes(self) -> Counter[str]:
        """What groups wait for, of those that still do: a group placed by another scheduler gets no further result."""
        still = self._feed.view.unsettled
        return Counter(
            reported.blocked for key, reported in self._reported.items() if reported.blocked and key in still
        )

    def results_changed(self, verdicts: Iterable[GroupResult], cycle: int) -> list[GroupResult]:
        """The plan's results for groups; returns those whose pods have something new to report."""
        return [v for v in verdicts if self._feed.is_ours(v.group) and self._is_change(v, cycle)]

    def _is_change(self, verdict: GroupResult, cycle: int) -> bool:
        key, members = verdict.group, self._feed.view.groups[verdict.group]
        before = self._reported.get(key)
        fresh = ReportedStatus(
            members.group.uid,
            verdict.phase,
            verdict.reason,
            verdict.message,
            verdict.blocked,
            verdict.too_large,
            cycle,
        )
        heard, self._heard[key] = self._heard.get(key, 0), len(members.waiting)
        if before == fresh:
            return heard < len(members.waiting)
        self._reported[key] = fresh
        same_phase = before is None or before.phase is fresh.phase
        # Pods of a gang are made one after the other: that some are missing is worth saying if it lasts.
        fleeting = fresh.blocked == "pods" and same_phase
        repeats = before is not None and same_phase and (before.uid, before.reason) == (fresh.uid, fresh.reason)
        (self._work.add_after_delay if fleeting or repeats else self._work.add)(key)
        return True

    def pods_changed(self, key: Key) -> None:
        """Whether that is worth a write is seen in a moment."""
        if key in self._reported or key in self._feed.unreadable:
            self._work.add_after_delay(key)

    def started(self, key: Key) -> None:
        self._work.add(key)

    def group_changed(self, change: Change) -> None:
        key = change.key
        if change.new is None or key in self._refused or key in self._feed.unreadable:
            self._refused.discard(key)
            self._work.add(key)
        elif key in self._reported:
            self._work.add_after_delay(key)

    async def close(self) -> None:
        await self._work.close()

    async def _write(self, key: Key) -> None:
        group = self._groups.objects.get(key)
        if group is None:
            self._reported.pop(key, None)
            self._heard.pop(key, None)
            self._unknown.pop(key, None)
            return
        wanted = self._wanted(key, group)
        if wanted is None:
            return
        status, reported = wanted
        before = group.get("status") or {}
        if all(before.get(name) == value or (not value and not before.get(name)) for name, value in status.items()):
            return
        # Only on the version that was looked at; where it has changed, the change brings the next look.
        seen = {"uid": uid_of(group), "resourceVersion": group["metadata"]["resourceVersion"]}
        patch = {"metadata": seen, "status": status}
        kind = self._scope.group_kind
        below = "status" if "status" in kind.subresources else ""
        try:
            async with self._at_once:
                await self._cluster.patch(kind, key.name, key.namespace, patch=patch, subresource=below)
        except ApiError as refused:
            if refused.code == 409:
                self._refused.add(key)
            if refused.code in (404, 409):
                return
            raise
        if status["conditions"] != (before.get("conditions") or []):
            await self._emit_result(group, reported)

    def _wanted(self, key: Key, group: Obj) -> tuple[Obj, ReportedStatus] | None:
        """The status as it should be; None where nothing was decided of this group yet."""
        before = group.get("status") or {}
        if (why := self._feed.unreadable.get(key)) is not None:
            reported = ReportedStatus(
                uid_of(group), PodGroupPhase.PENDING, "Invalid", why, "pods", too_large=False, cycle=0
            )
            return {"phase": "Pending", "conditions": self._conditions(before, reported)}, reported
        found, members = self._reported.get(key), self._feed.view.groups.get(key)
        if found is None or found.uid != uid_of(group) or members is None or not members.known:
            return None
        if self._feed.is_starting(key):
            return None  # Running is written when its pods are bound, so that a later process can rely on it
        phase: str = found.phase
        if (
            before.get("phase") == PodGroupPhase.UNKNOWN
            and self._unknown.get(key) != found.uid
            and phase == PodGroupPhase.RUNNING
        ):
            phase = PodGroupPhase.UNKNOWN  # set by another component; the job's policies are about to answer it
        elif phase == PodGroupPhase.UNKNOWN:
            self._unknown[key] = found.uid
        counts = {
            "running": sum(pod.state is PodState.RUNNING for pod in members.placed.values()),
            "succeeded": members.succeeded,
            "failed": len(members.finished) - members.succeeded,
        }
        return {"phase": str(phase), "conditions": self._conditions(before, found), **counts}, found

    def _conditions(self, before: Obj, reported: ReportedStatus) -> list[Obj]:
        """One at most: why it waits, or that it has its places."""
        if reported.blocked and reported.reason != "Scheduled":
            claim = "Unschedulable"
        elif reported.phase in (PodGroupPhase.RUNNING, PodGroupPhase.COMPLETED):
            claim = "Scheduled"
        else:
            return []
        message = condition_text(reported.message)
        known: Obj = next((each for each in before.get("conditions") or () if each.get("type") == claim), {})
        if (known.get("reason"), known.get("message")) == (reported.reason, message):
            return [known]
        return [
            {
                "type": claim,
                "status": "True",
                "transitionID": f"{reported.cycle}",
                "reason": reported.reason,
                "message": message,
                "lastTransitionTime": known.get("lastTransitionTime") or rfc3339(self._clock.now()),
            }
        ]

    async def _emit_result(self, group: Obj, reported: ReportedStatus) -> None:
        if reported.blocked and reported.reason != "Scheduled":
            severity = NORMAL if reported.blocked in QUOTA else WARNING
            await self._record(group, severity, "Unschedulable", reported.message)
        elif reported.phase in (PodGroupPhase.RUNNING, PodGroupPhase.COMPLETED):
            self._say(partial(self._emit_scheduled, group, reported, self._clock.now()))

    async def _emit_scheduled(self, group: Obj, reported: ReportedStatus, at: datetime) -> None:
        if self._reported.get(key_of(group)) == reported:  # else there is other news of it by now
            await self._record(group, NORMAL, "Scheduled", reported.message, at)

    async def _record(self, group: Obj, severity: str, word: str, message: Message, at: datetime | None = None) -> None:
        with suppress(ApiError, OutcomeUnknown):
            await record(self._recorder, group, severity, word, message, at=at)
