"""Which of the nodes that would do is best: a number of 0 to about a thousand for each, higher is better.

Pods that ask for accelerators are packed, accelerators first, so that whole nodes stay free for the next gang; other
pods are spread, and kept off the nodes with accelerators. Preferences of the pod and taints that merely
discourage weigh beside that. Scores are whole hundredths, so that equal means equal and names decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.scheduling.columns import Ints, Rows
from shoal.scheduling.devices import WHOLE
from shoal.scheduling.fitting import tolerates
from shoal.scheduling.fragmentation import growth
from shoal.scheduling.room import Room

if TYPE_CHECKING:
    from shoal.scheduling.shapes import Shape

COMMON = ("cpu", "memory")
PREFERENCE_WEIGHT = 2
TAINT_WEIGHT = 3
OFF_ACCELERATORS = 100  # as much as an empty node is worth over a full one

Floats = npt.NDArray[np.float64]


def score(shape: Shape, room: Room, rows: Rows, *, pods: int = 1) -> Ints:
    """The worth of each node for the last of that many pods placed there."""
    if shape.gpu is not None and shape.devices.are_shared:
        points = unspoiled(shape, room, rows)
    elif shape.packs:
        points = packed(shape, room, rows, pods)
    else:
        points = spread(shape, room, rows, pods)
    if shape.preferred or shape.soft_taints:
        points = points + liked(shape, room, rows)
    return np.rint(points * 100).astype(np.int64)


def packed(shape: Shape, room: Room, rows: Rows, pods: int) -> Floats:
    """How full the node is afterwards in what the pod asks for."""
    points: Floats = np.zeros(len(room.kind[rows]))
    weights = 0
    for name, column, amount in shape.vector.pairs:
        weight = shape.weights.get(name, 0)
        if weight:
            whole = room.whole[column, rows]
            used = whole - room.free[column, rows] + pods * amount
            points += weight * used / np.maximum(whole, 1)
            weights += weight
    return points * (100 / weights) if weights else points


def spread(shape: Shape, room: Room, rows: Rows, pods: int) -> Floats:
    """How empty the node stays, and how evenly it is used."""
    points: Floats = np.zeros(len(room.kind[rows]))
    fractions: list[Floats] = []
    asked = {name: amount for name, _, amount in shape.vector.pairs}
    for name in COMMON:
        if name in room.resources.index:
            column = room.resources.index[name]
            whole = np.maximum(room.whole[column, rows], 1)
            fractions.append((whole - room.free[column, rows] + pods * asked.get(name, 0)) / whole)
            points += 100 * (1 - fractions[-1]) / len(COMMON)
    if len(fractions) > 1:
        points += 100 * (1 - np.abs(fractions[0] - fractions[1]) / 2)
    for column in shape.shunned:
        points -= OFF_ACCELERATORS * (room.whole[column, rows] > 0)
    return points


def unspoiled(shape: Shape, room: Room, rows: Rows) -> Floats:
    """Shared devices: how little the pod spoils for the usual pods; a fuller node where that is equal."""
    cpu, memory = (room.free[room.column(name), rows] for name in COMMON)
    devices = shape.devices.free[rows]
    grown, chosen = growth(shape.habits, shape.usual, cpu, memory, devices)
    shape.device[rows] = chosen
    left = devices.sum(axis=1) - shape.usual.count * shape.usual.milli
    points: Floats = np.where(np.isfinite(grown), -grown, 0.0) * 10 - left / WHOLE
    return points


def liked(shape: Shape, room: Room, rows: Rows) -> Floats:
    """Preferred node affinity by weight, and the share of discouraging taints that the pod tolerates."""
    points: Floats = np.zeros(len(room.kind[rows]))
    weights = sum(weight for weight, _ in shape.preferred)
    for weight, term in shape.preferred:
        points += room.matching(term, rows) * (PREFERENCE_WEIGHT * 100 * weight / weights)
    if shape.soft_taints:
        by_kind = np.array([_discouraged(shape, room, kind) for kind in range(len(room.kinds))])
        points -= TAINT_WEIGHT * 100 * by_kind[room.kind[rows]]
    return points


def _discouraged(shape: Shape, room: Room, kind: int) -> bool:
    node = room.kinds[kind]
    if node is None:
        return False
    return any(t.get("effect") == "PreferNoSchedule" and not tolerates(shape.pod, t) for t in node.taints)
