"""Makes room for groups that deserve it: the whole set of victims is played through before one pod is touched.

A search adds steps (`victims`) until the entire minimum of the group would fit, then spares every victim that turns
out not to be needed. If it does not come to that, nothing happens at all. The group is promised the
room, so that nobody else takes it while the victims leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from zlib import crc32

from shoal.kube.objects import Key
from shoal.scheduler.planner.cycle_state import Cycle, Standstill, asked_at_least
from shoal.scheduler.planner.gang import Members
from shoal.scheduler.planner.gang_types import PENDING
from shoal.scheduler.planner.placement import Placed
from shoal.scheduler.planner.plan_types import Evict, Shrink
from shoal.scheduler.planner.preemption_bound import Prospects
from shoal.scheduler.planner.preemption_candidates import (
    SHRINK,
    Step,
    has_weaker,
    held,
    steps_beyond,
    steps_of_guests,
    steps_within,
)
from shoal.scheduler.planner.snapshot_types import Pod

MOST_STEPS = 2000
SEARCHED_AGAIN_SECONDS = 10.0  # for those for whom there was no search left, even if nothing happens
SPARED_ONE_BY_ONE = 64
DOMAINS_TRIED = 8
SEARCHED_WITHOUT_BUDGETS = 4  # kinds of gangs in one plan: only for the sake of what they are told
WHY = {
    "reserve": "it was only a guest on nodes kept for",
    "preempt": "lower priority than",
    "reclaim": "its queue holds more than it deserves, and room is needed for",
}


def make_room(cycle: Cycle) -> None:
    """So many searches in one plan. Half of them go to the head of the line.

    The rest start somewhere behind it, at a place that the moment decides: whoever stands behind many for whom nothing
    can be done is not left out for as long as those stay.
    """
    searches = Searches(cycle)
    line = searches.down(_in_order(cycle), most=cycle.settings.eviction_attempts // 2)
    if line:
        start = crc32(repr(cycle.now).encode()) % len(line)
        line = searches.down(line[start:] + line[:start], most=cycle.settings.eviction_attempts)
    if line:
        cycle.wake(cycle.now + SEARCHED_AGAIN_SECONDS)


class Searches:
    """The searches of one plan: who asks for what somebody looked for in vain need not look."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._prospects = Prospects(cycle)
        self._prospects_without_budgets = Prospects(cycle)
        self._hopeless: dict[object, str] = {}  # and which budgets keep those who would give way
        self._looks = 0

    def down(self, line: list[Members], *, most: int) -> list[Members]:
        """Search for one after the other until that many searches were made; who is left."""
        for place, members in enumerate(line):
            if self._cycle.searches >= most:
                return line[place:]
            self._serve(members)
        return []

    def _serve(self, members: Members) -> None:
        cycle, group = self._cycle, members.group
        asked_at_least(members, cycle.view)
        alike = (group.queue, group.is_charged, group.priority, members.minimum().alike, group.closeness)
        if alike in self._hopeless and members.key not in cycle.reservations:
            self._tell(members, self._hopeless[alike])
            return
        if any(pod.never_preempts for pod in members.waiting.values()):
            return
        for steps, way in self._ways(members, self._prospects):
            cycle.searches += 1
            if _search(cycle, members, steps, way):
                self._prospects.forget()
                self._prospects_without_budgets.forget()
                return
        self._hopeless[alike] = self._keepers(members) or self._too_little(members)
        self._tell(members, self._hopeless[alike])

    def _keepers(self, members: Members) -> str:
        """Which budgets keep those who would give way for it; nothing where they would not be enough without either."""
        cycle = self._cycle
        if not cycle.view.budgets or self._looks >= SEARCHED_WITHOUT_BUDGETS:
            return ""
        self._looks += 1
        with cycle.without_budgets():
            ways = self._ways(members, self._prospects_without_budgets)
            found = (_enough(cycle, members, steps) for steps, _ in ways)
            chosen = next((steps for steps in found if steps), [])
        return cycle.allowance.keepers({pod.key: pod for step in chosen for pod in step.pods}.values())

    def _too_little(self, members: Members) -> str:
        if not self._cycle.settings.preempt or not self._prospects.has_weaker(members):
            return ""
        return "evicting all evictable pods of lower priority in its queue would not make enough room"

    def _tell(self, members: Members, kept: str) -> None:
        if kept:
            still = self._cycle.still
            still[members.key] = replace(still[members.key], kept=kept)

    def _ways(self, members: Members, prospects: Prospects) -> Iterator[tuple[list[Step], str]]:
        cycle, settings = self._cycle, self._cycle.settings
        ways: list[tuple[Callable[[Cycle, Members], list[Step]], str]] = []
        if members.key in cycle.reservations:
            ways.append((steps_of_guests, "reserve"))
        if settings.preempt and has_weaker(cycle, members) and prospects.within(members):
            ways.append((steps_within, "preempt"))
        if settings.reclaim and _reclaims(cycle, members) and prospects.beyond(members):
            ways.append((steps_beyond, "reclaim"))
        for steps_for, way in ways:
            steps = [step for step in steps_for(cycle, members) if _helps(cycle, members, step)]
            if steps:
                yield steps[:MOST_STEPS], way
                yield from ((found, way) for found in _in_one_domain(cycle, members, steps))


def _in_one_domain(cycle: Cycle, members: Members, steps: list[Step]) -> Iterator[list[Step]]:
    """The steps of each domain by itself, those of most steps first, for a gang that must be within one.

    In their own order the victims may be spread over all domains, and none of them has room before a queue has lost
    all it may.
    """
    tier, rows = cycle.view.topology.widest(members.group.closeness), cycle.room.rows
    if tier is None:
        return
    found: dict[int, list[Step]] = {}
    for step in steps:
        for domain in {int(tier.domain[rows[pod.node]]) for pod in step.pods if pod.node in rows} - {0}:
            found.setdefault(domain, []).append(step)
    best = sorted(found, key=lambda domain: (-len(found[domain]), tier.names[domain]))
    yield from (found[domain][:MOST_STEPS] for domain in best[:DOMAINS_TRIED])


def _in_order(cycle: Cycle) -> list[Members]:
    found = []
    anybody = any(
        cycle.shares.may_lose(name, {r: 1}) for name, s in cycle.shares.standings.items() for r in s.allocated
    )
    for name, line in cycle.lines.items():
        priorities = cycle.view.accounts[name].priorities
        if not anybody and not cycle.reservations and len(priorities) == 1:
            continue  # nobody is weaker
        weakest = min(priorities)
        for members in line:
            if not anybody and members.group.priority <= weakest and not cycle.reservations:
                continue
            still = cycle.still.get(members.key)
            if still is None or still.obstacle not in ("capacity", "quota") or not members.minimum():
                continue
            if cycle.phase(members) is PENDING:
                continue  # not let in yet: it could not start in the room, and its victims would return
            if members.group.guest:
                continue  # who may be evicted at any time drives nobody out: that would go on for ever
            if members.waiting:
                found.append(members)
    return sorted(found, key=cycle.order)


def _reclaims(cycle: Cycle, members: Members) -> bool:
    if not members.group.is_charged:
        return False  # no queue is entitled to anything on its behalf
    asked, claims = asked_at_least(members, cycle.view), cycle.heeds_claims(members)
    return cycle.shares.may_reclaim(members.group.queue, asked, claims=claims)


def _helps(cycle: Cycle, members: Members, step: Step) -> bool:
    """Whether any pod of the step sits where one of ours could go."""
    rows = cycle.room.rows
    shapes = cycle.gangs.shapes(members.minimum().pods)
    for pod in step.pods:
        row = rows.get(pod.node)
        if row is not None and any(shape.sync().eligible[row] for shape in shapes):
            return True
    return False


def _search(cycle: Cycle, members: Members, steps: list[Step], way: str) -> bool:
    """Add steps until it is enough, then go back to the fewest that are."""
    chosen = _enough(cycle, members, steps)
    if not chosen:
        return False
    mark = cycle.room.mark()
    chosen = _fewest(cycle, members, chosen, mark)
    chosen = _spare_some(cycle, members, chosen, mark)
    _commit(cycle, members, chosen, WHY[way])
    cycle.ways.append(way)
    return True


def _enough(cycle: Cycle, members: Members, steps: list[Step]) -> list[Step]:
    """The first steps that make room together, looked at after 1, 2, 4, ... of them; none where all do not."""
    mark = cycle.room.mark()
    chosen: list[Step] = []
    taken: set[Key] = set()
    look_at, enough = 1, False
    allowance = cycle.allowance.trial()
    for number, step in enumerate(steps, start=1):
        if _may_lose(cycle, members, step) and allowance.take(pod for pod in step.pods if pod.key not in taken):
            _suppose(cycle, step, taken)
            chosen.append(step)
        if chosen and (len(chosen) >= look_at or number == len(steps)):
            look_at = 2 * len(chosen)
            enough = _fits(cycle, members) is not None
            if enough:
                break
    cycle.room.rollback(mark)
    return chosen if enough else []


def _fewest(cycle: Cycle, members: Members, chosen: list[Step], mark: int) -> list[Step]:
    """The shortest beginning of the steps that is enough."""
    low, high = len(chosen) // 2, len(chosen)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_enough(cycle, members, chosen[:middle], mark):
            high = middle
        else:
            low = middle
    return chosen[:high]


def _is_enough(cycle: Cycle, members: Members, steps: list[Step], mark: int) -> bool:
    taken: set[Key] = set()
    for step in steps:
        _suppose(cycle, step, taken)
    enough = bool(steps) and _fits(cycle, members) is not None
    cycle.room.rollback(mark)
    return enough


def _may_lose(cycle: Cycle, members: Members, step: Step) -> bool:
    queue = step.members.group.queue
    return (
        queue == members.group.queue
        or step.members.group.guest
        or cycle.shares.may_lose(queue, step.held, asked_at_least(members, cycle.view))
    )


def _suppose(cycle: Cycle, step: Step, taken: set[Key]) -> None:
    """Suppose that the pods of the step go; those of an earlier step are gone already."""
    pods = [pod for pod in step.pods if pod.key not in taken]
    taken.update(pod.key for pod in pods)
    for pod in pods:
        cycle.suppose_gone(pod)
    if step.members.group.is_charged:
        cycle.shares.charge(step.members.group.queue, held(cycle, pods).items(), -1)


def _fits(cycle: Cycle, members: Members) -> list[Placed] | None:
    asked = asked_at_least(members, cycle.view)
    if cycle.refusal(members, asked):
        return None
    return cycle.gangs.place_minimum(members, cycle.where(members, later=True))


def _spare_some(cycle: Cycle, members: Members, chosen: list[Step], mark: int) -> list[Step]:
    """Leave out every step that is not needed, the most precious ones first."""
    for step in list(reversed(chosen))[:SPARED_ONE_BY_ONE]:
        others = [other for other in chosen if other is not step]
        if _is_enough(cycle, members, others, mark):
            chosen = others
    return chosen


def _commit(cycle: Cycle, members: Members, chosen: list[Step], why: str) -> None:
    taken: set[Key] = set()
    whole = {step.members.key for step in chosen if len(step.pods) > 1 or step.rank > SHRINK}
    given: dict[Key, list[Pod]] = {}
    for_whom = f"{why} {members.name} in queue {members.group.queue}"
    for step in chosen:
        fresh = [pod for pod in step.pods if pod.key not in taken]
        cycle.allowance.take(fresh)
        _suppose(cycle, step, taken)
        if step.rank == SHRINK and step.members.key not in whole:
            given.setdefault(step.members.key, []).extend(fresh)
        else:
            sentence = f"evicted: {step.members.name} gives way, {for_whom}"
            cycle.evictions += [Evict(pod.key, pod.uid, sentence) for pod in fresh]
    for key, pods in given.items():
        cycle.shrinks.append(Shrink(key, tuple(pod.key for pod in pods), for_whom))
    placed = _fits(cycle, members)
    assert placed is not None, "the chosen victims were enough a moment ago"
    cycle.given_up |= taken
    for step in chosen:
        cycle.forget_steps(step.members)
    cycle.promise(members, placed)
    cycle.still[members.key] = Standstill("leaving", words=str(len(taken)))
