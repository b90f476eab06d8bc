"""Who may begin to create pods: a group is let into its queue when its minimum would fit the accounts.

Nothing is placed here. Admitted groups count against those that come after them; one that sat admitted for too long
without a single place goes back and makes room for the next. What others would have to give up for a group counts as
free: outside it could never ask for it.

A group that has waited too long is admitted although the accounts are full: from then on it counts against those that
come after it, and nodes can be reserved for it. One such group per queue at a time, because every one of them holds
back the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from heapq import heapify, heappop, heappush

from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cycle_state import Cycle, Standstill, asked_at_least
from shoal.scheduler.planner.fair_share import SLACK, Refusal, Standing
from shoal.scheduler.planner.feasibility import could_ever_run
from shoal.scheduler.planner.gang import Members
from shoal.scheduler.planner.gang_types import INQUEUE, PENDING, UNKNOWN
from shoal.scheduler.planner.namespace_quota import asked_of_cluster, asked_of_namespace
from shoal.scheduler.planner.preemption_candidates import has_weaker, is_losable, steps_of_queue, steps_within, yielded

LONGEST_BACKOFF_SECONDS = 600.0
MOST_DOUBLINGS = 16
NAMESPACE_QUOTA = "NamespaceQuota"


def send_back(cycle: Cycle) -> None:
    """Admitted, never placed, and its time is over: others may want what it counts for in the accounts."""
    for members in cycle.view.unsettled.values():
        group = members.group
        if group.inqueue_since is None or group.phase is not INQUEUE or members.sitting or members.lone:
            continue
        if not group.min_resources or members.key in cycle.view.reservations:
            continue  # keeps nothing from others, or will have its nodes
        queue = cycle.view.queues.get(group.queue)
        seconds = queue.inqueue_timeout_seconds if queue else None
        ends = group.inqueue_since + (cycle.settings.inqueue_timeout_seconds if seconds is None else seconds)
        cycle.wake(ends)
        if cycle.now < ends or not members.waiting:
            continue
        record = cycle.record(members)
        pause = _pause(cycle, group.timeouts)
        record.phase, record.inqueue_since = PENDING, None
        record.not_before, record.timeouts = cycle.now + pause, group.timeouts + 1
        cycle.wake(record.not_before)


def _pause(cycle: Cycle, timeouts: int) -> float:
    """How long a group stays outside that was sent back so often before."""
    return min(cycle.settings.backoff_seconds * 2.0 ** min(timeouts, 64), LONGEST_BACKOFF_SECONDS)


def enqueue(cycle: Cycle) -> None:
    pending: dict[str, list[Members]] = {}
    for members in cycle.view.unsettled.values():
        if members.lone or not members.known or cycle.phase(members) is not PENDING:
            continue
        if not _is_held_back(cycle, members):
            pending.setdefault(members.group.queue, []).append(members)
    if not pending:
        return
    promised = _Promised(cycle)
    queues = [(cycle.shares.order(name), name) for name in pending]
    heapify(queues)
    for line in pending.values():  # who had its time comes after all who had none, else two of them alternate for ever
        line.sort(key=lambda members: (members.group.timeouts > 0, cycle.order(members)), reverse=True)
    refused: dict[str, list[Members]] = {}
    while queues:
        _, name = heappop(queues)
        members = pending[name].pop()
        refusal = promised.refusal(members) if cycle.settings.enqueue else None
        if refusal is None or _is_promised(cycle, members, refusal):
            _admit(cycle, members)
            promised.add(members)
        else:
            if not _is_nobody_elses_business(refusal):
                refused.setdefault(name, []).append(members)
            cycle.still[members.key] = refusal
            cycle.lines.setdefault(name, []).append(members)
            if cycle.view.queues[name].fifo and not _is_nobody_elses_business(refusal):
                _hold_line(cycle, members, pending.pop(name))
                continue
        if pending[name]:
            heappush(queues, (cycle.shares.order(name), name))
    _admit_starving(cycle, refused)


def _admit(cycle: Cycle, members: Members) -> None:
    record = cycle.record(members)
    record.phase, record.inqueue_since = INQUEUE, cycle.now


def _is_held_back(cycle: Cycle, members: Members) -> bool:
    group = members.group
    queue = cycle.view.queues.get(group.queue)
    if queue is None:
        words = f"there is no queue {group.queue}; create it or name another"
        cycle.still[members.key] = Standstill("queue", words=words, reason="QueueMissing")
    elif not queue.open:
        words = f"queue {group.queue} is closed; it is let in when the queue is opened"
        cycle.still[members.key] = Standstill("queue", words=words, reason="QueueClosed")
    elif cycle.now < cycle.record(members).not_before:
        pause = _pause(cycle, max(cycle.record(members).timeouts - 1, 0))
        words = (
            f"it had its time in the queue without one pod finding a place, and stays out of it for {pause:g} seconds"
        )
        cycle.still[members.key] = Standstill("backoff", words=words, reason="InqueueTimeout")
        cycle.wake(cycle.record(members).not_before)
    else:
        return False
    return True


def _is_promised(cycle: Cycle, members: Members, refusal: Standstill) -> bool:
    """Whether its promised waiting time is over. The promise is kept once, and neither against a namespace's quota nor
    to a group that asks for more than may ever be had: admitted, it would only keep others out."""
    if _is_nobody_elses_business(refusal):
        return False
    deadline = cycle.deadline(members)
    cycle.wake(deadline)
    return cycle.now >= deadline and not members.group.timeouts


def _admit_starving(cycle: Cycle, refused: Mapping[str, list[Members]]) -> None:
    """One group of each queue: the one whose time was over first, unless one that precedes it still has no place."""
    for name, line in refused.items():
        starves_at, _, first = min((_starves_at(cycle, members), members.key, members) for members in line)
        cycle.wake(starves_at)
        if cycle.now >= starves_at and not _has_earlier(cycle, name, starves_at):
            _admit(cycle, first)
            del cycle.still[first.key]
            cycle.lines[name].remove(first)


def _has_earlier(cycle: Cycle, queue: str, starves_at: float) -> bool:
    """Whether the queue has an admitted group that keeps resources from others and started to starve before that."""
    for members in cycle.view.accounts[queue].groups.values():
        group = members.group
        if not group.min_resources or members.sitting or group.created + cycle.settings.starving_seconds > starves_at:
            continue
        if cycle.phase(members) is INQUEUE and _starves_at(cycle, members) <= starves_at:
            return True
    return False


def _starves_at(cycle: Cycle, members: Members) -> float:
    """When it has waited too long. One that was sent back may be one that no node can take: that is looked up where
    its pods exist; otherwise it waits twice as long each time."""
    patience, timeouts = cycle.settings.starving_seconds, members.group.timeouts
    if (timeouts or cycle.phase(members) is INQUEUE) and members.waiting and members.lack() is None:
        asked_at_least(members, cycle.view)
        timeouts = 0 if could_ever_run(cycle, members) else MOST_DOUBLINGS
    return members.group.created + patience * 2.0 ** min(timeouts, MOST_DOUBLINGS)


def _is_nobody_elses_business(refusal: Standstill) -> bool:
    """Nobody needs to wait for it: its namespace has no more, or alone it asks for more than may ever be had."""
    return refusal.reason == NAMESPACE_QUOTA or _can_never_be_had(refusal)


def _can_never_be_had(refusal: Standstill) -> bool:
    figures = refusal.refusal
    return figures is not None and figures.need > figures.limit


def _hold_line(cycle: Cycle, head: Members, others: Iterable[Members]) -> None:
    for members in others:
        words = f"{head.name} is ahead of it in queue {head.group.queue}, which serves strictly in order"
        cycle.still[members.key] = Standstill("order", words=words, reason="Behind")


class _Promised:
    """What admitted groups will ask for, in the cluster, in each queue and in each namespace."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._all: Amounts = {}
        self._queues: dict[str, Amounts] = {}
        self._namespaces: dict[str, Amounts] = {}
        self._elastic: dict[str, Amounts] = {}
        self._weaker: dict[tuple[str, int], Amounts] = {}  # by queue and priority
        self._gives: dict[str, Amounts] = {}  # by queue: what all its groups could
        self._borrowed: dict[tuple[str, str], Mapping[str, float]] = {}  # by others than a queue, below another or all
        self._kept: dict[object, str] = {}  # by which budgets, for all who ask alike
        self._unkept: _Promised | None = None
        for members in cycle.view.unsettled.values():
            if not members.lone and cycle.phase(members) in (INQUEUE, UNKNOWN):
                self.add(members)

    def add(self, members: Members) -> None:
        """Gated pods ask for nothing before their gates are removed, so their part keeps nothing from others."""
        group, found = members.group, dict(members.allocated)
        for pod in members.gated.values():
            _add(found, pod.requests if pod.gated else {})
        still = {r: max(a - found.get(r, 0), 0) for r, a in (group.min_resources or {}).items()}
        line = self._cycle.shares.standings.get(group.queue)
        for above in line.line if line else ():
            _add(self._queues.setdefault(above.queue.name, {}), still)
        _add(self._all, still)
        if group.key.namespace in self._cycle.view.quotas:
            _add(self._namespaces.setdefault(group.key.namespace, {}), asked_of_namespace(members))

    def refusal(self, members: Members) -> Standstill | None:
        found = self._refusal(members)
        if found is None or found.reason == NAMESPACE_QUOTA or not self._cycle.view.budgets:
            return found
        if self._unkept is None:
            self._unkept = copy(self)  # the same accounts, asked as if nobody were kept
            self._unkept._weaker, self._unkept._gives, self._unkept._borrowed = {}, {}, {}
        return replace(found, kept=self._unkept.keepers(members))

    def keepers(self, members: Members) -> str:
        """Which budgets keep those for whose places the group would be let in; nothing where they are no help."""
        cycle, group = self._cycle, members.group
        asked = asked_of_cluster(group.min_resources)
        alike = (group.queue, group.priority, group.guest, frozenset(asked))
        with cycle.without_budgets():
            if self._refusal(members) is not None:
                return ""
            if alike in self._kept:
                return self._kept[alike]
            steps = steps_within(cycle, members) if self._yielding(members) else []
            if self._reclaimable(group.queue, asked):
                others = (name for name in cycle.view.accounts if name != group.queue)
                steps += [s for name in others if is_losable(cycle, name, asked) for s in steps_of_queue(cycle, name)]
        going = {pod.key: pod for step in steps for pod in step.pods}
        self._kept[alike] = cycle.allowance.keepers(going.values())
        return self._kept[alike]

    def _refusal(self, members: Members) -> Standstill | None:
        asked, quota = asked_of_cluster(members.group.min_resources), self._over_quota(members)
        if quota is not None and _can_never_be_had(quota):
            return quota  # whatever else it waits for now
        return self._over_queue(members, asked) or quota or self._over_cluster(members, asked)

    def _over_queue(self, members: Members, asked: Mapping[str, int]) -> Standstill | None:
        for standing in self._cycle.shares.standings[members.group.queue].line:
            waiting = self._queues.get(standing.queue.name, {})
            for name, need in asked.items():
                used = standing.allocated.get(name, 0) + waiting.get(name, 0)
                limit = standing.ceiling.get(name, float("inf"))
                if used + need <= limit + SLACK:
                    continue
                spare: float = max(self._lent(standing.queue.name, name), self._yielding(members).get(name, 0))
                spare += self._reclaimable(members.group.queue, asked, within=standing).get(name, 0)
                if used - spare + need > limit + SLACK:
                    refusal = Refusal(standing.queue.name, name, need, used, limit)
                    # A queue that could have everything is as large as the cluster: that is what is too small.
                    everything = limit >= self._cycle.shares.total.get(name, 0)
                    return Standstill(
                        "quota", refusal, over_cluster=everything and name not in standing.queue.capability
                    )
        return None

    def _lent(self, queue: str, resource: str) -> int:
        """What the queue's groups hold beyond their minima, and would give back."""
        if queue not in self._elastic:
            found: Amounts = {}
            account = self._cycle.view.accounts.get(queue)
            for members in account.groups.values() if account else ():
                least = members.group.min_resources
                if least is not None:
                    _add(found, {r: max(a - least.get(r, 0), 0) for r, a in members.allocated.items()})
            self._elastic[queue] = found
        return self._elastic[queue].get(resource, 0)

    def _yielding(self, members: Members) -> Amounts:
        """What groups of its queue with less priority would give up for it."""
        cycle, group = self._cycle, members.group
        if not cycle.settings.preempt or group.guest or not has_weaker(cycle, members):
            return {}
        place = (group.queue, group.priority)
        if place not in self._weaker:
            others = cycle.view.accounts[group.queue].groups.values()
            self._weaker[place] = yielded(cycle, [other for other in others if other.group.priority < group.priority])
        return self._weaker[place]

    def _reclaimable(self, queue: str, asked: Mapping[str, int], within: Standing | None = None) -> Mapping[str, float]:
        """What other queues hold beyond their parts, there or anywhere, where this one would stay within its own."""
        cycle, shares = self._cycle, self._cycle.shares
        own, waiting = shares.part(queue), self._queues.get(queue, {})
        held = shares.standings[queue].allocated
        is_entitled = any(r in own for r in asked) and all(
            held.get(r, 0) + waiting.get(r, 0) + need <= own[r] + SLACK for r, need in asked.items() if r in own
        )
        if not cycle.settings.reclaim or not is_entitled or within is shares.standings[queue]:
            return {}
        place = (queue, within.queue.name if within else "")
        if place not in self._borrowed:
            self._borrowed[place] = shares.borrowed(queue, within, self._could_give)
        return self._borrowed[place]

    def _could_give(self, queue: str) -> Amounts:
        if queue not in self._gives:
            groups = self._cycle.view.accounts[queue].groups.values()
            self._gives[queue] = yielded(self._cycle, [members for members in groups if members.is_reclaimable])
        return self._gives[queue]

    def _over_quota(self, members: Members) -> Standstill | None:
        """What its namespace allows, less what pods there take and what groups let in before it will.

        Of several quotas the one that no waiting helps against, where there is such a one.
        """
        namespace, quotas = members.group.key.namespace, self._cycle.view.quotas
        if namespace not in quotas:
            return None
        found: list[Standstill] = []
        waiting, asked = self._namespaces.get(namespace, {}), asked_of_namespace(members)
        for name, quota in quotas.of(namespace):
            for resource, need in asked.items():
                limit = quota.hard.get(resource)
                used = quotas.taken(namespace, quota, resource) + waiting.get(resource, 0)
                if limit is not None and used + need > limit:
                    words = f"quota {name} of namespace {namespace}"
                    refusal = Refusal(words, resource, need, used, limit)
                    found.append(Standstill("quota", refusal, words=words, reason=NAMESPACE_QUOTA))
        return next((each for each in found if _can_never_be_had(each)), found[0] if found else None)

    def _over_cluster(self, members: Members, asked: Mapping[str, int]) -> Standstill | None:
        shares = self._cycle.shares
        used = self._used()
        for name, need in asked.items():
            limit = shares.total.get(name, 0) * self._cycle.settings.overcommit
            held = used.get(name, 0) + self._all.get(name, 0)
            if held + need <= limit + SLACK:
                continue
            spare = self._yielding(members).get(name, 0) + self._reclaimable(members.group.queue, asked).get(name, 0)
            if held - spare + need > limit + SLACK:
                return Standstill("quota", Refusal("", name, need, held, limit), over_cluster=True)
        return None

    def _used(self) -> Amounts:
        used: Amounts = {}
        view = self._cycle.view
        for account in (*view.accounts.values(), view.uncharged):
            _add(used, account.allocated)
        return used


def _add(amounts: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount
