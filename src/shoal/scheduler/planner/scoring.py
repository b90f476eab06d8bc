"""Which of the nodes that would do is best: a number of 0 to about a thousand for each, higher is better.

Pods that ask for accelerators are packed, accelerators first, so that whole nodes stay free for the next gang; other
pods are spread, and kept off the nodes with accelerators. Preferences of the pod and taints that merely
discourage weigh beside that. Scores are whole hundredths, so that equal means equal and names decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from shoal.scheduler.planner.fragmentation import growth
from shoal.scheduler.planner.gpu_sharing import WHOLE
from shoal.scheduler.planner.node_resources import Room
from shoal.scheduler.planner.resource_vectors import ALL, Ints, Rows, at
from shoal.scheduler.planner.taints import tolerates

if TYPE_CHECKING:
    from shoal.scheduler.planner.equivalence_classes import Shape

COMMON = ("cpu", "memory")
PREFERENCE_WEIGHT = 2
TAINT_WEIGHT = 3
SPOILED_WEIGHT = 0.3  # of one thousandth of a device, against a whole one left over
OFF_ACCELERATORS = 100  # as much as an empty node is worth over a full one

EMPTY = 100.0  # what an empty node is worth more or less than a full one

Floats = npt.NDArray[np.float64]


class Worth(Protocol):
    """The worth of each of these rows, given what is free there, for the last of so many pods placed on it.

    What is free is told for the columns of the shape only, in their order.
    """

    def __call__(self, free: Ints, rows: Rows, *, pods: int = 1) -> Ints: ...


OneWorth = Callable[[int], int]  # the same for one pod on one row, whatever is free there now


def worth(shape: Shape, room: Room) -> tuple[Worth, OneWorth | None]:
    """The functions for one shape, with all that changes only with the nodes worked out beforehand."""
    steady = _steady(shape, room)
    if shape.devices.are_shared:  # pods without devices too: they may leave devices without cores
        return lambda free, rows, **_: _rounded(unspoiled(shape, room, free, rows) + steady[rows]), None
    weights = packed(shape, room) if shape.packs else spread(room)
    differ, level = bool((steady != EMPTY).any()) or not weights, steady[:1]
    weighed = _span([shape.columns.index(column) for column in weights])
    weight = np.array(list(weights.values())).reshape(len(weights), len(room))
    known = dict(shape.vector.cells)
    asked = np.array([known.get(column, 0) for column in weights], dtype=np.int64)[:, None]
    weight[room.whole[list(weights)] < asked] = 0.0  # never its place, and absurd requests give absurd numbers

    def of(free: Ints, rows: Rows, *, pods: int = 1) -> Ints:
        points = at(steady, rows) if differ else level
        used = (free[weighed] - (asked if pods == 1 else pods * asked)) * at(weight, rows)
        for part in used:  # one after the other: sums of fractions depend on their order
            points = points - part if shape.packs else points + part
        if not shape.packs:
            points = points - np.abs(used[0] - used[1])  # of COMMON, which is all that spreading weighs
        return _rounded(points)

    terms = [
        (column, int(amount), cost.data) for column, amount, cost in zip(weights, asked[:, 0], weight, strict=True)
    ]
    return of, _of_one(terms, steady.data, room, packs=shape.packs)


def _of_one(terms: list[tuple[int, int, memoryview]], steady: memoryview, room: Room, *, packs: bool) -> OneWorth:
    """Step by step as for many rows, so that the last bit is the same; a single number needs no array."""

    def of(row: int) -> int:
        points, cells = steady[row], room.cells
        used = [(cells[column][row] - amount) * cost[row] for column, amount, cost in terms]
        for part in used:
            points = points - part if packs else points + part
        if not packs:
            points = points - abs(used[0] - used[1])
        return round(points * 100)

    return of


def _span(places: list[int]) -> list[int] | slice:
    """The same places as a slice where they follow each other: a view costs nothing."""
    if not places or places != list(range(places[0], places[-1] + 1)):
        return places
    return slice(places[0], places[-1] + 1)


def _rounded(points: Floats) -> Ints:
    return np.rint(points * 100).astype(np.int64)


def _steady(shape: Shape, room: Room) -> Floats:
    """What does not depend on how full a node is."""
    points: Floats = np.full(len(room), EMPTY)
    if shape.preferred or shape.soft_taints:
        points += liked(shape, room)
    for column in shape.shunned:
        points -= OFF_ACCELERATORS * (room.whole[column] > 0)
    return points


def packed(shape: Shape, room: Room) -> dict[int, Floats]:
    """What one thousandth left over costs, per column: a node full of what the pod asks for is best."""
    asked = {column: shape.weights.get(name, 0) for name, column, _ in shape.vector.pairs}
    total = sum(asked.values())
    return {c: 100 * weight / total / np.maximum(room.whole[c], 1) for c, weight in asked.items() if weight}


def spread(room: Room) -> dict[int, Floats]:
    """What one thousandth left over is worth, per column: an empty and evenly used node is best."""
    columns = [room.column(name) for name in COMMON]
    return {column: 100 / len(columns) / np.maximum(room.whole[column], 1) for column in columns}


def unspoiled(shape: Shape, room: Room, free: Ints, rows: Rows) -> Floats:
    """Shared devices: how little the pod spoils for the usual pods; a fuller node where that is equal."""
    cpu, memory = (free[shape.columns.index(room.column(name))] for name in COMMON)
    devices = shape.devices.free[rows, : shape.devices.most]
    grown, chosen = growth(shape.habits, shape.usual, cpu, memory, devices)
    shape.device[rows] = chosen
    left = devices.sum(axis=1) - shape.usual.count * shape.usual.milli
    points: Floats = np.where(np.isfinite(grown), -grown, 0.0) * SPOILED_WEIGHT - left / WHOLE
    return points


def liked(shape: Shape, room: Room) -> Floats:
    """Preferred node affinity by weight, and the share of discouraging taints that the pod tolerates."""
    points: Floats = np.zeros(len(room))
    weights = sum(weight for weight, _ in shape.preferred)
    for weight, term in shape.preferred:
        points += room.matching(term, ALL) * (PREFERENCE_WEIGHT * 100 * weight / weights)
    if shape.soft_taints:
        by_kind = np.array([_discouraged(shape, room, kind) for kind in range(len(room.kinds))])
        points -= TAINT_WEIGHT * 100 * by_kind[room.kind]
    return points


def _discouraged(shape: Shape, room: Room, kind: int) -> bool:
    node = room.kinds[kind]
    if node is None:
        return False
    return any(t.get("effect") == "PreferNoSchedule" and not tolerates(shape.pod, t) for t in node.taints)
