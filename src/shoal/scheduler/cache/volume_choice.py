"""Volumes for the claims of a plan, chosen before the plan is assumed.

Where two pods would need the same volume their gang is left out of the plan; what was chosen for it stays chosen, so
that the next plan, made at once, tries other volumes. Each such turn settles one claim more, so their number is
limited.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from shoal.kube.objects import Key
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import GangVolumes, VolumeChoice
from shoal.scheduler.planner.plan_types import Bind, Plan


class VolumeChooser:
    def __init__(self, cache: SchedulerCache) -> None:
        self._cache = cache
        self._pinned: dict[Key, set[Key]] = {}  # gangs that were left out, and the claims something was chosen for

    def choose(self, made: Plan) -> tuple[Plan, tuple[GangVolumes, ...]]:
        """The plan without gangs for which too few volumes are left, and those whose claims are to be bound first."""
        claims = self._cache.claims
        found: list[GangVolumes] = []
        left_out: set[Key] = set()
        if not claims.late and not self._pinned:
            return made, ()
        for gang, group in groupby(made.binds, key=self._gang):
            binds = list(group)
            if not any(bind.pod in claims.late for bind in binds):
                continue
            choices = self._choices(binds)
            if choices is not None:
                found.append(GangVolumes(binds, choices))
                continue
            left_out.add(gang)
            self._pinned.setdefault(gang, set()).update(claim for bind in binds for claim in claims.of_pod(bind.pod))
            self._cache.reread(bind.pod for bind in binds)
        # What was chosen for a gang that has a place by now is executed. One that found none is retried when something
        # happens, and not before: the result would be the same.
        used = {choice.claim for volumes in found for choice in volumes.choices}
        for gang in self._pinned.keys() - left_out:
            claims.end(self._pinned.pop(gang) - used)
            members = self._cache.view.groups.get(gang)
            if members is not None:
                self._cache.reread(list(members.waiting), quietly=True)
        if left_out:
            kept = tuple(bind for bind in made.binds if self._gang(bind) not in left_out)
            made = replace(made, binds=kept, groups=tuple(v for v in made.groups if v.group not in left_out))
        return made, tuple(found)

    def _gang(self, bind: Bind) -> Key:
        view = self._cache.view
        return view.gang_of(view.pods[bind.pod]).key

    def _choices(self, binds: list[Bind]) -> list[VolumeChoice] | None:
        resources = self._cache.view.resources
        found: dict[Key, VolumeChoice] = {}
        for bind in binds:
            node = resources.nodes[resources.rows[bind.node]]
            assert node is not None, "a placed pod has a node"
            choices = self._cache.claims.choose(bind.pod, node)
            if choices is None:
                return None
            for choice in choices:
                found.setdefault(choice.claim, choice)  # pods may share one
        return list(found.values())
