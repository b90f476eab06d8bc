"""Hands out what is free: the neediest queue first, its first group next, minima before surplus.

After each group its queue stands in line again with its new share. Groups that a node is kept for come before all
others: room was made on their behalf. A group that waited too long because its queue holds all it may keeps the queue
from handing what becomes free to those behind it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cycle_state import Cycle, Standstill, add_requests, asked_at_least
from shoal.scheduler.planner.feasibility import could_ever_run
from shoal.scheduler.planner.gang import Members
from shoal.scheduler.planner.gang_types import PENDING
from shoal.scheduler.planner.placement import Placed

NO_ROOM = Standstill("capacity")
Entry = tuple[tuple[object, ...], Members]


class Line:
    """The groups of one queue that may be placed, in their order; whoever gets something may stand in line again."""

    __slots__ = ("_entries", "_next")

    def __init__(self, entries: list[Entry]) -> None:
        entries.sort()
        self._entries = entries
        self._next = 0  # who was there before is out of the line

    def __bool__(self) -> bool:
        return self._next < len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[self._next :])

    def next(self) -> Members:
        self._next += 1
        return self._entries[self._next - 1][1]

    def add(self, entry: Entry) -> None:
        insort(self._entries, entry, lo=self._next)

    def remove(self, entry: Entry) -> None:
        self._entries.remove(entry)

    def clear(self) -> None:
        self._next = len(self._entries)


def allocate(cycle: Cycle) -> None:
    lines = _lines(cycle)
    _first_those_with_a_node(cycle, lines)
    queues = [(cycle.shares.order(name), name) for name in lines]
    heapify(queues)
    while queues:
        order, name = heappop(queues)
        if not cycle.shares.by_weight:
            fresh = cycle.shares.order(name)
            if fresh > order and queues and queues[0][0] < fresh:
                heappush(queues, (fresh, name))  # somebody below the same parent was served meanwhile
                continue
        if _serve_next(cycle, name, lines[name], last=not queues):
            order = cycle.shares.order(name)
        if lines[name]:
            heappush(queues, (order, name))


def _serve_next(cycle: Cycle, queue: str, line: Line, *, last: bool) -> bool:
    """Go down the line to the first who gets something: until then no share changes, and the queue's turn lasts."""
    behind = cycle.lines.setdefault(queue, [])
    refused = cycle.refused.setdefault(queue, {})
    fifo = cycle.view.queues[queue].fifo
    while line:
        members = line.next()
        alike = refused.get(members.minimum().alike) if members.group.is_charged else None
        if alike is not None and _waits_patiently(cycle, members):
            cycle.still[members.key] = alike
        elif _serve(cycle, members, alone=last and not line):
            if _has_more(cycle, members):
                line.add((cycle.order(members), members))
            return True
        behind.append(members)
        if fifo and _holds_the_line(cycle, members):
            _stop(cycle, members, line)
    return False


def _waits_patiently(cycle: Cycle, members: Members) -> bool:
    """Nobody of it has a node or was promised one, and it has not waited too long: what its like is refused, it is."""
    until = members.starves_at
    if members.sitting or until is None or cycle.now >= until:
        return False
    if members.key in cycle.bound or members.key in cycle.promised or members.key in cycle.claimants:
        return False
    cycle.wake(until)
    return True


def _lines(cycle: Cycle) -> dict[str, Line]:
    """Groups that may be placed, per queue."""
    lines: dict[str, list[Entry]] = {}
    usable = {name for name, queue in cycle.view.queues.items() if queue.open}
    undone = cycle.undone
    for members in cycle.view.unsettled.values():
        # A gang whose pods are all gated waits too, for its gates.
        if not (members.waiting or (members.gated and members.lack())) or (undone and members.key in undone):
            continue
        if members.known and cycle.phase(members) is PENDING:
            continue
        queue = members.group.queue
        if not members.known or queue not in usable or members.lack() is not None:
            cycle.still[members.key] = _unfit(cycle, members)
            continue
        lines.setdefault(queue, []).append((cycle.order(members), members))
    return {name: Line(entries) for name, entries in lines.items()}


def _unfit(cycle: Cycle, members: Members) -> Standstill:
    """What keeps a group out of line whatever is free."""
    group = members.group
    queue = cycle.view.queues.get(group.queue)
    if not members.known:
        words = f"there is no PodGroup {group.key.name} yet"
        return Standstill("pods", words=words, reason="NotEnoughTasks")
    if queue is None:
        words = f"there is no queue {group.queue}; create it or name another"
        return Standstill("queue", words=words, reason="QueueMissing")
    if not queue.open:
        words = f"queue {group.queue} is closed; pods are placed again when it is opened"
        return Standstill("queue", words=words, reason="QueueClosed")
    lack = members.lack()
    assert lack is not None, "nothing else keeps it out"
    return Standstill("pods", words=lack[1], reason=lack[0])


def _first_those_with_a_node(cycle: Cycle, lines: dict[str, Line]) -> None:
    nominated, reserved = cycle.view.nominated, cycle.view.reservations.keys()
    if not nominated and not reserved:
        return
    entries = [entry for line in lines.values() for entry in line if entry[1].key in nominated | reserved]
    # Pods were asked to leave for those with a nomination; for the others nobody was.
    for entry in sorted(entries, key=lambda entry: (entry[1].key not in nominated, entry[0])):
        members = entry[1]
        if _serve(cycle, members, alone=False) or members.key in cycle.promised:
            line = lines[members.group.queue]
            line.remove(entry)
            if members.key not in cycle.promised and _has_more(cycle, members):
                line.add((cycle.order(members), members))
            if not line:
                del lines[members.group.queue]
        if members.key not in cycle.promised:
            cycle.still.pop(members.key, None)  # it stands in line like the others


def _serve(cycle: Cycle, members: Members, *, alone: bool) -> bool:
    """Place what comes next for the group: its minimum, or some surplus. False where nothing could be bound."""
    if members.key in cycle.promised:
        return False
    if not members.minimum() or members.key in cycle.bound:
        return _serve_surplus(cycle, members, alone=alone)
    queue = members.group.queue
    asked = asked_at_least(members, cycle.view)
    still, beyond = _refusal(cycle, members, asked)
    if still:
        cycle.still[members.key] = still
        is_starving = beyond if cycle.shares.by_weight else cycle.is_starving(members)
        if is_starving and could_ever_run(cycle, members):
            cycle.shares.claim(queue, asked.items())
            cycle.claimants.add(members.key)
        return False
    mark = cycle.room.mark()
    placed = _try(cycle, members, later=False)
    if placed is not None:
        exact: Amounts = {}
        add_requests(exact, placed, cycle.view)
        if exact != asked and (refusal := cycle.refusal(members, exact, beyond_deserved=beyond)):
            cycle.room.rollback(mark)
            cycle.still[members.key] = Standstill("quota", refusal)
            return False
        cycle.bind(members, placed, exact)
        cycle.still.pop(members.key, None)
        return True
    if cycle.room.releasing:
        placed = _try(cycle, members, later=True)
        if placed is not None:
            cycle.promise(members, placed)
            cycle.still[members.key] = Standstill("leaving")
            return False
    cycle.still[members.key] = NO_ROOM
    return False


def _try(cycle: Cycle, members: Members, *, later: bool) -> list[Placed] | None:
    """Room is only ever handed out here, so whoever asks for what somebody was refused is refused without a look."""
    where, kind = cycle.where(members, later=later), cycle.gangs.kind(members)
    alike = (kind, where.mask is None, later)
    if alike in cycle.unplaceable:
        return None
    placed = cycle.gangs.place_minimum(members, where)
    if placed is None and kind is not None:
        cycle.unplaceable.add(alike)
    return placed


def _refusal(cycle: Cycle, members: Members, asked: Mapping[str, int]) -> tuple[Standstill | None, bool]:
    """Whether the queue refuses. A group that waited too long is held to the ceiling only, not to what is deserved."""
    if not members.group.is_charged:
        return None, False
    claims, queue = cycle.heeds_claims(members), members.group.queue
    known = cycle.refused.setdefault(queue, {}) if claims else cycle.refused_claimants.setdefault(queue, {})
    still = known.get(members.minimum().alike)
    if still is None:
        refusal = cycle.refusal(members, asked)
        if refusal is None:
            return None, False
        still = known[members.minimum().alike] = Standstill("quota", refusal)
    if not cycle.shares.by_weight or not cycle.is_starving(members):
        return still, False
    refusal = cycle.refusal(members, asked, beyond_deserved=True)
    return None if refusal is None else Standstill("quota", refusal), True


def _serve_surplus(cycle: Cycle, members: Members, *, alone: bool) -> bool:
    """One pod at a time, so that shares are looked at again after each; all at once where nobody else waits."""
    done = {one.pod.key for one in cycle.bound.get(members.key, ())}
    pods = [pod for pod in members.surplus() if pod.key not in done]
    if not pods:
        return False
    queue = members.group.queue
    refusal = cycle.shares.refusal(queue, dict(cycle.view.vector_of(pods[0]).counted))
    if refusal:
        cycle.still[members.key] = Standstill("quota", refusal)
        return False
    most = 1
    if alone and all(pod.requests == pods[0].requests for pod in pods):
        most = _affordable(cycle, queue, pods[0].requests, len(pods))
    beside = cycle.bound.get(members.key, ())
    placed = cycle.gangs.place_one(members, pods, most, cycle.where(members), beside=beside)
    if not placed:
        cycle.still[members.key] = NO_ROOM
        return False
    cycle.bind(members, placed)
    cycle.still.pop(members.key, None)
    return True


def _affordable(cycle: Cycle, queue: str, requests: Mapping[str, int], most: int) -> int:
    """How many such pods the queue may still hold."""
    counted = cycle.room.vector(requests).counted
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if cycle.shares.refusal(queue, {name: amount * middle for name, amount in counted}):
            high = middle - 1
        else:
            low = middle
    return low


def _has_more(cycle: Cycle, members: Members) -> bool:
    return len(members.minimum().pods) > len(cycle.bound.get(members.key, ()))


def _holds_the_line(cycle: Cycle, members: Members) -> bool:
    return members.key not in cycle.bound and bool(members.minimum()) and could_ever_run(cycle, members)


def _stop(cycle: Cycle, head: Members, line: Line) -> None:
    """Strictly in order: whoever is behind a group that cannot start waits with it."""
    for _, members in line:
        words = f"{head.name} is ahead of it in queue {head.group.queue}, which serves strictly in order"
        cycle.still[members.key] = Standstill("order", words=words, reason="Behind")
        cycle.lines[head.group.queue].append(members)
    line.clear()
