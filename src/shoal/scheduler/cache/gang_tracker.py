"""Tracks which gangs have run, and which are just being started.

A gang has run once it was whole and none of its binds was pending any more, not when that was decided: binds are single
requests, and a gang of which some failed is completed or undone. What another scheduler places is not undone here, so
its gang counts as having run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shoal.kube.objects import Key
from shoal.scheduler.planner.plan_types import Plan

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView


class GangTracker:
    def __init__(self, view: ClusterView) -> None:
        self.started: list[Key] = []  # gangs that have started and are not taken from here yet
        self._view = view
        self._awaited: dict[Key, set[Key]] = {}  # groups that have not run yet, and their pods that are being bound
        self._foreign: set[Key] = set()  # groups with pods that another scheduler places

    def __contains__(self, group: Key) -> bool:
        """Whether pods of the gang are being bound that never were together before."""
        return group in self._awaited

    def is_foreign(self, group: Key) -> bool:
        return group in self._foreign

    def has_run(self, group: Key) -> bool:
        gang = self._view.groups.get(group)
        return gang is None or gang.group.ran

    def assume(self, made: Plan, now: float) -> None:
        """Write the plan into the view, with gangs that start in it as not yet started."""
        for bind in made.binds:
            group = self._view.pods[bind.pod].group
            if group is not None and not self.has_run(group):
                self._awaited.setdefault(group, set()).add(bind.pod)
        self._view.assume(made, now)
        for result in made.groups:
            if result.group in self._awaited and self.has_run(result.group):
                self._view.set_group(replace(self._view.groups[result.group].group, ran=False))

    def bind_finished(self, group: Key, pod: Key) -> None:
        """The pod has its node, or will not get it."""
        awaited = self._awaited.get(group)
        if awaited is not None:
            awaited.discard(pod)
            if not awaited:
                del self._awaited[group]
        self.check_started(group)

    def check_started(self, group: Key) -> None:
        """Whether it has started by now: its pods may have become enough in more ways than one."""
        gang = self._view.groups.get(group)
        if gang is None or not gang.known or gang.group.ran or group in self._awaited:
            return
        if gang.placed and gang.is_whole:
            self._start_gang(group)

    def placed_by_other(self, group: Key) -> None:
        if group not in self._foreign:
            self._foreign.add(group)
            self._start_gang(group)

    def _start_gang(self, group: Key) -> None:
        self._awaited.pop(group, None)
        gang = self._view.groups.get(group)
        if gang is not None and gang.known and not gang.group.ran:
            self._view.set_group(replace(gang.group, ran=True))
            self.started.append(group)

    def group_gone(self, group: Key) -> None:
        """A later group of that name starts from scratch, unless pods of the old one are still there to join it."""
        self._awaited.pop(group, None)
        if group not in self._view.groups:
            self._foreign.discard(group)
