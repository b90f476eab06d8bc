"""Hands out what is free: the neediest queue first, its first group next, minima before surplus.

After each group its queue stands in line again with its new share. Groups that a node is kept for come before all
others: room was made on their behalf. A group that waited too long because its queue holds all it may keeps the queue
from handing what becomes free to those behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from shoal.scheduling.cycle import Cycle, Standstill, add_requests, asked_at_least
from shoal.scheduling.groups import Phase
from shoal.scheduling.members import Members
from shoal.scheduling.possible import could_ever_run
from shoal.scheduling.requests import Amounts
from shoal.scheduling.shares import Refusal

Entry = tuple[tuple[object, ...], Members]


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
        line = lines[name]
        _, members = heappop(line)
        if _serve(cycle, members, alone=not line and not queues):
            order = cycle.shares.order(name)
            if _has_more(cycle, members):
                heappush(line, (cycle.order(members), members))
        else:
            cycle.lines.setdefault(name, []).append(members)
            if cycle.view.queues[name].fifo and _holds_the_line(cycle, members):
                _stop(cycle, members, line)
        if line:
            heappush(queues, (order, name))


def _lines(cycle: Cycle) -> dict[str, list[Entry]]:
    """Groups that may be placed, per queue, as heaps."""
    lines: dict[str, list[Entry]] = {}
    for members in cycle.view.unsettled.values():
        if not members.waiting or members.key in cycle.undone:
            continue
        if members.known and cycle.phase(members) is Phase.PENDING:
            continue
        if (why := _unfit(cycle, members)) is not None:
            cycle.still[members.key] = why
            continue
        lines.setdefault(members.group.queue, []).append((cycle.order(members), members))
    for line in lines.values():
        heapify(line)
    return lines


def _unfit(cycle: Cycle, members: Members) -> Standstill | None:
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
    if lack := members.lack():
        return Standstill("pods", words=lack[1], reason=lack[0])
    return None


def _first_those_with_a_node(cycle: Cycle, lines: dict[str, list[Entry]]) -> None:
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
            heapify(line)
            if members.key not in cycle.promised and _has_more(cycle, members):
                heappush(line, (cycle.order(members), members))
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
    refusal, beyond = _refusal(cycle, members, asked)
    if refusal:
        cycle.still[members.key] = Standstill("quota", refusal)
        is_starving = beyond if cycle.shares.by_weight else cycle.is_starving(members)
        if is_starving and could_ever_run(cycle, members):
            cycle.shares.claim(queue, asked.items())
            cycle.claimants.add(members.key)
        return False
    mark = cycle.room.mark()
    placed = cycle.gangs.place_minimum(members, cycle.where(members))
    if placed is not None:
        exact: Amounts = {}
        add_requests(exact, placed, cycle.view)
        if exact != asked and (refusal := cycle.shares.refusal(queue, exact, beyond_deserved=beyond)):
            cycle.room.rollback(mark)
            cycle.still[members.key] = Standstill("quota", refusal)
            return False
        cycle.bind(members, placed, exact)
        cycle.still.pop(members.key, None)
        return True
    if cycle.room.releasing:
        placed = cycle.gangs.place_minimum(members, cycle.where(members, later=True))
        if placed is not None:
            cycle.promise(members, placed)
            cycle.still[members.key] = Standstill("leaving")
            return False
    cycle.still[members.key] = Standstill("capacity")
    return False


def _refusal(cycle: Cycle, members: Members, asked: Mapping[str, int]) -> tuple[Refusal | None, bool]:
    """Whether the queue refuses. A group that waited too long is held to the ceiling only, not to what is deserved."""
    alike = (members.group.queue, members.minimum().alike)
    refusal = cycle.refusals.get(alike)
    if refusal is None:
        refusal = cycle.shares.refusal(members.group.queue, asked)
        if refusal is None:
            return None, False
        cycle.refusals[alike] = refusal
    if not cycle.shares.by_weight or not cycle.is_starving(members):
        return refusal, False
    return cycle.shares.refusal(members.group.queue, asked, beyond_deserved=True), True


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
        cycle.still[members.key] = Standstill("capacity")
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


def _stop(cycle: Cycle, head: Members, line: list[Entry]) -> None:
    """Strictly in order: whoever is behind a group that cannot start waits with it."""
    for _, members in sorted(line):
        words = f"{head.name} is ahead of it in queue {head.group.queue}, which serves strictly in order"
        cycle.still[members.key] = Standstill("order", words=words, reason="Behind")
        cycle.lines[head.group.queue].append(members)
    line.clear()
