"""Whether a gang could run at all if everybody else were gone: who never can must not hold up those behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.scheduler.planner.equivalence_classes import Shape
from shoal.scheduler.planner.gang import Members
from shoal.scheduler.planner.resource_vectors import Ints
from shoal.scheduler.planner.snapshot_types import Pod

if TYPE_CHECKING:
    from shoal.scheduler.planner.cycle_state import Cycle


def could_ever_run(cycle: Cycle, members: Members) -> bool:
    """A bound from above: each shape of the minimum by itself, on empty nodes, within the queue's ceilings."""
    asked = (members.minimum().asked or {}) if members.group.is_charged else {}
    for standing in cycle.shares.standings[members.group.queue].line:
        if any(amount > standing.hard_limits.get(name, float("inf")) for name, amount in asked.items()):
            return False
    return _has_slots(cycle, members, Shape.slots_when_empty)


def is_too_large(cycle: Cycle, members: Members) -> bool:
    """Whether only more or larger nodes would help: nobody who leaves, no quota and no node that returns does."""
    return bool(cycle.room.rows) and not _has_slots(cycle, members, Shape.slots_on_whole)


def _has_slots(cycle: Cycle, members: Members, slots_of: Callable[[Shape], Ints]) -> bool:
    tier = cycle.view.topology.widest(members.group.closeness)
    for shape, count in wanted(cycle, members.minimum().least()):
        slots = _most(shape, slots_of(shape))
        most = int(slots.sum())
        if tier is not None and tier.domain.any():  # no node in a domain: its size does not matter
            most = int(tier.sums(slots).max(initial=0))
        if most < count:
            return False
    return True


def most_when_empty(shape: Shape) -> Ints:
    """How many fit on each node with nobody on it."""
    return _most(shape, shape.slots_when_empty())


def _most(shape: Shape, slots: Ints) -> Ints:
    """One on each node at most, where they keep each other away."""
    return np.minimum(slots, 1) if shape.is_solitary else slots


def wanted(cycle: Cycle, pods: Sequence[Pod]) -> list[tuple[Shape, int]]:
    """The shapes of these pods and how many there are of each."""
    counted: dict[int, tuple[Shape, int]] = {}
    for pod in pods:
        shape = cycle.view.shape_of(pod).sync()
        counted[id(shape)] = (shape, counted.get(id(shape), (shape, 0))[1] + 1)
    return list(counted.values())
