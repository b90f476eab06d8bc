"""A gang is placed whole or not at all: its minimum in one go, inside one domain where it must be close.

Domains are tried from the nearest tier outwards, the tightest that could hold the gang first and of those the fullest,
each as a dry run that is taken back. A gang that has pods on nodes already only grows beside them. Subgroups find their
own, narrower domains within the gang's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.scheduler.planner.equivalence_classes import EquivalenceClass
from shoal.scheduler.planner.gang import Gang, Minimum, PlacementUnit
from shoal.scheduler.planner.gang_types import TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import Pod
from shoal.scheduler.planner.placement import NodeFilter, Placement, Placer
from shoal.scheduler.planner.resource_vectors import Ints, Mask
from shoal.scheduler.planner.scoring import Floats
from shoal.scheduler.planner.topology import Tier

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView

DRY_RUNS = 32  # of the tightest domains of a tier, and as many of the roomiest


class GangPlacer:
    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._room = view.resources
        self._placer = Placer(view)

    def place_minimum(self, gang: Gang, where: NodeFilter) -> list[Placement] | None:
        """The whole minimum, tried in the room; None, and the room as before, where it does not fit."""
        minimum = gang.minimum()
        if not self.could_fit(minimum, later=where.later):
            return None
        mark = self._room.mark()
        sitting = [pod.node for pod in gang.placed.values()]
        for mask in self._domains(gang.group.closeness, minimum.pods, minimum.total, sitting, where):
            placed = self._place(minimum, where.within(mask))
            if placed is not None:
                return placed
            self._room.rollback(mark)
        return None

    def place_one(
        self, gang: Gang, pods: Sequence[Pod], most: int, where: NodeFilter, *, beside: Iterable[Placement] = ()
    ) -> list[Placement]:
        """Place surplus pods, near their gang if required; `beside` are those placed a moment ago."""
        fresh = (self._room.nodes[one.row] for one in beside)
        sitting = [pod.node for pod in gang.placed.values()] + [node.name for node in fresh if node is not None]
        for mask in self._domains(gang.group.closeness, pods, 1, sitting, where):
            placed = self._placer.place(pods, most, where.within(mask))
            if placed:
                return placed
        return []

    def place_some(self, pods: Sequence[Pod], most: int, where: NodeFilter) -> list[Placement]:
        """As many of the pods as fit, tried in the room, whatever else their gang needs."""
        return self._placer.place(pods, most, where)

    def kind(self, gang: Gang) -> object:
        """Gangs of one kind fit or do not fit alike; None where that is not sure.

        It is not where pods beside them count, or where some of the gang have their nodes already.
        """
        minimum = gang.minimum()
        if minimum.kind is None:
            minimum.kind = self._kind(minimum, gang) or False
        # Anti-affinity of others selects by labels, which the class of a pod without rules of its own leaves out.
        neighbours = self._view.affinity
        if minimum.kind and neighbours.has_holders and any(map(neighbours.affects, minimum.pods)):
            return None
        return minimum.kind or None

    def _kind(self, minimum: Minimum, gang: Gang) -> object:
        eq_classes = self._shapes_of(minimum)
        if minimum.units or gang.placed or len(eq_classes) != 1 or eq_classes[0].is_careful:
            return None
        if any(pod.blocked for pod in minimum.pods):
            return None
        return id(eq_classes[0]), minimum.total, gang.group.closeness

    def _shapes_of(self, minimum: Minimum) -> list[EquivalenceClass]:
        if minimum.eq_classes is None:
            minimum.eq_classes = self.eq_classes(minimum.pods)
        return minimum.eq_classes

    def could_fit(self, minimum: Minimum, *, later: bool) -> bool:
        """A bound that costs a few comparisons: every shape's free slots in all."""
        fits = 0
        for eq_class in self._shapes_of(minimum):
            eq_class.sync()
            fits += eq_class.fits_later if later else eq_class.fits
        if minimum.total > fits:
            return False
        for unit in minimum.units:
            if unit.parts:
                continue
            synced = (eq_class.sync() for eq_class in self.eq_classes(unit.pods))
            if unit.must > sum(eq_class.fits_later if later else eq_class.fits for eq_class in synced):
                return False
        return True

    def eq_classes(self, pods: Sequence[Pod]) -> list[EquivalenceClass]:
        seen: dict[int, EquivalenceClass] = {}
        for pod in pods:
            if not pod.blocked:
                eq_class = self._view.eq_class_of(pod)
                seen[id(eq_class)] = eq_class
        return list(seen.values())

    def _place(self, minimum: Minimum, where: NodeFilter) -> list[Placement] | None:
        placed: list[Placement] = []
        used: set[int] = set()
        for unit in minimum.units:
            more = self._unit(unit, where, used)
            if more is None:
                return None
            placed += more
            used.update(id(one.pod) for one in more)
        missing = minimum.total - len(placed)
        if missing > 0:
            rest = [pod for pod in minimum.pods if id(pod) not in used] if used else minimum.pods
            only = self._shapes_of(minimum)[0] if minimum.kind else None
            placed += self._placer.place(rest, missing, where, only=only)
        return placed if len(placed) >= minimum.total else None

    def _unit(self, unit: PlacementUnit, where: NodeFilter, used: set[int]) -> list[Placement] | None:
        """What the unit lacks beside the pods that other units have `used` already."""
        if unit.parts:
            return self._parts(unit, where, used)
        pods = [pod for pod in unit.pods if id(pod) not in used]
        must = unit.must - (len(unit.pods) - len(pods))
        if must <= 0:
            return []
        mark = self._room.mark()
        for mask in self._domains(unit.closeness, pods, must, (), where):
            placed = self._placer.place(pods, must, where.within(mask))
            if len(placed) == must:
                return placed
            self._room.rollback(mark)
        return None

    def _parts(self, unit: PlacementUnit, where: NodeFilter, used: set[int]) -> list[Placement] | None:
        placed: list[Placement] = []
        whole = 0
        for part in unit.parts:
            more = self._unit(part, where, used)
            if more is not None:
                placed += more
                whole += 1
            if whole == unit.must:
                return placed
        return None

    # Domains

    def _domains(
        self,
        closeness: TopologyConstraint | None,
        pods: Sequence[Pod],
        count: int,
        sitting: Sequence[str],
        where: NodeFilter,
    ) -> Iterable[Mask | None]:
        """Masks to try in turn; None is the whole cluster."""
        if closeness is None:
            yield None
            return
        tiers = self._view.topology.tiers
        reach = self._view.topology.reach(closeness) if closeness.hard else len(tiers)
        for tier in tiers[:reach]:
            yield from self._of_tier(tier, pods, count, sitting, where)
        if not closeness.hard and tiers and not sitting:
            yield self._few(tiers[0], pods, count, where)
        # Beyond the last tier lies the whole cluster; where there is no tier at all, nothing is known to be near.
        if not closeness.hard or (tiers and reach > len(tiers)):
            yield None

    def _of_tier(
        self, tier: Tier, pods: Sequence[Pod], count: int, sitting: Sequence[str], where: NodeFilter
    ) -> Iterable[Mask]:
        taken = {int(tier.domain[self._room.rows[node]]) for node in sitting if node in self._room.rows}
        if taken:
            if len(taken) == 1 and 0 not in taken:
                yield tier.mask(taken.pop())
            return
        sums = self._sums(tier, pods, where)
        able = [domain for domain in np.flatnonzero(sums >= max(count, 1)).tolist() if domain]
        free = self._free(tier, pods)
        able.sort(key=lambda domain: (int(sums[domain]), float(free[domain]), tier.names[domain]))
        tried = able if len(able) <= 2 * DRY_RUNS else able[:DRY_RUNS] + able[: -DRY_RUNS - 1 : -1]
        for domain in tried:
            yield tier.mask(domain)

    def _few(self, tier: Tier, pods: Sequence[Pod], count: int, where: NodeFilter) -> Mask:
        """The fewest domains that together could hold the gang."""
        sums = self._sums(tier, pods, where)
        order = sorted(range(1, len(sums)), key=lambda domain: (-int(sums[domain]), tier.names[domain]))
        chosen: list[int] = []
        for domain in order:
            chosen.append(domain)
            count -= int(sums[domain])
            if count <= 0:
                break
        return np.isin(tier.domain, chosen)

    def _free(self, tier: Tier, pods: Sequence[Pod]) -> Floats:
        """How empty each domain is, in what the pods request: of equally tight ones the fullest is filled first."""
        found = np.zeros(len(tier.names))
        for column in sorted({column for eq_class in self.eq_classes(pods) for column, _ in eq_class.vector.cells}):
            whole = np.bincount(tier.domain, weights=self._room.whole[column], minlength=len(found))
            free = np.bincount(tier.domain, weights=self._room.free[column], minlength=len(found))
            found += free / np.maximum(whole, 1)
        return found

    def _sums(self, tier: Tier, pods: Sequence[Pod], where: NodeFilter) -> Ints:
        sums = np.zeros(len(tier.names), dtype=np.int64)
        for eq_class in self.eq_classes(pods):
            eq_class.sync()
            slots = eq_class.later if where.later else eq_class.slots
            sums += tier.sums(slots if where.mask is None else slots * where.mask)
        return sums
