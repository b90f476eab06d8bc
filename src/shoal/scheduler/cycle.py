"""One cycle: the pure planner runs on the cache, and what it decided is prepared for the effects.

A cycle sends no request and writes nothing that the next process would need. Nothing of a group is reported twice: only
a result that differs from the last one goes out, because a plan is made more often than it is reported.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.logs import Logger
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.cache.volume_choice import VolumeChooser
from shoal.scheduler.channels import Decisions, GroupStatus
from shoal.scheduler.messages import text
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.plan_builder import pod_waits
from shoal.scheduler.planner.plan_types import GroupResult, Plan
from shoal.scheduler.planner.planner import plan

log = Logger(__name__)

MOST_REPEATS = 8  # of a plan at one moment that binds nothing, whatever it decides: what is left waits for an event


class Cycle:
    def __init__(self, cache: SchedulerCache, metrics: SchedulerMetrics) -> None:
        self._cache = cache
        self._metrics = metrics
        self._volumes = VolumeChooser(cache)
        self._number = 0
        self._repeats = 0  # plans in a row that only followed the one before
        self._is_repeat = False
        self._statuses: dict[Key, GroupStatus] = {}  # the last results
        self._waiting: dict[Key, int] = {}  # how many pods of each group waited then
        self._warnings: tuple[Message, ...] = ()

    @property
    def is_due(self) -> bool:
        return self._is_repeat or self._cache.needs_cycle

    def run(self) -> Decisions | None:
        """What is to be done; None where nothing waits and nothing is open."""
        view = self._cache.view
        if self._cache.needs_cycle:
            self._repeats = 0
        self._is_repeat = self._cache.needs_cycle = False
        if not view.unsettled:
            return None
        self._number += 1
        with self._metrics.planning() as lap:
            made = plan(view, self._cache.now, lap)
        made, volumes = self._volumes.choose(made)
        new_results = [
            result for result in made.groups if self._cache.is_ours(result.group) and self._record_result(result)
        ]
        # Messages of pods whose gang lacks members are left to the effects, which wait for the members first.
        reported = tuple(result for result in new_results if result.blocked != "pods")
        waits = (*made.waits, *pod_waits(replace(made, groups=reported), view))
        self._metrics.planned(made, len(waits))
        if made.warnings != self._warnings:
            self._warnings = made.warnings
            for warning in made.warnings:
                log.warning("queues", warning=text(warning))
        statuses = tuple(self._statuses[result.group] for result in new_results)
        return Decisions(made, volumes, statuses, waits)

    def schedule_next(self, made: Plan) -> None:
        """Note whether the next cycle follows at once. Call it when the plan is assumed."""
        view = self._cache.view
        if made.binds:
            self._repeats = 0  # fewer pods wait, so this ends
        if made.again and self._repeats < MOST_REPEATS:
            self._repeats += 1
            self._is_repeat = True
        elif any(view.gang_of(view.pods[bind.pod]).waiting for bind in made.binds):
            # The next plan reports why some pods of a gang stayed behind while others were placed.
            self._cache.needs_cycle = True

    def _record_result(self, result: GroupResult) -> bool:
        """Remember the result; return whether there is something new to report: it differs, or more pods wait."""
        key, members = result.group, self._cache.view.groups[result.group]
        status = GroupStatus(
            key,
            members.group.uid,
            result.phase,
            result.reason,
            result.message,
            result.blocked,
            result.too_large,
            queue=members.group.queue,
            cycle=self._number,
        )
        known, waiting = self._statuses.get(key), self._waiting.get(key, 0)
        self._waiting[key] = len(members.waiting)
        if known == status:
            return waiting < len(members.waiting)
        self._statuses[key] = status
        return True

    def forget(self, group: Key) -> None:
        """The group was deleted."""
        self._statuses.pop(group, None)
        self._waiting.pop(group, None)

    def causes(self) -> Counter[str]:
        """What groups wait for, of those that still do: a group placed by another scheduler gets no further result."""
        still = self._cache.view.unsettled
        return Counter(status.blocked for key, status in self._statuses.items() if status.blocked and key in still)
