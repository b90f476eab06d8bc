"""Eviction candidates in order of preference: as steps, each of which leaves every gang whole or gone.

First elastic jobs give back what they have beyond their minimum; then surplus pods of other gangs are evicted, and
what is left of broken ones; whole gangs are last. Within each of these: the queue that is most over its share, the
lowest priority, and then the least work lost, counted since the last checkpoint where one is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cycle_state import CycleState, asked_at_least
from shoal.scheduler.planner.disruption_budgets import BudgetAllowance
from shoal.scheduler.planner.gang import Gang, pod_order
from shoal.scheduler.planner.gang_types import COMPLETED
from shoal.scheduler.planner.node_and_pod_types import Pod

SHRINK, SURPLUS, WHOLE = range(3)
GROUPS_LOOKED_INTO = 512


@dataclass(frozen=True, slots=True)
class EvictionStep:
    rank: int
    gang: Gang
    pods: tuple[Pod, ...]
    lost: float  # seconds of work, times accelerators
    held: Mapping[str, int]  # what its pods request


def has_weaker(cycle: CycleState, gang: Gang) -> bool:
    return min(cycle.view.accounts[gang.group.queue].priorities) < gang.group.priority


def steps_within(cycle: CycleState, gang: Gang) -> list[EvictionStep]:
    """Preemption: groups of the same queue with strictly lower priority."""
    account = cycle.view.accounts[gang.group.queue]
    mine = gang.group.priority
    weaker = (other for other in account.groups.values() if other.group.priority < mine and other is not gang)
    return _ordered(_steps(cycle, weaker), {})


def steps_of_queue(cycle: CycleState, name: str) -> list[EvictionStep]:
    """Steps that evict the groups of a queue, in their order; computed once in a plan."""
    found = cycle.queue_steps.get(name)
    if found is None:
        groups = (gang for gang in cycle.view.accounts[name].groups.values() if gang.is_reclaimable)
        steps = (step for step in _steps(cycle, groups) if not _has_just_started(cycle, step))
        found = cycle.queue_steps[name] = _ordered(steps, {})
    return found


def _has_just_started(cycle: CycleState, step: EvictionStep) -> bool:
    """Whether it is a whole gang that exceeds its share by weight and has not run for long.

    It could start only because it had waited too long. Evicted at once for groups that have waited since, it would wait
    as long again, and never get any work done.
    """
    if step.rank != WHOLE or not cycle.shares.by_weight:
        return False
    part = cycle.shares.part(step.gang.group.queue)
    if all(amount <= part.get(name, float("inf")) for name, amount in step.held.items()):
        return False
    until = max(pod.since for pod in step.pods) + cycle.settings.starving_seconds
    cycle.wake(until)
    return cycle.now < until


def is_losable(cycle: CycleState, name: str, wanted: Collection[str]) -> bool:
    """Whether others that need such resources may reclaim anything from the queue in its current state."""
    standing = cycle.shares.standings.get(name)
    return standing is not None and any(cycle.shares.can_lose(name, {r: 1}, wanted) for r in standing.allocated)


def steps_beyond(cycle: CycleState, gang: Gang) -> list[EvictionStep]:
    """Reclaim: groups of other queues that hold more than they deserve; nearest queues first."""
    shares = cycle.shares
    mine, wanted = shares.standings[gang.group.queue].line, asked_at_least(gang, cycle.view)
    over: dict[str, tuple[float, ...]] = {}
    found: list[EvictionStep] = []
    for name in cycle.view.accounts:
        if name == gang.group.queue or not is_losable(cycle, name, wanted):
            continue
        standing = shares.standings[name]
        # Levels from the requesting queue up to a common ancestor; all where there is none.
        common = next((n for n, above in enumerate(mine) if above in standing.line), len(mine))
        over[name] = (float(common), float(standing.queue.priority), -shares.share(name))
        found += steps_of_queue(cycle, name)
    return _ordered(found, over)


def reclaimable_amounts(cycle: CycleState, groups: Iterable[Gang]) -> Amounts:
    """What these would lose together if each gave way as far as it may: all it holds, or where gangs are not evicted
    whole, what it holds beyond its minimum."""
    found: Amounts = {}
    allowance = cycle.allowance.trial()
    for gang in groups:
        group = gang.group
        if not gang.known or not group.preemptable or not gang.placed:
            continue
        whole, least = cycle.settings.evict_whole_gangs, group.min_resources
        is_counted = (whole or least) and not gang.has_unevictable
        if not is_counted or cycle.view.budgets.has_budgets(group.key.namespace):
            gives = held(cycle, _most_to_go(_known_steps(cycle, gang), allowance))
        else:  # no pod stays, so their sum will do: there may be many
            keeps = {} if whole or least is None else least
            gives = {name: max(amount - keeps.get(name, 0), 0) for name, amount in gang.allocated.items()}
        for name, amount in gives.items():
            found[name] = found.get(name, 0) + amount
    return found


def _most_to_go(steps: Sequence[EvictionStep], allowance: BudgetAllowance) -> list[Pod]:
    """The last step is that of all together, where there is one; else as many as can be spared."""
    going: dict[Key, Pod] = {}
    for step in reversed(steps):
        fresh = [pod for pod in step.pods if pod.key not in going]
        if allowance.take(fresh):
            going.update((pod.key, pod) for pod in fresh)
    return list(going.values())


def steps_of_guests(cycle: CycleState, gang: Gang) -> list[EvictionStep]:
    """Groups that use nodes kept for this one, and allow that they are evicted at any time."""
    nodes = cycle.reservations.get(gang.key, ())
    found = {}
    for node in nodes:
        for pod in cycle.view.pods_on(node):
            other = cycle.view.gang_of(pod)
            if other.group.preemptible_guest and other is not gang:
                found[other.key] = other
    return _ordered(_steps(cycle, found.values()), {})


def _ordered(steps: Iterable[EvictionStep], over: dict[str, tuple[float, ...]]) -> list[EvictionStep]:
    def key(step: EvictionStep) -> tuple[object, ...]:
        group = step.gang.group
        return step.rank, over.get(group.queue, ()), group.priority, step.lost, -group.created, group.key

    return sorted(steps, key=key)  # stable: surplus pods of one group keep their order


def _steps(cycle: CycleState, groups: Iterable[Gang]) -> list[EvictionStep]:
    # A group that just got more pods by this plan is left alone: evicting the others would strand those. So is a
    # gang whose PodGroup is not seen here: all its pods would look as if they could be spared.
    able = [m for m in groups if m.placed and m.known and m.group.preemptable and m.key not in cycle.bound]
    if len(able) > GROUPS_LOOKED_INTO:
        able = nsmallest(GROUPS_LOOKED_INTO, able, key=lambda gang: _rough_rank(cycle, gang))
    return [step for gang in able for step in _known_steps(cycle, gang)]


def _known_steps(cycle: CycleState, gang: Gang) -> tuple[EvictionStep, ...]:
    """Worked out once in a plan: many groups look for victims, and mostly among the same."""
    found = cycle.steps.get(gang.key)
    if found is None:
        found = cycle.steps[gang.key] = tuple(_of_group(cycle, gang))
    return found


def _rough_rank(cycle: CycleState, gang: Gang) -> tuple[object, ...]:
    """The order of victims by one pod of each group, where there are too many to examine all of them."""
    group, pod = gang.group, gang.first_sitting()
    is_whole = len(gang.placed) == group.min_member
    return is_whole, group.priority, _lost(cycle, pod) * len(gang.placed), -group.created, group.key


def _of_group(cycle: CycleState, gang: Gang) -> Iterable[EvictionStep]:
    kept, allowance = cycle.given_up, cycle.allowance
    able = [
        pod
        for pod in gang.placed.values()
        if gang.may_evict(pod) and pod.key not in kept and not allowance.is_protected(pod)
    ]
    able.sort(key=pod_order)
    if not able:
        return
    broken = not gang.is_whole and gang.group.phase is not COMPLETED  # one role may lack a pod
    spare = [] if broken else _spare(gang, able)
    for pod in spare:
        rank = SHRINK if gang.group.elastic else SURPLUS
        yield EvictionStep(rank, gang, (pod,), _lost(cycle, pod), held(cycle, (pod,)))
    all_pods = len(able) == len([pod for pod in gang.placed.values() if pod.key not in cycle.given_up])
    if all_pods and len(spare) < len(able) and (broken or cycle.settings.evict_whole_gangs):
        lost = sum(_lost(cycle, pod) for pod in able)
        yield EvictionStep(SURPLUS if broken else WHOLE, gang, tuple(able), lost, held(cycle, able))


def _spare(gang: Gang, able: list[Pod]) -> list[Pod]:
    """Pods the gang can lose and still be whole, the last in pod order first."""
    gone = len(gang.placed) - len(able)
    left = gang.ready - gone - gang.group.min_member
    least = gang.counted_roles()
    roles = Counter(pod.role for pod in gang.placed.values())
    spare: list[Pod] = []
    if gang.group.subgroups:
        return spare  # a pod fewer may cost a whole subgroup
    for pod in reversed(able):
        if left <= 0:
            break
        if roles[pod.role] > least.get(pod.role, 0):
            roles[pod.role] -= 1
            left -= 1
            spare.append(pod)
    return spare


def _lost(cycle: CycleState, pod: Pod) -> float:
    kept = pod.since if pod.checkpoint is None else max(pod.since, pod.checkpoint)
    vector = cycle.view.vector_of(pod)
    devices = cycle.devices.get(vector)
    if devices is None:
        asked = sum(amount for name, amount in vector.counted if name in cycle.settings.accelerators)
        devices = cycle.devices[vector] = max(asked / 1000, 1.0)
    return max(cycle.now - kept, 0.0) * devices


def held(cycle: CycleState, pods: Iterable[Pod]) -> Amounts:
    """What these pods request together."""
    found: Amounts = {}
    for pod in pods:
        for name, amount in cycle.view.vector_of(pod).counted:
            found[name] = found.get(name, 0) + amount
    return found
