"""Whether a gang could run in an otherwise empty cluster: one that never can must not hold up those behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.scheduler.planner.equivalence_classes import EquivalenceClass
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.node_and_pod_types import Pod
from shoal.scheduler.planner.resource_vectors import Ints

if TYPE_CHECKING:
    from shoal.scheduler.planner.cycle_state import CycleState


def could_ever_run(cycle: CycleState, gang: Gang) -> bool:
    """A bound from above: each shape of the minimum by itself, on empty nodes, within the queue's ceilings."""
    asked = (gang.minimum().asked or {}) if gang.group.is_charged else {}
    for standing in cycle.shares.standings[gang.group.queue].line:
        if any(amount > standing.hard_limits.get(name, float("inf")) for name, amount in asked.items()):
            return False
    return _has_slots(cycle, gang, EquivalenceClass.slots_when_empty)


def is_too_large(cycle: CycleState, gang: Gang) -> bool:
    """Whether only more or larger nodes would help: no pod that leaves, no quota and no node that returns does."""
    return bool(cycle.resources.rows) and not _has_slots(cycle, gang, EquivalenceClass.slots_on_whole)


def _has_slots(cycle: CycleState, gang: Gang, slots_of: Callable[[EquivalenceClass], Ints]) -> bool:
    tier = cycle.view.topology.widest(gang.group.closeness)
    for eq_class, count in wanted(cycle, gang.minimum().least()):
        slots = _most(eq_class, slots_of(eq_class))
        most = int(slots.sum())
        if tier is not None and tier.domain.any():  # no node in a domain: its size does not matter
            most = int(tier.sums(slots).max(initial=0))
        if most < count:
            return False
    return True


def most_when_empty(eq_class: EquivalenceClass) -> Ints:
    """How many fit on each node without the pods that may leave."""
    return _most(eq_class, eq_class.slots_when_empty())


def _most(eq_class: EquivalenceClass, slots: Ints) -> Ints:
    """One on each node at most, where they keep each other away."""
    return np.minimum(slots, 1) if eq_class.is_solitary else slots


def wanted(cycle: CycleState, pods: Sequence[Pod]) -> list[tuple[EquivalenceClass, int]]:
    """The shapes of these pods and how many there are of each."""
    counted: dict[int, tuple[EquivalenceClass, int]] = {}
    for pod in pods:
        eq_class = cycle.view.eq_class_of(pod).sync()
        counted[id(eq_class)] = (eq_class, counted.get(id(eq_class), (eq_class, 0))[1] + 1)
    return list(counted.values())
