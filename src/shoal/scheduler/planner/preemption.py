"""Frees resources for groups that deserve them: the whole set of victims is simulated before one is evicted.

A search adds steps (`preemption_candidates`) until the entire minimum of the group would fit, then spares every victim
that turns out not to be needed. If it does not succeed, nothing happens at all. The freed resources are promised to the
group, so that no other takes them while the victims leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from zlib import crc32

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.scheduler.planner.cycle_state import BlockReason, CycleState, asked_at_least
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.gang_types import PENDING
from shoal.scheduler.planner.node_and_pod_types import Pod
from shoal.scheduler.planner.placement import Placement
from shoal.scheduler.planner.plan_types import Evict, ShrinkRequest
from shoal.scheduler.planner.preemption_bound import PreemptionBound
from shoal.scheduler.planner.preemption_candidates import (
    SHRINK,
    EvictionStep,
    has_weaker,
    held,
    steps_beyond,
    steps_of_guests,
    steps_within,
)

MOST_STEPS = 2000
SEARCHED_AGAIN_SECONDS = 10.0  # for groups for which no search was left, even if nothing happens
SPARED_ONE_BY_ONE = 64
DOMAINS_TRIED = 8
SEARCHED_WITHOUT_BUDGETS = 4  # kinds of gangs in one plan: only for the sake of their messages
WHY = {
    "reserve": "Eviction.Reserve",
    "preempt": "Eviction.Preempt",
    "reclaim": "Eviction.Reclaim",
}


def preempt(cycle: CycleState) -> None:
    """So many searches in one plan. Half of them are for the head of the line.

    The rest start somewhere behind it, at a place that the moment decides: a group behind many for which nothing can be
    done is not left out for as long as those stay.
    """
    searches = PreemptionSearch(cycle)
    line = searches.down(_in_order(cycle), most=cycle.settings.eviction_attempts // 2)
    if line:
        start = crc32(repr(cycle.now).encode()) % len(line)
        line = searches.down(line[start:] + line[:start], most=cycle.settings.eviction_attempts)
    if line:
        cycle.wake(cycle.now + SEARCHED_AGAIN_SECONDS)


class PreemptionSearch:
    """The searches of one plan: a request equal to one that was searched for in vain is not searched again."""

    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._prospects = PreemptionBound(cycle)
        self._prospects_without_budgets = PreemptionBound(cycle)
        self._hopeless: dict[object, Message | None] = {}  # and which budgets keep the possible victims
        self._looks = 0

    def down(self, line: list[Gang], *, most: int) -> list[Gang]:
        """Search for one after the other until that many searches were made; who is left."""
        for place, gang in enumerate(line):
            if self._cycle.searches >= most:
                return line[place:]
            self._serve(gang)
        return []

    def _serve(self, gang: Gang) -> None:
        cycle, group = self._cycle, gang.group
        asked_at_least(gang, cycle.view)
        alike = (group.queue, group.is_charged, group.priority, gang.minimum().alike, group.closeness)
        if alike in self._hopeless and gang.key not in cycle.reservations:
            self._record_budgets(gang, self._hopeless[alike])
            return
        if any(pod.never_preempts for pod in gang.waiting.values()):
            return
        for steps, way in self._ways(gang, self._prospects):
            cycle.searches += 1
            if _search(cycle, gang, steps, way):
                self._prospects.reset()
                self._prospects_without_budgets.reset()
                return
        cause = self._blocking_budgets(gang)
        if cause is None and cycle.settings.preempt and self._prospects.has_weaker(gang):
            cause = Message("Preemption.TooLittle")
        self._hopeless[alike] = cause
        self._record_budgets(gang, self._hopeless[alike])

    def _blocking_budgets(self, gang: Gang) -> Message | None:
        """The budgets that keep its possible victims; None where these would not suffice even without budgets."""
        cycle = self._cycle
        if not cycle.view.budgets or self._looks >= SEARCHED_WITHOUT_BUDGETS:
            return None
        self._looks += 1
        with cycle.without_budgets():
            ways = self._ways(gang, self._prospects_without_budgets)
            found = (_enough(cycle, gang, steps) for steps, _ in ways)
            chosen = next((steps for steps in found if steps), [])
        return cycle.allowance.blocking_budgets({pod.key: pod for step in chosen for pod in step.pods}.values())

    def _record_budgets(self, gang: Gang, kept: Message | None) -> None:
        if kept is not None:
            still = self._cycle.blocked
            still[gang.key] = replace(still[gang.key], kept=kept)

    def _ways(self, gang: Gang, prospects: PreemptionBound) -> Iterator[tuple[list[EvictionStep], str]]:
        cycle, settings = self._cycle, self._cycle.settings
        ways: list[tuple[Callable[[CycleState, Gang], list[EvictionStep]], str]] = []
        if gang.key in cycle.reservations:
            ways.append((steps_of_guests, "reserve"))
        if settings.preempt and has_weaker(cycle, gang) and prospects.within(gang):
            ways.append((steps_within, "preempt"))
        # For a group that is not charged no queue is entitled to anything.
        if settings.reclaim and gang.group.is_charged:
            asked, claims = asked_at_least(gang, cycle.view), cycle.respects_claims(gang)
            if cycle.shares.may_reclaim(gang.group.queue, asked, claims=claims) and prospects.beyond(gang):
                ways.append((steps_beyond, "reclaim"))
        for steps_for, way in ways:
            steps = [step for step in steps_for(cycle, gang) if _helps(cycle, gang, step)]
            if steps:
                yield steps[:MOST_STEPS], way
                yield from ((found, way) for found in _in_one_domain(cycle, gang, steps))


def _in_one_domain(cycle: CycleState, gang: Gang, steps: list[EvictionStep]) -> Iterator[list[EvictionStep]]:
    """The steps of each domain by itself, those of most steps first, for a gang that must be within one.

    In their own order the victims may be spread over all domains, and none of them has room before a queue has lost
    all it may.
    """
    tier, rows = cycle.view.topology.widest(gang.group.closeness), cycle.resources.rows
    if tier is None:
        return
    found: dict[int, list[EvictionStep]] = {}
    for step in steps:
        for domain in {int(tier.domain[rows[pod.node]]) for pod in step.pods if pod.node in rows} - {0}:
            found.setdefault(domain, []).append(step)
    best = sorted(found, key=lambda domain: (-len(found[domain]), tier.names[domain]))
    yield from (found[domain][:MOST_STEPS] for domain in best[:DOMAINS_TRIED])


def _in_order(cycle: CycleState) -> list[Gang]:
    found = []
    is_any_queue_reclaimable = any(
        cycle.shares.can_lose(name, {r: 1}) for name, s in cycle.shares.standings.items() for r in s.allocated
    )
    for name, line in cycle.lines.items():
        priorities = cycle.view.accounts[name].priorities
        if not is_any_queue_reclaimable and not cycle.reservations and len(priorities) == 1:
            continue  # no group is weaker
        weakest = min(priorities)
        for gang in line:
            if not is_any_queue_reclaimable and gang.group.priority <= weakest and not cycle.reservations:
                continue
            still = cycle.blocked.get(gang.key)
            if still is None or still.obstacle not in ("capacity", "quota") or not gang.minimum():
                continue
            if cycle.phase(gang) is PENDING:
                continue  # not let in yet: it could not start in the room, and its victims would return
            if gang.group.preemptible_guest:
                continue  # a guest may be evicted at any time and evicts none: that would repeat for ever
            if gang.waiting:
                found.append(gang)
    return sorted(found, key=cycle.order)


def _helps(cycle: CycleState, gang: Gang, step: EvictionStep) -> bool:
    """Whether any pod of the step sits where one of ours could go."""
    rows = cycle.resources.rows
    eq_classes = cycle.gangs.eq_classes(gang.minimum().pods)
    for pod in step.pods:
        row = rows.get(pod.node)
        if row is not None and any(eq_class.sync().eligible[row] for eq_class in eq_classes):
            return True
    return False


def _search(cycle: CycleState, gang: Gang, steps: list[EvictionStep], way: str) -> bool:
    """Add steps until it is enough, then go back to the fewest that are."""
    chosen = _enough(cycle, gang, steps)
    if not chosen:
        return False
    mark = cycle.resources.mark()
    chosen = _fewest(cycle, gang, chosen, mark)
    for step in list(reversed(chosen))[:SPARED_ONE_BY_ONE]:  # leave out what is not needed, the most precious first
        others = [other for other in chosen if other is not step]
        if _is_enough(cycle, gang, others, mark):
            chosen = others
    _commit(cycle, gang, chosen, WHY[way])
    cycle.ways.append(way)
    return True


def _enough(cycle: CycleState, gang: Gang, steps: list[EvictionStep]) -> list[EvictionStep]:
    """The first steps that make room together, looked at after 1, 2, 4, ... of them; none where all do not."""
    mark = cycle.resources.mark()
    chosen: list[EvictionStep] = []
    taken: set[Key] = set()
    look_at, enough = 1, False
    allowance = cycle.allowance.trial()
    for number, step in enumerate(steps, start=1):
        if _may_lose(cycle, gang, step) and allowance.take(pod for pod in step.pods if pod.key not in taken):
            _suppose(cycle, step, taken)
            chosen.append(step)
        if chosen and (len(chosen) >= look_at or number == len(steps)):
            look_at = 2 * len(chosen)
            enough = _fits(cycle, gang) is not None
            if enough:
                break
    cycle.resources.rollback(mark)
    return chosen if enough else []


def _fewest(cycle: CycleState, gang: Gang, chosen: list[EvictionStep], mark: int) -> list[EvictionStep]:
    """The shortest beginning of the steps that is enough."""
    low, high = len(chosen) // 2, len(chosen)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_enough(cycle, gang, chosen[:middle], mark):
            high = middle
        else:
            low = middle
    return chosen[:high]


def _is_enough(cycle: CycleState, gang: Gang, steps: list[EvictionStep], mark: int) -> bool:
    taken: set[Key] = set()
    for step in steps:
        _suppose(cycle, step, taken)
    enough = bool(steps) and _fits(cycle, gang) is not None
    cycle.resources.rollback(mark)
    return enough


def _may_lose(cycle: CycleState, gang: Gang, step: EvictionStep) -> bool:
    queue = step.gang.group.queue
    return (
        queue == gang.group.queue
        or step.gang.group.preemptible_guest
        or cycle.shares.can_lose(queue, step.held, asked_at_least(gang, cycle.view))
    )


def _suppose(cycle: CycleState, step: EvictionStep, taken: set[Key]) -> None:
    """Suppose that the pods of the step go; those of an earlier step are gone already."""
    pods = [pod for pod in step.pods if pod.key not in taken]
    taken.update(pod.key for pod in pods)
    for pod in pods:
        cycle.assume_evicted(pod)
    if step.gang.group.is_charged:
        cycle.shares.charge(step.gang.group.queue, held(cycle, pods).items(), -1)


def _fits(cycle: CycleState, gang: Gang) -> list[Placement] | None:
    asked = asked_at_least(gang, cycle.view)
    if cycle.refusal(gang, asked):
        return None
    return cycle.gangs.place_minimum(gang, cycle.node_filter(gang, later=True))


def _commit(cycle: CycleState, gang: Gang, chosen: list[EvictionStep], code: str) -> None:
    taken: set[Key] = set()
    whole = {step.gang.key for step in chosen if len(step.pods) > 1 or step.rank > SHRINK}
    given: dict[Key, list[Pod]] = {}
    cause = Message(code, {"group": gang.name, "queue": gang.group.queue})
    for step in chosen:
        fresh = [pod for pod in step.pods if pod.key not in taken]
        cycle.allowance.take(fresh)
        _suppose(cycle, step, taken)
        if step.rank == SHRINK and step.gang.key not in whole:
            given.setdefault(step.gang.key, []).extend(fresh)
        else:
            message = Message("Evicted", {"cause": _gives_way(step.gang, cause)})
            cycle.evictions += [Evict(pod.key, pod.uid, message) for pod in fresh]
    for key, pods in given.items():
        message = Message("Shrink", {"count": len(pods), "cause": _gives_way(cycle.view.groups[key], cause)})
        evictions = tuple(Evict(pod.key, pod.uid, message) for pod in pods)
        cycle.shrinks.append(ShrinkRequest(key, evictions, message, cause))
    placed = _fits(cycle, gang)
    assert placed is not None, "the chosen victims were enough a moment ago"
    cycle.given_up |= taken
    for step in chosen:
        cycle.clear_steps(step.gang)
    cycle.nominate(gang, placed)
    cycle.blocked[gang.key] = BlockReason("leaving", leaving=len(taken))


def _gives_way(gang: Gang, cause: Message) -> Message:
    return Message("GivesWay", {"group": gang.name, "cause": cause})
