"""Nobody starves: the first group of a queue that waited too long gets nodes of its own to wait for.

The nodes are chosen once, those nearest to being free first. Until the group starts, others may use them only
as guests, that is if their owner lets them be evicted at any time, or if they are known to end before the group could
start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.scheduling.columns import Mask
from shoal.scheduling.cycle import Cycle
from shoal.scheduling.members import Members
from shoal.scheduling.possible import wanted
from shoal.scheduling.shapes import Shape


def honour(cycle: Cycle) -> None:
    """Close the nodes that are kept for groups which still wait."""
    view = cycle.view
    for key, nodes in view.reservations.items():
        members = view.groups.get(key)
        if members is None or not members.waiting or not members.minimum() or not members.known:
            continue
        if all(node in view.room.rows for node in nodes):  # with one of them gone the choice is made again
            _close(cycle, members, nodes)


def reserve(cycle: Cycle) -> None:
    """Choose nodes for the first starving group of each queue that has none yet."""
    for line in cycle.lines.values():
        if any(members.key in cycle.reservations for members in line):
            continue
        for members in line:
            still = cycle.still.get(members.key)
            if still is None or still.obstacle != "capacity" or not members.minimum():
                continue
            if cycle.is_starving(members):
                nodes = _choose(cycle, members)
                if nodes:
                    _close(cycle, members, nodes)
            break  # only the first one that capacity keeps waiting


def _close(cycle: Cycle, members: Members, nodes: Sequence[str]) -> None:
    room = cycle.room
    if cycle.closed is None:
        cycle.closed = np.zeros(len(room), dtype=np.bool_)
    cycle.closed[[room.rows[node] for node in nodes]] = True
    cycle.reservations[members.key] = tuple(nodes)
    start = _start(cycle, set(nodes))
    if start is not None and (cycle.reserved_start is None or start < cycle.reserved_start):
        cycle.reserved_start = start


def _start(cycle: Cycle, nodes: set[str]) -> float | None:
    """When the last pod there ends, if all of them are known to."""
    latest = cycle.now
    for node in nodes:
        for pod in cycle.view.pods_on(node):
            members = cycle.view.members_of(pod)
            if members.group.estimate_seconds is None:
                return None
            latest = max(latest, pod.since + members.group.estimate_seconds)
    return latest


def _choose(cycle: Cycle, members: Members) -> tuple[str, ...]:
    """The nodes that need to lose least until the whole minimum fits; none where it never would."""
    minimum = members.minimum()
    closeness = members.group.closeness
    shapes = wanted(cycle, minimum.pods[: minimum.total])
    taken = np.zeros(len(cycle.room), dtype=np.bool_)
    if cycle.closed is not None:
        taken |= cycle.closed
    tiers = cycle.view.topology.tiers
    if closeness is not None and closeness.hard and closeness.tier <= len(tiers):
        tier = tiers[closeness.tier - 1]
        found = [_rows(cycle, shapes, taken | ~tier.mask(domain)) for domain in range(1, len(tier.names))]
        able = [rows for rows in found if rows is not None]
        choices = sorted((_occupied(cycle, rows), _names(cycle, rows)) for rows in able)
        return choices[0][1] if choices else ()
    return _names(cycle, _rows(cycle, shapes, taken) or ())


def _rows(cycle: Cycle, shapes: list[tuple[Shape, int]], taken: Mask) -> list[int] | None:
    taken = taken.copy()
    chosen: list[int] = []
    for shape, count in shapes:
        slots = shape.slots_when_empty() * ~taken
        missing = slots - np.minimum(shape.slots, slots)
        order = np.lexsort((cycle.room.rank, missing / np.maximum(slots, 1), slots == 0))
        for row in order.tolist():
            if count <= 0 or not slots[row]:
                break
            chosen.append(row)
            taken[row] = True
            count -= int(slots[row])
        if count > 0:
            return None
    return chosen


def _occupied(cycle: Cycle, rows: list[int]) -> float:
    room = cycle.room
    used = (room.whole[:, rows] - room.free[:, rows]) / np.maximum(room.whole[:, rows], 1)
    return float(used.sum())


def _names(cycle: Cycle, rows: Sequence[int]) -> tuple[str, ...]:
    nodes = (cycle.room.nodes[row] for row in rows)
    return tuple(sorted(node.name for node in nodes if node is not None))
