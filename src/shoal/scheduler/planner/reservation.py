"""Nobody starves: the first group of a queue that waited too long gets nodes of its own to wait for.

The nodes are chosen once, those nearest to being free first, and only if the whole group would really start there with
the others gone: that is played through, rules about neighbours included. Until the group starts, others may use
the nodes only as guests, that is if their owner lets them be evicted at any time, or if they are known to end before
the group could start. Whoever has waited longest chooses first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from shoal.scheduler.planner.cycle_state import Cycle
from shoal.scheduler.planner.equivalence_classes import Shape
from shoal.scheduler.planner.feasibility import could_ever_run, most_when_empty, wanted
from shoal.scheduler.planner.gang import Members
from shoal.scheduler.planner.placement import Where
from shoal.scheduler.planner.resource_vectors import Ints, Mask

MOST_NODES_TRIED = 256
DOMAINS_TRIED = 8
GROUPS_TRIED = 4  # in one plan and queue; those behind them have their turns
TURN_SECONDS = 10.0


def honour(cycle: Cycle) -> None:
    """Close the nodes that are kept for groups which still wait."""
    view = cycle.view
    for key, nodes in view.reservations.items():
        members = view.groups.get(key)
        if members is None or not members.waiting or not members.minimum() or not members.known:
            continue
        if all(_is_open(cycle, members, node) for node in nodes):  # otherwise the choice is made again
            _close(cycle, members, nodes)


def _is_open(cycle: Cycle, members: Members, node: str) -> bool:
    """Whether the node is still there and could take somebody of the group."""
    row = cycle.room.rows.get(node)
    shapes = cycle.gangs.shapes(members.minimum().pods)
    return row is not None and any(shape.sync().eligible[row] for shape in shapes)


def reserve(cycle: Cycle) -> None:
    """Choose nodes for the first starving group of each queue that has none yet."""
    _let_go(cycle)
    served = {cycle.view.groups[key].group.queue for key in cycle.reservations}
    lines = {name: line for name, line in cycle.lines.items() if name not in served}
    first = {name: list(islice(_able(cycle, _starving(cycle, line)), GROUPS_TRIED)) for name, line in lines.items()}
    in_order = sorted(chain(*first.values()), key=lambda members: (members.group.created, members.key))
    for members in in_order:
        if members.group.queue not in served and _reserve_for(cycle, members):
            served.add(members.group.queue)
    for name, tried in first.items():
        if name not in served and len(tried) == GROUPS_TRIED:
            _reserve_behind(cycle, tried, lines[name])


def _reserve_for(cycle: Cycle, members: Members) -> bool:
    nodes = _choose(cycle, members)
    if nodes:
        _close(cycle, members, nodes)
    return bool(nodes)


def _reserve_behind(cycle: Cycle, tried: Sequence[Members], line: Sequence[Members]) -> None:
    """No nodes would do for the first of the line: of those behind them one at a time has its turn, by the clock."""
    turn = int(cycle.now // TURN_SECONDS)
    behind = [members for members in _starving(cycle, line) if members not in tried]
    place = turn % max(len(behind), 1)
    members = next(_able(cycle, behind[place:] + behind[:place]), None)
    if members is not None and not _reserve_for(cycle, members):
        cycle.wake((turn + 1) * TURN_SECONDS)


def _starving(cycle: Cycle, line: Iterable[Members]) -> Iterator[Members]:
    """Those at the head of the line that only room keeps waiting, and have waited too long."""
    for members in line:
        still = cycle.still.get(members.key)
        if still is None or still.obstacle != "capacity" or not members.minimum():
            continue
        if not cycle.is_starving(members):
            return
        yield members


def _able(cycle: Cycle, line: Iterable[Members]) -> Iterator[Members]:
    return (members for members in line if could_ever_run(cycle, members))


def _let_go(cycle: Cycle) -> None:
    """A group that cannot start on its nodes although nobody else is there any more keeps them in vain."""
    for key, nodes in list(cycle.reservations.items()):
        still = cycle.still.get(key)
        if still is None or still.obstacle != "capacity":
            continue
        others = [pod for node in nodes for pod in cycle.view.pods_on(node) if pod.group != key]
        if all(pod.is_critical for pod in others):
            del cycle.reservations[key]
            assert cycle.closed is not None, "what is reserved is closed"
            cycle.closed[[cycle.room.rows[node] for node in nodes]] = False


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
    shapes = wanted(cycle, minimum.least())
    taken = np.zeros(len(cycle.room), dtype=np.bool_)
    if cycle.closed is not None:
        taken |= cycle.closed
    tier = cycle.view.topology.widest(members.group.closeness)
    if tier is None:
        return _names(cycle, _tried(cycle, members, shapes, taken))
    found = []
    for domain in range(1, len(tier.names)):
        rows = _rows(cycle, shapes, taken | ~tier.mask(domain))
        if rows is not None:
            found.append((_occupied(cycle, rows), tier.names[domain], domain))
    for _, _, domain in sorted(found)[:DOMAINS_TRIED]:
        if rows := _tried(cycle, members, shapes, taken | ~tier.mask(domain)):
            return _names(cycle, rows)
    return ()


def _tried(cycle: Cycle, members: Members, shapes: list[tuple[Shape, int]], taken: Mask) -> list[int]:
    """Rows on which the group would start with everybody gone who ever goes; more are tried where few do not do."""
    rows = _rows(cycle, shapes, taken)
    if rows is None:
        return []
    able = np.zeros(len(cycle.room), dtype=np.bool_)
    for shape, _ in shapes:
        able |= shape.eligible
    others = [row for row in _nearest_to_free(cycle, shapes[0][0]).tolist() if able[row] and not taken[row]]
    others = rows + [row for row in others if row not in rows]
    number = len(rows)
    while not (found := _dry_run(cycle, members, others[:number])):
        if number >= min(len(others), MOST_NODES_TRIED):
            return []
        number *= 2
    return found


def _dry_run(cycle: Cycle, members: Members, rows: list[int]) -> list[int]:
    room = cycle.room
    mark = room.mark()
    for row in rows:
        node = room.nodes[row]
        assert node is not None, "an open row has a node"
        for pod in cycle.view.pods_on(node.name):
            if not pod.is_critical and pod.group != members.key:
                cycle.suppose_gone(pod)
    mask = np.zeros(len(room), dtype=np.bool_)
    mask[rows] = True
    for decided in (*cycle.bound.values(), *cycle.promised.values()):
        for one in decided:
            if mask[one.row] and one.pod.group != members.key:
                cycle.suppose_over(one)
    placed = cycle.gangs.place_minimum(members, Where(mask, later=True))
    room.rollback(mark)
    return sorted({one.row for one in placed or ()})


def _rows(cycle: Cycle, shapes: list[tuple[Shape, int]], taken: Mask) -> list[int] | None:
    """The fewest rows, by the count of slots alone."""
    taken = taken.copy()
    chosen: list[int] = []
    for shape, count in shapes:
        slots = most_when_empty(shape) * ~taken
        for row in _nearest_to_free(cycle, shape).tolist():
            if count <= 0:
                break
            if slots[row]:
                chosen.append(row)
                taken[row] = True
                count -= int(slots[row])
        if count > 0:
            return None
    return chosen


def _nearest_to_free(cycle: Cycle, shape: Shape) -> Ints:
    """All rows, those first that have to lose the smallest part of what they could hold."""
    slots = most_when_empty(shape)
    missing = slots - np.minimum(shape.slots, slots)
    return np.lexsort((cycle.room.rank, missing / np.maximum(slots, 1), slots == 0))


def _occupied(cycle: Cycle, rows: list[int]) -> float:
    room = cycle.room
    used = (room.whole[:, rows] - room.free[:, rows]) / np.maximum(room.whole[:, rows], 1)
    return round(float(used.sum()), 6)  # the order of summing is not a difference


def _names(cycle: Cycle, rows: Sequence[int]) -> tuple[str, ...]:
    nodes = (cycle.room.nodes[row] for row in rows)
    return tuple(sorted(node.name for node in nodes if node is not None))
