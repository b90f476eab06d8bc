"""Writes the status of PodGroups: phase, condition, counts and Events; only when it has changed.

A new reason is written at once, another message for the same reason within a moment, because figures change with every
pod that is created or deleted. What groups count (running, succeeded, failed) is coalesced in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj, uid_of
from shoal.kube.times import rfc3339
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import GroupStatus
from shoal.scheduler.effects.dispatcher import Request
from shoal.scheduler.effects.events import record
from shoal.scheduler.messages import condition_text
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.planner.node_and_pod_types import PodState
from shoal.scheduler.scope import SchedulerScope

COALESCE_SECONDS = 1.0
QUOTA = ("quota", "order", "queue")  # not the cluster's fault: no cause for concern


class GroupStatusWriter:
    def __init__(
        self,
        cluster: Cluster,
        groups: Informer,
        *,
        cache: SchedulerCache,
        scope: SchedulerScope,
        recorder: EventRecorder,
        clock: Clock,
        at_once: asyncio.Semaphore,
        submit_low_priority: Callable[[Request], None],
    ) -> None:
        """`submit_low_priority`: sends what only reports a success, when no other request waits."""
        self._cluster = cluster
        self._groups = groups
        self._cache = cache
        self._scope = scope
        self._recorder = recorder
        self._clock = clock
        self._at_once = at_once
        self._submit_low_priority = submit_low_priority
        self._reported: dict[Key, GroupStatus] = {}
        self._refused: set[Key] = set()  # written on a version that was no longer the last
        self._unknown: dict[Key, str] = {}  # groups that this process called Unknown, and their uids
        self._work = WorkQueue("pod groups", self._write, clock=clock, coalesce_seconds=COALESCE_SECONDS)

    def report(self, statuses: Iterable[GroupStatus]) -> None:
        for fresh in statuses:
            key, before = fresh.group, self._reported.get(fresh.group)
            if before == fresh:
                continue  # only more pods wait
            self._reported[key] = fresh
            same_phase = before is None or before.phase is fresh.phase
            # Pods of a gang are created one after the other: that some are missing is reported only if it lasts.
            fleeting = fresh.blocked == "pods" and same_phase
            repeats = before is not None and same_phase and (before.uid, before.reason) == (fresh.uid, fresh.reason)
            (self._work.add_after_delay if fleeting or repeats else self._work.add)(key)

    def pods_changed(self, key: Key) -> None:
        """Whether that is worth a write is seen in a moment."""
        if key in self._reported or key in self._cache.unreadable:
            self._work.add_after_delay(key)

    def gang_started(self, key: Key) -> None:
        self._work.add(key)

    def group_changed(self, change: Change) -> None:
        key = change.key
        if change.new is None or key in self._refused or key in self._cache.unreadable:
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
            if reported.blocked and reported.reason != "Scheduled":
                severity = NORMAL if reported.blocked in QUOTA else WARNING
                await record(self._recorder, group, severity, "Unschedulable", reported.message)
            elif reported.phase in (PodGroupPhase.RUNNING, PodGroupPhase.COMPLETED):
                self._submit_low_priority(partial(self._emit_scheduled, group, reported, self._clock.now()))

    def _wanted(self, key: Key, group: Obj) -> tuple[Obj, GroupStatus] | None:
        """The status as it should be; None where nothing was decided of this group yet."""
        before = group.get("status") or {}
        if (why := self._cache.unreadable.get(key)) is not None:
            reported = GroupStatus(
                key, uid_of(group), PodGroupPhase.PENDING, "Invalid", why, "pods", too_large=False, queue="", cycle=0
            )
            return {"phase": "Pending", "conditions": self._conditions(before, reported)}, reported
        found, members = self._reported.get(key), self._cache.view.groups.get(key)
        if found is None or found.uid != uid_of(group) or members is None or not members.known:
            return None
        if self._cache.is_starting(key):
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

    def _conditions(self, before: Obj, reported: GroupStatus) -> list[Obj]:
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

    async def _emit_scheduled(self, group: Obj, reported: GroupStatus, at: datetime) -> None:
        if self._reported.get(reported.group) == reported:  # else there is a later result by now
            await record(self._recorder, group, NORMAL, "Scheduled", reported.message, at=at)
