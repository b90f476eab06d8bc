"""Which of the feasible nodes is best: a number of 0 to about a thousand for each, higher is better.

Pods that request accelerators are packed, accelerators first, so that whole nodes stay free for the next gang; other
pods are spread, and kept off the nodes with accelerators. Preferences of the pod and PreferNoSchedule taints are
weighed in addition. Scores are whole hundredths, so that equal means equal and names decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from shoal.scheduler.planner.fragmentation import growth
from shoal.scheduler.planner.gpu_sharing import WHOLE
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.resource_vectors import ALL, Ints, Rows, at
from shoal.scheduler.planner.taints import tolerates

if TYPE_CHECKING:
    from shoal.scheduler.planner.equivalence_classes import EquivalenceClass

COMMON = ("cpu", "memory")
PREFERENCE_WEIGHT = 2
TAINT_WEIGHT = 3
SPOILED_WEIGHT = 0.3  # of one thousandth of a device, against a whole one left over
OFF_ACCELERATORS = 100  # as much as an empty node is worth over a full one

EMPTY = 100.0  # what an empty node is worth more or less than a full one

Floats = npt.NDArray[np.float64]


class Score(Protocol):
    """The score of each of these rows, given what is free there, for the last of so many pods placed on it.

    What is free is given for the columns of the equivalence class only, in their order.
    """

    def __call__(self, free: Ints, rows: Rows, *, pods: int = 1) -> Ints: ...


SingleScore = Callable[[int], int]  # the same for one pod on one row, whatever is free there now


def score(eq_class: EquivalenceClass, resources: NodeResources) -> tuple[Score, SingleScore | None]:
    """The functions for one shape, with all that changes only with the nodes worked out beforehand."""
    steady = _steady(eq_class, resources)
    if eq_class.devices.are_shared:  # pods without devices too: they may leave devices without cores
        return lambda free, rows, **_: _rounded(
            fragmentation_score(eq_class, resources, free, rows) + steady[rows]
        ), None
    weights = packing_cost(eq_class, resources) if eq_class.packs else spreading_gain(resources)
    differ, level = bool((steady != EMPTY).any()) or not weights, steady[:1]
    weighed = _span([eq_class.columns.index(column) for column in weights])
    weight = np.array(list(weights.values())).reshape(len(weights), len(resources))
    known = dict(eq_class.vector.cells)
    asked = np.array([known.get(column, 0) for column in weights], dtype=np.int64)[:, None]
    weight[resources.whole[list(weights)] < asked] = 0.0  # never its place, and absurd requests give absurd numbers

    def of(free: Ints, rows: Rows, *, pods: int = 1) -> Ints:
        points = at(steady, rows) if differ else level
        used = (free[weighed] - (asked if pods == 1 else pods * asked)) * at(weight, rows)
        for part in used:  # one after the other: sums of fractions depend on their order
            points = points - part if eq_class.packs else points + part
        if not eq_class.packs:
            points = points - np.abs(used[0] - used[1])  # of COMMON, which is all that spreading weighs
        return _rounded(points)

    terms = [
        (column, int(amount), cost.data) for column, amount, cost in zip(weights, asked[:, 0], weight, strict=True)
    ]
    return of, _of_one(terms, steady.data, resources, packs=eq_class.packs)


def _of_one(
    terms: list[tuple[int, int, memoryview]], steady: memoryview, resources: NodeResources, *, packs: bool
) -> SingleScore:
    """Step by step as for many rows, so that the last bit is the same; a single number needs no array."""

    def of(row: int) -> int:
        points, cells = steady[row], resources.cells
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


def _steady(eq_class: EquivalenceClass, resources: NodeResources) -> Floats:
    """What does not depend on how full a node is."""
    points: Floats = np.full(len(resources), EMPTY)
    if eq_class.preferred or eq_class.soft_taints:
        points += preference_score(eq_class, resources)
    for column in eq_class.shunned:
        points -= OFF_ACCELERATORS * (resources.whole[column] > 0)
    return points


def packing_cost(eq_class: EquivalenceClass, resources: NodeResources) -> dict[int, Floats]:
    """What one thousandth left over costs, per column: a node full of what the pod requests is best."""
    asked = {column: eq_class.weights.get(name, 0) for name, column, _ in eq_class.vector.pairs}
    total = sum(asked.values())
    return {c: 100 * weight / total / np.maximum(resources.whole[c], 1) for c, weight in asked.items() if weight}


def spreading_gain(resources: NodeResources) -> dict[int, Floats]:
    """What one thousandth left over is worth, per column: an empty and evenly used node is best."""
    columns = [resources.column(name) for name in COMMON]
    return {column: 100 / len(columns) / np.maximum(resources.whole[column], 1) for column in columns}


def fragmentation_score(eq_class: EquivalenceClass, resources: NodeResources, free: Ints, rows: Rows) -> Floats:
    """Shared devices: how little the pod spoils for the usual pods; a fuller node where that is equal."""
    cpu, memory = (free[eq_class.columns.index(resources.column(name))] for name in COMMON)
    devices = eq_class.devices.free[rows, : eq_class.devices.most]
    grown, chosen = growth(eq_class.workload, eq_class.workload_kind, cpu, memory, devices)
    eq_class.device[rows] = chosen
    left = devices.sum(axis=1) - eq_class.workload_kind.count * eq_class.workload_kind.milli
    points: Floats = np.where(np.isfinite(grown), -grown, 0.0) * SPOILED_WEIGHT - left / WHOLE
    return points


def preference_score(eq_class: EquivalenceClass, resources: NodeResources) -> Floats:
    """Preferred node affinity by weight, and the share of discouraging taints that the pod tolerates."""
    points: Floats = np.zeros(len(resources))
    weights = sum(weight for weight, _ in eq_class.preferred)
    for weight, term in eq_class.preferred:
        points += resources.matching(term, ALL) * (PREFERENCE_WEIGHT * 100 * weight / weights)
    if eq_class.soft_taints:
        by_kind = np.array([_discouraged(eq_class, resources, kind) for kind in range(len(resources.kinds))])
        points -= TAINT_WEIGHT * 100 * by_kind[resources.kind]
    return points


def _discouraged(eq_class: EquivalenceClass, resources: NodeResources, kind: int) -> bool:
    node = resources.kinds[kind]
    if node is None:
        return False
    return any(t.get("effect") == "PreferNoSchedule" and not tolerates(eq_class.pod, t) for t in node.taints)
