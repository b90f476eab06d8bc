"""Prevents starvation: the first group of a queue that waited too long gets nodes of its own to wait for.

The nodes are chosen once, those nearest to being free first, and only if the whole group would really start there
without the others: that is simulated, rules about neighbours included. Until the group starts, others may use the nodes
only as guests, that is if their owner allows their eviction at any time, or if they are known to end before the group
could start. The group that has waited longest chooses first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from shoal.scheduler.planner.cycle_state import CycleState
from shoal.scheduler.planner.equivalence_classes import EquivalenceClass
from shoal.scheduler.planner.feasibility import could_ever_run, most_when_empty, wanted
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.placement import NodeFilter
from shoal.scheduler.planner.resource_vectors import Ints, Mask

MOST_NODES_TRIED = 256
DOMAINS_TRIED = 8
GROUPS_TRIED = 4  # in one plan and queue; those behind them have their turns
TURN_SECONDS = 10.0


def apply_reservations(cycle: CycleState) -> None:
    """Close the nodes that are kept for groups which still wait."""
    view = cycle.view
    for key, nodes in view.reservations.items():
        gang = view.groups.get(key)
        if gang is None or not gang.waiting or not gang.minimum() or not gang.known:
            continue
        if all(_is_open(cycle, gang, node) for node in nodes):  # otherwise the choice is made again
            _close(cycle, gang, nodes)


def _is_open(cycle: CycleState, gang: Gang, node: str) -> bool:
    """Whether the node still exists and could take a pod of the group."""
    row = cycle.resources.rows.get(node)
    eq_classes = cycle.gangs.eq_classes(gang.minimum().pods)
    return row is not None and any(eq_class.sync().eligible[row] for eq_class in eq_classes)


def reserve(cycle: CycleState) -> None:
    """Choose nodes for the first starving group of each queue that has none yet."""
    _drop_futile(cycle)
    served = {cycle.view.groups[key].group.queue for key in cycle.reservations}
    lines = {name: line for name, line in cycle.lines.items() if name not in served}
    first = {name: list(islice(_able(cycle, _starving(cycle, line)), GROUPS_TRIED)) for name, line in lines.items()}
    in_order = sorted(chain(*first.values()), key=lambda gang: (gang.group.created, gang.key))
    for gang in in_order:
        if gang.group.queue not in served and _reserve_for(cycle, gang):
            served.add(gang.group.queue)
    for name, tried in first.items():
        if name not in served and len(tried) == GROUPS_TRIED:
            _reserve_behind(cycle, tried, lines[name])


def _reserve_for(cycle: CycleState, gang: Gang) -> bool:
    nodes = _choose(cycle, gang)
    if nodes:
        _close(cycle, gang, nodes)
    return bool(nodes)


def _reserve_behind(cycle: CycleState, tried: Sequence[Gang], line: Sequence[Gang]) -> None:
    """No nodes would do for the first of the line: of those behind them one at a time has its turn, by the clock."""
    turn = int(cycle.now // TURN_SECONDS)
    behind = [gang for gang in _starving(cycle, line) if gang not in tried]
    place = turn % max(len(behind), 1)
    gang = next(_able(cycle, behind[place:] + behind[:place]), None)
    if gang is not None and not _reserve_for(cycle, gang):
        cycle.wake((turn + 1) * TURN_SECONDS)


def _starving(cycle: CycleState, line: Iterable[Gang]) -> Iterator[Gang]:
    """Those at the head of the line that only room keeps waiting, and have waited too long."""
    for gang in line:
        still = cycle.blocked.get(gang.key)
        if still is None or still.obstacle != "capacity" or not gang.minimum():
            continue
        if not cycle.is_starving(gang):
            return
        yield gang


def _able(cycle: CycleState, line: Iterable[Gang]) -> Iterator[Gang]:
    return (gang for gang in line if could_ever_run(cycle, gang))


def _drop_futile(cycle: CycleState) -> None:
    """A group that cannot start on its nodes although no other pod is left there keeps them in vain."""
    for key, nodes in list(cycle.reservations.items()):
        still = cycle.blocked.get(key)
        if still is None or still.obstacle != "capacity":
            continue
        others = [pod for node in nodes for pod in cycle.view.pods_on(node) if pod.group != key]
        if all(pod.is_critical for pod in others):
            del cycle.reservations[key]
            assert cycle.closed is not None, "what is reserved is closed"
            cycle.closed[[cycle.resources.rows[node] for node in nodes]] = False


def _close(cycle: CycleState, gang: Gang, nodes: Sequence[str]) -> None:
    resources = cycle.resources
    if cycle.closed is None:
        cycle.closed = np.zeros(len(resources), dtype=np.bool_)
    cycle.closed[[resources.rows[node] for node in nodes]] = True
    cycle.reservations[gang.key] = tuple(nodes)
    start = _start(cycle, set(nodes))
    if start is not None and (cycle.reserved_start is None or start < cycle.reserved_start):
        cycle.reserved_start = start


def _start(cycle: CycleState, nodes: set[str]) -> float | None:
    """When the last pod there ends, if all of them are known to."""
    latest = cycle.now
    for node in nodes:
        for pod in cycle.view.pods_on(node):
            gang = cycle.view.gang_of(pod)
            if gang.group.estimate_seconds is None:
                return None
            latest = max(latest, pod.since + gang.group.estimate_seconds)
    return latest


def _choose(cycle: CycleState, gang: Gang) -> tuple[str, ...]:
    """The nodes that need to lose least until the whole minimum fits; none where it never would."""
    minimum = gang.minimum()
    eq_classes = wanted(cycle, minimum.least())
    taken = np.zeros(len(cycle.resources), dtype=np.bool_)
    if cycle.closed is not None:
        taken |= cycle.closed
    tier = cycle.view.topology.widest(gang.group.closeness)
    if tier is None:
        return _names(cycle, _tried(cycle, gang, eq_classes, taken))
    found = []
    for domain in range(1, len(tier.names)):
        rows = _rows(cycle, eq_classes, taken | ~tier.mask(domain))
        if rows is not None:
            found.append((_occupied(cycle, rows), tier.names[domain], domain))
    for _, _, domain in sorted(found)[:DOMAINS_TRIED]:
        if rows := _tried(cycle, gang, eq_classes, taken | ~tier.mask(domain)):
            return _names(cycle, rows)
    return ()


def _tried(cycle: CycleState, gang: Gang, eq_classes: list[tuple[EquivalenceClass, int]], taken: Mask) -> list[int]:
    """Rows on which the group would start without all pods that ever leave; more are tried where few do not suffice."""
    rows = _rows(cycle, eq_classes, taken)
    if rows is None:
        return []
    able = np.zeros(len(cycle.resources), dtype=np.bool_)
    for eq_class, _ in eq_classes:
        able |= eq_class.eligible
    others = [row for row in _nearest_to_free(cycle, eq_classes[0][0]).tolist() if able[row] and not taken[row]]
    others = rows + [row for row in others if row not in rows]
    number = len(rows)
    while not (found := _dry_run(cycle, gang, others[:number])):
        if number >= min(len(others), MOST_NODES_TRIED):
            return []
        number *= 2
    return found


def _dry_run(cycle: CycleState, gang: Gang, rows: list[int]) -> list[int]:
    resources = cycle.resources
    mark = resources.mark()
    for row in rows:
        node = resources.nodes[row]
        assert node is not None, "an open row has a node"
        for pod in cycle.view.pods_on(node.name):
            if not pod.is_critical and pod.group != gang.key:
                cycle.assume_evicted(pod)
    mask = np.zeros(len(resources), dtype=np.bool_)
    mask[rows] = True
    for decided in (*cycle.bound.values(), *cycle.promised.values()):
        for one in decided:
            if mask[one.row] and one.pod.group != gang.key:
                cycle.assume_finished(one)
    placed = cycle.gangs.place_minimum(gang, NodeFilter(mask, later=True))
    resources.rollback(mark)
    return sorted({one.row for one in placed or ()})


def _rows(cycle: CycleState, eq_classes: list[tuple[EquivalenceClass, int]], taken: Mask) -> list[int] | None:
    """The fewest rows, by the count of slots alone."""
    taken = taken.copy()
    chosen: list[int] = []
    for eq_class, count in eq_classes:
        slots = most_when_empty(eq_class) * ~taken
        for row in _nearest_to_free(cycle, eq_class).tolist():
            if count <= 0:
                break
            if slots[row]:
                chosen.append(row)
                taken[row] = True
                count -= int(slots[row])
        if count > 0:
            return None
    return chosen


def _nearest_to_free(cycle: CycleState, eq_class: EquivalenceClass) -> Ints:
    """All rows, those first that have to lose the smallest share of what they could hold."""
    slots = most_when_empty(eq_class)
    missing = slots - np.minimum(eq_class.slots, slots)
    return np.lexsort((cycle.resources.rank, missing / np.maximum(slots, 1), slots == 0))


def _occupied(cycle: CycleState, rows: list[int]) -> float:
    resources = cycle.resources
    used = (resources.whole[:, rows] - resources.free[:, rows]) / np.maximum(resources.whole[:, rows], 1)
    return round(float(used.sum()), 6)  # the order of summing is not a difference


def _names(cycle: CycleState, rows: Sequence[int]) -> tuple[str, ...]:
    nodes = (cycle.resources.nodes[row] for row in rows)
    return tuple(sorted(node.name for node in nodes if node is not None))
