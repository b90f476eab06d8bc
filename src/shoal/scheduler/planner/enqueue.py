"""Which groups may create pods: a group is admitted to its queue when its minimum would fit the accounts.

Nothing is placed here. Admitted groups count against those after them; one that stayed admitted for too long without a
single placement is sent back and leaves its share to the next. What others would have to give up for a group counts as
free: outside the queue it could never request it.

A group that has waited too long is admitted although the accounts are full: from then on it counts against those after
it, and nodes can be reserved for it. One such group per queue at a time, because every one of them holds back the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from heapq import heapify, heappop, heappush

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cycle_state import BlockReason, CycleState, asked_at_least
from shoal.scheduler.planner.fair_share import SLACK, QueueShare, ShareExceeded
from shoal.scheduler.planner.feasibility import could_ever_run
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.gang_types import INQUEUE, PENDING, UNKNOWN
from shoal.scheduler.planner.message_parts import behind, queue_missing
from shoal.scheduler.planner.namespace_quota import asked_of_cluster, asked_of_namespace
from shoal.scheduler.planner.preemption_candidates import (
    has_weaker,
    is_losable,
    reclaimable_amounts,
    steps_of_queue,
    steps_within,
)

LONGEST_BACKOFF_SECONDS = 600.0
MOST_DOUBLINGS = 16
NAMESPACE_QUOTA = "NamespaceQuota"


def requeue_timed_out(cycle: CycleState) -> None:
    """Requeue admitted groups that were not placed in time: others may need what they are charged for."""
    for gang in cycle.view.unsettled.values():
        group = gang.group
        if group.inqueue_since is None or group.phase is not INQUEUE or gang.placed or gang.lone:
            continue
        if not group.min_resources or gang.key in cycle.view.reservations:
            continue  # keeps nothing from others, or will have its nodes
        queue = cycle.view.queues.get(group.queue)
        seconds = queue.inqueue_timeout_seconds if queue else None
        ends = group.inqueue_since + (cycle.settings.inqueue_timeout_seconds if seconds is None else seconds)
        cycle.wake(ends)
        if cycle.now < ends or not gang.waiting:
            continue
        record = cycle.record(gang)
        pause = _backoff(cycle, group.timeouts)
        record.phase, record.inqueue_since = PENDING, None
        record.not_before, record.timeouts = cycle.now + pause, group.timeouts + 1
        cycle.wake(record.not_before)


def _backoff(cycle: CycleState, timeouts: int) -> float:
    """How long a group stays outside that was sent back so often before."""
    return min(cycle.settings.backoff_seconds * 2.0 ** min(timeouts, 64), LONGEST_BACKOFF_SECONDS)


def enqueue(cycle: CycleState) -> None:
    pending: dict[str, list[Gang]] = {}
    for gang in cycle.view.unsettled.values():
        if gang.lone or not gang.known or cycle.phase(gang) is not PENDING:
            continue
        if not _is_held_back(cycle, gang):
            pending.setdefault(gang.group.queue, []).append(gang)
    if not pending:
        return
    promised = _AdmittedDemand(cycle)
    queues = [(cycle.shares.order(name), name) for name in pending]
    heapify(queues)
    for line in pending.values():  # groups with a timeout follow all without one, else two of them alternate for ever
        line.sort(key=lambda gang: (gang.group.timeouts > 0, cycle.order(gang)), reverse=True)
    refused: dict[str, list[Gang]] = {}
    while queues:
        _, name = heappop(queues)
        gang = pending[name].pop()
        refusal = promised.refusal(gang) if cycle.settings.enqueue else None
        if refusal is None or _is_past_sla(cycle, gang, refusal):
            _admit(cycle, gang)
            promised.add(gang)
        else:
            if not _is_own_limit(refusal):
                refused.setdefault(name, []).append(gang)
            cycle.blocked[gang.key] = refusal
            cycle.lines.setdefault(name, []).append(gang)
            if cycle.view.queues[name].fifo and not _is_own_limit(refusal):
                still = BlockReason("order", cause=behind(gang.name, name), reason="Behind")
                cycle.blocked.update(dict.fromkeys((other.key for other in pending.pop(name)), still))
                continue
        if pending[name]:
            heappush(queues, (cycle.shares.order(name), name))
    _admit_starving(cycle, refused)


def _admit(cycle: CycleState, gang: Gang) -> None:
    record = cycle.record(gang)
    record.phase, record.inqueue_since = INQUEUE, cycle.now


def _is_held_back(cycle: CycleState, gang: Gang) -> bool:
    group = gang.group
    queue = cycle.view.queues.get(group.queue)
    if queue is None:
        cycle.blocked[gang.key] = BlockReason("queue", cause=queue_missing(group.queue), reason="QueueMissing")
    elif not queue.open:
        cause = Message("Turn.QueueClosed", {"queue": group.queue})
        cycle.blocked[gang.key] = BlockReason("queue", cause=cause, reason="QueueClosed")
    elif cycle.now < cycle.record(gang).not_before:
        pause = _backoff(cycle, max(cycle.record(gang).timeouts - 1, 0))
        cause = Message("Turn.TimedOut", {"seconds": pause})
        cycle.blocked[gang.key] = BlockReason("backoff", cause=cause, reason="InqueueTimeout")
        cycle.wake(cycle.record(gang).not_before)
    else:
        return False
    return True


def _is_past_sla(cycle: CycleState, gang: Gang, refusal: BlockReason) -> bool:
    """Whether its promised waiting time is over. The promise is kept once, and neither against a namespace's quota nor
    for a group that requests more than can ever be available: admitted, it only blocks others."""
    if _is_own_limit(refusal):
        return False
    deadline = cycle.deadline(gang)
    cycle.wake(deadline)
    return cycle.now >= deadline and not gang.group.timeouts


def _admit_starving(cycle: CycleState, refused: Mapping[str, list[Gang]]) -> None:
    """One group of each queue: the one whose time was over first, unless one that precedes it still has no place."""
    for name, line in refused.items():
        starves_at, _, first = min((_starves_at(cycle, gang), gang.key, gang) for gang in line)
        cycle.wake(starves_at)
        if cycle.now >= starves_at and not _has_earlier(cycle, name, starves_at):
            _admit(cycle, first)
            del cycle.blocked[first.key]
            cycle.lines[name].remove(first)


def _has_earlier(cycle: CycleState, queue: str, starves_at: float) -> bool:
    """Whether the queue has an admitted group that keeps resources from others and started to starve before that."""
    for gang in cycle.view.accounts[queue].groups.values():
        group = gang.group
        if not group.min_resources or gang.placed or group.created + cycle.settings.starving_seconds > starves_at:
            continue
        if cycle.phase(gang) is INQUEUE and _starves_at(cycle, gang) <= starves_at:
            return True
    return False


def _starves_at(cycle: CycleState, gang: Gang) -> float:
    """When it has waited too long. One that was sent back may be one that no node can take: that is looked up where
    its pods exist; otherwise it waits twice as long each time."""
    patience, timeouts = cycle.settings.starving_seconds, gang.group.timeouts
    if (timeouts or cycle.phase(gang) is INQUEUE) and gang.waiting and gang.missing() is None:
        asked_at_least(gang, cycle.view)
        timeouts = 0 if could_ever_run(cycle, gang) else MOST_DOUBLINGS
    return gang.group.created + patience * 2.0 ** min(timeouts, MOST_DOUBLINGS)


def _is_own_limit(refusal: BlockReason) -> bool:
    """No other group needs to wait for it: its namespace has no more, or alone it requests more than can be had."""
    return refusal.reason == NAMESPACE_QUOTA or _exceeds_total(refusal)


def _exceeds_total(refusal: BlockReason) -> bool:
    figures = refusal.refusal
    return figures is not None and figures.need > figures.limit


class _AdmittedDemand:
    """What admitted groups will request, in the cluster, in each queue and in each namespace."""

    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._all: Amounts = {}
        self._queues: dict[str, Amounts] = {}
        self._namespaces: dict[str, Amounts] = {}
        self._elastic: dict[str, Amounts] = {}
        self._weaker: dict[tuple[str, int], Amounts] = {}  # by queue and priority
        self._gives: dict[str, Amounts] = {}  # by queue: what all its groups could
        self._borrowed: dict[tuple[str, str], Mapping[str, float]] = {}  # by others than a queue, below another or all
        self._kept: dict[object, Message | None] = {}  # by which budgets, for equal requests
        self._unkept: _AdmittedDemand | None = None
        for gang in cycle.view.unsettled.values():
            if not gang.lone and cycle.phase(gang) in (INQUEUE, UNKNOWN):
                self.add(gang)

    def add(self, gang: Gang) -> None:
        """Gated pods request nothing before their gates are removed, so their share keeps nothing from others."""
        group, found = gang.group, dict(gang.allocated)
        for pod in gang.gated.values():
            _add(found, pod.requests if pod.gated else {})
        still = {r: max(a - found.get(r, 0), 0) for r, a in (group.min_resources or {}).items()}
        line = self._cycle.shares.standings.get(group.queue)
        for above in line.line if line else ():
            _add(self._queues.setdefault(above.queue.name, {}), still)
        _add(self._all, still)
        if group.key.namespace in self._cycle.view.quotas:
            _add(self._namespaces.setdefault(group.key.namespace, {}), asked_of_namespace(gang))

    def refusal(self, gang: Gang) -> BlockReason | None:
        found = self._refusal(gang)
        if found is None or found.reason == NAMESPACE_QUOTA or not self._cycle.view.budgets:
            return found
        if self._unkept is None:
            self._unkept = copy(self)  # the same accounts, read as if no pod were kept
            self._unkept._weaker, self._unkept._gives, self._unkept._borrowed = {}, {}, {}
        return replace(found, kept=self._unkept.blocking_budgets(gang))

    def blocking_budgets(self, gang: Gang) -> Message | None:
        """Which budgets keep those for whose places the group would be let in; None where they are no help."""
        cycle, group = self._cycle, gang.group
        asked = asked_of_cluster(group.min_resources)
        alike = (group.queue, group.priority, group.preemptible_guest, frozenset(asked))
        with cycle.without_budgets():
            if self._refusal(gang) is not None:
                return None
            if alike in self._kept:
                return self._kept[alike]
            steps = steps_within(cycle, gang) if self._yielding(gang) else []
            if self._reclaimable(group.queue, asked):
                others = (name for name in cycle.view.accounts if name != group.queue)
                steps += [s for name in others if is_losable(cycle, name, asked) for s in steps_of_queue(cycle, name)]
        going = {pod.key: pod for step in steps for pod in step.pods}
        self._kept[alike] = cycle.allowance.blocking_budgets(going.values())
        return self._kept[alike]

    def _refusal(self, gang: Gang) -> BlockReason | None:
        asked, quota = asked_of_cluster(gang.group.min_resources), self._over_quota(gang)
        if quota is not None and _exceeds_total(quota):
            return quota  # whatever else it waits for now
        return self._over_queue(gang, asked) or quota or self._over_cluster(gang, asked)

    def _over_queue(self, gang: Gang, asked: Mapping[str, int]) -> BlockReason | None:
        for standing in self._cycle.shares.standings[gang.group.queue].line:
            waiting = self._queues.get(standing.queue.name, {})
            for name, need in asked.items():
                used = standing.allocated.get(name, 0) + waiting.get(name, 0)
                limit = standing.ceiling.get(name, float("inf"))
                if used + need <= limit + SLACK:
                    continue
                spare: float = max(self._lent(standing.queue.name, name), self._yielding(gang).get(name, 0))
                spare += self._reclaimable(gang.group.queue, asked, within=standing).get(name, 0)
                if used - spare + need > limit + SLACK:
                    refusal = ShareExceeded(standing.queue.name, name, need, used, limit)
                    # A queue that could have everything is as large as the cluster: that is what is too small.
                    everything = limit >= self._cycle.shares.total.get(name, 0)
                    return BlockReason(
                        "quota", refusal, over_cluster=everything and name not in standing.queue.capability
                    )
        return None

    def _lent(self, queue: str, resource: str) -> int:
        """What the queue's groups hold beyond their minima, and would give back."""
        if queue not in self._elastic:
            found: Amounts = {}
            account = self._cycle.view.accounts.get(queue)
            for gang in account.groups.values() if account else ():
                least = gang.group.min_resources
                if least is not None:
                    _add(found, {r: max(a - least.get(r, 0), 0) for r, a in gang.allocated.items()})
            self._elastic[queue] = found
        return self._elastic[queue].get(resource, 0)

    def _yielding(self, gang: Gang) -> Amounts:
        """What groups of its queue with less priority would give up for it."""
        cycle, group = self._cycle, gang.group
        if not cycle.settings.preempt or group.preemptible_guest or not has_weaker(cycle, gang):
            return {}
        place = (group.queue, group.priority)
        if place not in self._weaker:
            others = cycle.view.accounts[group.queue].groups.values()
            self._weaker[place] = reclaimable_amounts(
                cycle, [other for other in others if other.group.priority < group.priority]
            )
        return self._weaker[place]

    def _reclaimable(
        self, queue: str, asked: Mapping[str, int], within: QueueShare | None = None
    ) -> Mapping[str, float]:
        """What other queues hold beyond their shares, there or anywhere, where this one would stay within its own."""
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
            self._gives[queue] = reclaimable_amounts(self._cycle, [gang for gang in groups if gang.is_reclaimable])
        return self._gives[queue]

    def _over_quota(self, gang: Gang) -> BlockReason | None:
        """What its namespace allows, less what pods there take and what groups let in before it will.

        Of several quotas the one that no waiting helps against, where there is such a one.
        """
        namespace, quotas = gang.group.key.namespace, self._cycle.view.quotas
        if namespace not in quotas:
            return None
        found: list[BlockReason] = []
        waiting, asked = self._namespaces.get(namespace, {}), asked_of_namespace(gang)
        for name, quota in quotas.of(namespace):
            for resource, need in asked.items():
                limit = quota.hard.get(resource)
                used = quotas.taken(namespace, quota, resource) + waiting.get(resource, 0)
                if limit is not None and used + need > limit:
                    refusal = ShareExceeded("", resource, need, used, limit)
                    found.append(BlockReason("quota", refusal, quota=Key(namespace, name), reason=NAMESPACE_QUOTA))
        return next((each for each in found if _exceeds_total(each)), found[0] if found else None)

    def _over_cluster(self, gang: Gang, asked: Mapping[str, int]) -> BlockReason | None:
        shares = self._cycle.shares
        used: Amounts = {}
        view = self._cycle.view
        for account in (*view.accounts.values(), view.uncharged):
            _add(used, account.allocated)
        for name, need in asked.items():
            limit = shares.total.get(name, 0) * self._cycle.settings.overcommit
            held = used.get(name, 0) + self._all.get(name, 0)
            if held + need <= limit + SLACK:
                continue
            spare = self._yielding(gang).get(name, 0) + self._reclaimable(gang.group.queue, asked).get(name, 0)
            if held - spare + need > limit + SLACK:
                return BlockReason("quota", ShareExceeded("", name, need, held, limit), over_cluster=True)
        return None


def _add(amounts: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount
