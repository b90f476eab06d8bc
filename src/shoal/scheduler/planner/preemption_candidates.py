"""Who could give way, in the order in which they should: as steps, each of which leaves every gang whole or gone.

First elastic jobs give back what they have beyond their minimum; then surplus pods of other gangs are evicted, and
what is left of broken ones; whole gangs come last. Within each of these: the queue that is most over its share, the
lowest priority, and then the least work lost, counted since the last checkpoint where one is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cycle_state import Cycle, asked_at_least
from shoal.scheduler.planner.disruption_budgets import Allowance
from shoal.scheduler.planner.gang import Members, pod_order
from shoal.scheduler.planner.gang_types import COMPLETED
from shoal.scheduler.planner.snapshot_types import Pod

SHRINK, SURPLUS, WHOLE = range(3)
GROUPS_LOOKED_INTO = 512


@dataclass(frozen=True, slots=True)
class Step:
    rank: int
    members: Members
    pods: tuple[Pod, ...]
    lost: float  # seconds of work, times accelerators
    held: Mapping[str, int]  # what its pods request


def has_weaker(cycle: Cycle, members: Members) -> bool:
    return min(cycle.view.accounts[members.group.queue].priorities) < members.group.priority


def steps_within(cycle: Cycle, members: Members) -> list[Step]:
    """Preemption: groups of the same queue with strictly lower priority."""
    account = cycle.view.accounts[members.group.queue]
    mine = members.group.priority
    weaker = (other for other in account.groups.values() if other.group.priority < mine and other is not members)
    return _ordered(_steps(cycle, weaker), {})


def steps_of_queue(cycle: Cycle, name: str) -> list[Step]:
    """By which the groups of a queue could give way, in their order; worked out once in a plan."""
    found = cycle.queue_steps.get(name)
    if found is None:
        groups = (members for members in cycle.view.accounts[name].groups.values() if members.is_reclaimable)
        steps = (step for step in _steps(cycle, groups) if not _has_just_started(cycle, step))
        found = cycle.queue_steps[name] = _ordered(steps, {})
    return found


def _has_just_started(cycle: Cycle, step: Step) -> bool:
    """Whether it is a whole gang that fits no share by weight and has not run for long.

    It could start only because it had waited too long. Evicted at once for those who waited meanwhile, it would wait
    as long again, and never get any work done.
    """
    if step.rank != WHOLE or not cycle.shares.by_weight:
        return False
    part = cycle.shares.part(step.members.group.queue)
    if all(amount <= part.get(name, float("inf")) for name, amount in step.held.items()):
        return False
    until = max(pod.since for pod in step.pods) + cycle.settings.starving_seconds
    cycle.wake(until)
    return cycle.now < until


def is_losable(cycle: Cycle, name: str, wanted: Collection[str]) -> bool:
    """Whether others who want such resources may take anything from the queue as it stands."""
    standing = cycle.shares.standings.get(name)
    return standing is not None and any(cycle.shares.may_lose(name, {r: 1}, wanted) for r in standing.allocated)


def steps_beyond(cycle: Cycle, members: Members) -> list[Step]:
    """Reclaim: groups of other queues that hold more than they deserve; relatives first."""
    shares = cycle.shares
    mine, wanted = shares.standings[members.group.queue].line, asked_at_least(members, cycle.view)
    over: dict[str, tuple[float, ...]] = {}
    found: list[Step] = []
    for name in cycle.view.accounts:
        if name == members.group.queue or not is_losable(cycle, name, wanted):
            continue
        standing = shares.standings[name]
        # As many steps up as it takes from the one who asks to an ancestor of both; strangers have none.
        common = next((n for n, above in enumerate(mine) if above in standing.line), len(mine))
        over[name] = (float(common), float(standing.queue.priority), -shares.share(name))
        found += steps_of_queue(cycle, name)
    return _ordered(found, over)


def yielded(cycle: Cycle, groups: Iterable[Members]) -> Amounts:
    """What these would lose together if each gave way as far as it may: all it holds, or where gangs are not evicted
    whole, what it holds beyond its minimum."""
    found: Amounts = {}
    allowance = cycle.allowance.trial()
    for members in groups:
        group = members.group
        if not members.known or not group.preemptable or not members.sitting:
            continue
        whole, least = cycle.settings.evict_whole_gangs, group.min_resources
        is_counted = (whole or least) and not members.has_stayers
        if not is_counted or cycle.view.budgets.concern(group.key.namespace):
            gives = held(cycle, _most_to_go(_known_steps(cycle, members), allowance))
        else:  # nobody stays, so their sum will do: there may be many
            keeps = {} if whole or least is None else least
            gives = {name: max(amount - keeps.get(name, 0), 0) for name, amount in members.allocated.items()}
        for name, amount in gives.items():
            found[name] = found.get(name, 0) + amount
    return found


def _most_to_go(steps: Sequence[Step], allowance: Allowance) -> list[Pod]:
    """The last step is that of all together, where there is one; else as many as can be spared."""
    going: dict[Key, Pod] = {}
    for step in reversed(steps):
        fresh = [pod for pod in step.pods if pod.key not in going]
        if allowance.take(fresh):
            going.update((pod.key, pod) for pod in fresh)
    return list(going.values())


def steps_of_guests(cycle: Cycle, members: Members) -> list[Step]:
    """Groups that use nodes kept for this one, and said they may be evicted at any time."""
    nodes = cycle.reservations.get(members.key, ())
    found = {}
    for node in nodes:
        for pod in cycle.view.pods_on(node):
            other = cycle.view.members_of(pod)
            if other.group.guest and other is not members:
                found[other.key] = other
    return _ordered(_steps(cycle, found.values()), {})


def _ordered(steps: Iterable[Step], over: dict[str, tuple[float, ...]]) -> list[Step]:
    def key(step: Step) -> tuple[object, ...]:
        group = step.members.group
        return step.rank, over.get(group.queue, ()), group.priority, step.lost, -group.created, group.key

    return sorted(steps, key=key)  # stable: surplus pods of one group keep their order


def _steps(cycle: Cycle, groups: Iterable[Members]) -> list[Step]:
    # Whoever just got more pods by this plan is left alone: taking the others away would leave those behind. So is a
    # gang whose PodGroup is not seen here: all its pods would look as if they could be spared.
    able = [m for m in groups if m.sitting and m.known and m.group.preemptable and m.key not in cycle.bound]
    if len(able) > GROUPS_LOOKED_INTO:
        able = nsmallest(GROUPS_LOOKED_INTO, able, key=lambda members: _glance(cycle, members))
    return [step for members in able for step in _known_steps(cycle, members)]


def _known_steps(cycle: Cycle, members: Members) -> tuple[Step, ...]:
    """Worked out once in a plan: many groups look for victims, and mostly among the same."""
    found = cycle.steps.get(members.key)
    if found is None:
        found = cycle.steps[members.key] = tuple(_of_group(cycle, members))
    return found


def _glance(cycle: Cycle, members: Members) -> tuple[object, ...]:
    """The order of victims as one pod of each group tells it, where there are too many to look into all of them."""
    group, pod = members.group, members.first_sitting()
    is_whole = len(members.sitting) == group.min_member
    return is_whole, group.priority, _lost(cycle, pod) * len(members.sitting), -group.created, group.key


def _of_group(cycle: Cycle, members: Members) -> Iterable[Step]:
    able = sorted((pod for pod in members.sitting.values() if _is_evictable(cycle, members, pod)), key=pod_order)
    if not able:
        return
    broken = not members.is_whole and members.group.phase is not COMPLETED  # one role may lack somebody
    spare = [] if broken else _spare(members, able)
    for pod in spare:
        rank = SHRINK if members.group.elastic else SURPLUS
        yield Step(rank, members, (pod,), _lost(cycle, pod), held(cycle, (pod,)))
    everybody = len(able) == len([pod for pod in members.sitting.values() if pod.key not in cycle.given_up])
    if everybody and len(spare) < len(able) and (broken or cycle.settings.evict_whole_gangs):
        lost = sum(_lost(cycle, pod) for pod in able)
        yield Step(SURPLUS if broken else WHOLE, members, tuple(able), lost, held(cycle, able))


def _is_evictable(cycle: Cycle, members: Members, pod: Pod) -> bool:
    return members.may_evict(pod) and pod.key not in cycle.given_up and not cycle.allowance.spares(pod)


def _spare(members: Members, able: list[Pod]) -> list[Pod]:
    """Pods the gang can lose and still be whole, the last in pod order first."""
    gone = len(members.sitting) - len(able)
    left = members.ready - gone - members.group.min_member
    least = members.counted_roles()
    roles = Counter(pod.role for pod in members.sitting.values())
    spare: list[Pod] = []
    if members.group.subgroups:
        return spare  # a pod fewer may cost a whole subgroup
    for pod in reversed(able):
        if left <= 0:
            break
        if roles[pod.role] > least.get(pod.role, 0):
            roles[pod.role] -= 1
            left -= 1
            spare.append(pod)
    return spare


def _lost(cycle: Cycle, pod: Pod) -> float:
    kept = pod.since if pod.checkpoint is None else max(pod.since, pod.checkpoint)
    vector = cycle.view.vector_of(pod)
    devices = cycle.devices.get(vector)
    if devices is None:
        asked = sum(amount for name, amount in vector.counted if name in cycle.settings.accelerators)
        devices = cycle.devices[vector] = max(asked / 1000, 1.0)
    return max(cycle.now - kept, 0.0) * devices


def held(cycle: Cycle, pods: Iterable[Pod]) -> Amounts:
    """What these pods request together."""
    found: Amounts = {}
    for pod in pods:
        for name, amount in cycle.view.vector_of(pod).counted:
            found[name] = found.get(name, 0) + amount
    return found
