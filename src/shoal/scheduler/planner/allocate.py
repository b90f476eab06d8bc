"""Allocates free resources: the neediest queue first, its first group next, minima before surplus.

After each group its queue is queued again with its new share. Groups that a node is kept for precede all others:
resources were freed on their behalf. A group that waited too long because its queue holds all it may keeps the queue
from giving what becomes free to those behind it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from shoal.kube.messages import Message
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cycle_state import BlockReason, CycleState, add_requests, asked_at_least
from shoal.scheduler.planner.feasibility import could_ever_run
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.gang_types import PENDING
from shoal.scheduler.planner.message_parts import behind, queue_missing
from shoal.scheduler.planner.placement import Placement

NO_CAPACITY = BlockReason("capacity")
Entry = tuple[tuple[object, ...], Gang]


class QueueLine:
    """The groups of one queue that may be placed, in their order; a group that got something may be added again."""

    __slots__ = ("_entries", "_next")

    def __init__(self, entries: list[Entry]) -> None:
        entries.sort()
        self._entries = entries
        self._next = 0  # who was there before is out of the line

    def __bool__(self) -> bool:
        return self._next < len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[self._next :])

    def next(self) -> Gang:
        self._next += 1
        return self._entries[self._next - 1][1]

    def add(self, entry: Entry) -> None:
        insort(self._entries, entry, lo=self._next)

    def remove(self, entry: Entry) -> None:
        self._entries.remove(entry)

    def clear(self) -> None:
        self._next = len(self._entries)


def allocate(cycle: CycleState) -> None:
    lines = _lines(cycle)
    _place_nominated(cycle, lines)
    queues = [(cycle.shares.order(name), name) for name in lines]
    heapify(queues)
    while queues:
        order, name = heappop(queues)
        if not cycle.shares.by_weight:
            fresh = cycle.shares.order(name)
            if fresh > order and queues and queues[0][0] < fresh:
                heappush(queues, (fresh, name))  # a queue below the same parent was served since
                continue
        if _place_next(cycle, name, lines[name], last=not queues):
            order = cycle.shares.order(name)
        if lines[name]:
            heappush(queues, (order, name))


def _place_next(cycle: CycleState, queue: str, line: QueueLine, *, last: bool) -> bool:
    """Go down the line to the first who gets something: until then no share changes, and the queue's turn lasts."""
    refused_before = cycle.lines.setdefault(queue, [])
    refused = cycle.refused.setdefault(queue, {})
    fifo = cycle.view.queues[queue].fifo
    while line:
        gang = line.next()
        alike = refused.get(gang.minimum().alike) if gang.group.is_charged else None
        if alike is not None and _is_waiting_normally(cycle, gang):
            cycle.blocked[gang.key] = alike
        elif _place_gang(cycle, gang, alone=last and not line):
            if _has_more(cycle, gang):
                line.add((cycle.order(gang), gang))
            return True
        refused_before.append(gang)
        if fifo and gang.key not in cycle.bound and gang.minimum() and could_ever_run(cycle, gang):
            # Strictly in order: groups behind one that cannot start wait with it.
            still = BlockReason("order", cause=behind(gang.name, queue), reason="Behind")
            for _, other in line:
                cycle.blocked[other.key] = still
                refused_before.append(other)
            line.clear()
    return False


def _is_waiting_normally(cycle: CycleState, gang: Gang) -> bool:
    """It has no node, bound or promised, and has not waited too long: a rejection of an equal group holds for it."""
    until = gang.starves_at
    if gang.placed or until is None or cycle.now >= until:
        return False
    if gang.key in cycle.bound or gang.key in cycle.promised or gang.key in cycle.claimants:
        return False
    cycle.wake(until)
    return True


def _lines(cycle: CycleState) -> dict[str, QueueLine]:
    """Groups that may be placed, per queue."""
    lines: dict[str, list[Entry]] = {}
    usable = {name for name, queue in cycle.view.queues.items() if queue.open}
    undone = cycle.undone
    for gang in cycle.view.unsettled.values():
        # A gang whose pods are all gated waits too, for its gates.
        if not (gang.waiting or (gang.gated and gang.missing())) or (undone and gang.key in undone):
            continue
        if gang.known and cycle.phase(gang) is PENDING:
            continue
        queue = gang.group.queue
        if not gang.known or queue not in usable or gang.missing() is not None:
            cycle.blocked[gang.key] = _ineligible_reason(cycle, gang)
            continue
        lines.setdefault(queue, []).append((cycle.order(gang), gang))
    return {name: QueueLine(entries) for name, entries in lines.items()}


def _ineligible_reason(cycle: CycleState, gang: Gang) -> BlockReason:
    """What keeps a group out of line whatever is free."""
    group = gang.group
    queue = cycle.view.queues.get(group.queue)
    if not gang.known:
        return BlockReason("pods", cause=Message("Group.Missing", {"group": group.key.name}), reason="NotEnoughTasks")
    if queue is None:
        return BlockReason("queue", cause=queue_missing(group.queue), reason="QueueMissing")
    if not queue.open:
        cause = Message("Turn.QueueClosedToPods", {"queue": group.queue})
        return BlockReason("queue", cause=cause, reason="QueueClosed")
    lack = gang.missing()
    assert lack is not None, "nothing else keeps it out"
    return BlockReason("pods", cause=lack[1], reason=lack[0])


def _place_nominated(cycle: CycleState, lines: dict[str, QueueLine]) -> None:
    nominated, reserved = cycle.view.nominated, cycle.view.reservations.keys()
    if not nominated and not reserved:
        return
    entries = [entry for line in lines.values() for entry in line if entry[1].key in nominated | reserved]
    # Pods were evicted for those with a nomination; for the others none were.
    for entry in sorted(entries, key=lambda entry: (entry[1].key not in nominated, entry[0])):
        gang = entry[1]
        if _place_gang(cycle, gang, alone=False) or gang.key in cycle.promised:
            line = lines[gang.group.queue]
            line.remove(entry)
            if gang.key not in cycle.promised and _has_more(cycle, gang):
                line.add((cycle.order(gang), gang))
            if not line:
                del lines[gang.group.queue]
        if gang.key not in cycle.promised:
            cycle.blocked.pop(gang.key, None)  # it is in line like the others


def _place_gang(cycle: CycleState, gang: Gang, *, alone: bool) -> bool:
    """Place the next pods of the group: its minimum, or some surplus. False where nothing could be bound."""
    if gang.key in cycle.promised:
        return False
    if not gang.minimum() or gang.key in cycle.bound:
        return _place_surplus(cycle, gang, alone=alone)
    queue = gang.group.queue
    asked = asked_at_least(gang, cycle.view)
    still, beyond = _refusal(cycle, gang, asked)
    if still:
        cycle.blocked[gang.key] = still
        is_starving = beyond if cycle.shares.by_weight else cycle.is_starving(gang)
        if is_starving and could_ever_run(cycle, gang):
            cycle.shares.claim(queue, asked.items())
            cycle.claimants.add(gang.key)
        return False
    mark = cycle.resources.mark()
    placed = _try(cycle, gang, later=False)
    if placed is not None:
        exact: Amounts = {}
        add_requests(exact, placed, cycle.view)
        if exact != asked and (refusal := cycle.refusal(gang, exact, beyond_deserved=beyond)):
            cycle.resources.rollback(mark)
            cycle.blocked[gang.key] = BlockReason("quota", refusal)
            return False
        cycle.bind(gang, placed, exact)
        cycle.blocked.pop(gang.key, None)
        return True
    if cycle.resources.releasing:
        placed = _try(cycle, gang, later=True)
        if placed is not None:
            cycle.nominate(gang, placed)
            cycle.blocked[gang.key] = BlockReason("leaving")
            return False
    cycle.blocked[gang.key] = NO_CAPACITY
    return False


def _try(cycle: CycleState, gang: Gang, *, later: bool) -> list[Placement] | None:
    """Free resources only shrink here, so a request equal to one already rejected is rejected without a search."""
    where, kind = cycle.node_filter(gang, later=later), cycle.gangs.kind(gang)
    alike = (kind, where.mask is None, later)
    if alike in cycle.unplaceable:
        return None
    placed = cycle.gangs.place_minimum(gang, where)
    if placed is None and kind is not None:
        cycle.unplaceable.add(alike)
    return placed


def _refusal(cycle: CycleState, gang: Gang, asked: Mapping[str, int]) -> tuple[BlockReason | None, bool]:
    """Whether the queue refuses. A group that waited too long is held to the ceiling only, not to what is deserved."""
    if not gang.group.is_charged:
        return None, False
    claims, queue = cycle.respects_claims(gang), gang.group.queue
    known = cycle.refused.setdefault(queue, {}) if claims else cycle.refused_claimants.setdefault(queue, {})
    still = known.get(gang.minimum().alike)
    if still is None:
        refusal = cycle.refusal(gang, asked)
        if refusal is None:
            return None, False
        still = known[gang.minimum().alike] = BlockReason("quota", refusal)
    if not cycle.shares.by_weight or not cycle.is_starving(gang):
        return still, False
    refusal = cycle.refusal(gang, asked, beyond_deserved=True)
    return None if refusal is None else BlockReason("quota", refusal), True


def _place_surplus(cycle: CycleState, gang: Gang, *, alone: bool) -> bool:
    """One pod at a time, so that shares are compared again after each; all at once where no other group waits."""
    done = {one.pod.key for one in cycle.bound.get(gang.key, ())}
    pods = [pod for pod in gang.surplus() if pod.key not in done]
    if not pods:
        return False
    queue = gang.group.queue
    refusal = cycle.shares.refusal(queue, dict(cycle.view.vector_of(pods[0]).counted))
    if refusal:
        cycle.blocked[gang.key] = BlockReason("quota", refusal)
        return False
    most = 1
    if alone and all(pod.requests == pods[0].requests for pod in pods):
        most = _affordable(cycle, queue, pods[0].requests, len(pods))
    beside = cycle.bound.get(gang.key, ())
    placed = cycle.gangs.place_one(gang, pods, most, cycle.node_filter(gang), beside=beside)
    if not placed:
        cycle.blocked[gang.key] = NO_CAPACITY
        return False
    cycle.bind(gang, placed)
    cycle.blocked.pop(gang.key, None)
    return True


def _affordable(cycle: CycleState, queue: str, requests: Mapping[str, int], most: int) -> int:
    """How many such pods the queue may still hold."""
    counted = cycle.resources.vector(requests).counted
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if cycle.shares.refusal(queue, {name: amount * middle for name, amount in counted}):
            high = middle - 1
        else:
            low = middle
    return low


def _has_more(cycle: CycleState, gang: Gang) -> bool:
    return len(gang.minimum().pods) > len(cycle.bound.get(gang.key, ()))
