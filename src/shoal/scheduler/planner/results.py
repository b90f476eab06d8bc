"""Turns what a cycle decided into the plan: binds, evictions, each group's phase and its sentence."""

from __future__ import annotations

from typing import Literal

from shoal.kube.conditions import TOO_LARGE
from shoal.kube.objects import Key
from shoal.scheduler.planner.cache import ClusterView
from shoal.scheduler.planner.cycle_state import Cycle, Obstacle, Record, Standstill
from shoal.scheduler.planner.diagnosis import Explainer
from shoal.scheduler.planner.gang import Members
from shoal.scheduler.planner.gang_types import COMPLETED, INQUEUE, PENDING, RUNNING, UNKNOWN, Group, Phase
from shoal.scheduler.planner.plan_types import Bind, Nominate, Plan, Verdict, Wait

Blocked = Literal["", "capacity", "quota", "queue", "pods", "order"]
BLOCKED: dict[Obstacle, Blocked] = {
    "capacity": "capacity",
    "leaving": "capacity",
    "claims": "capacity",
    "quota": "quota",
    "queue": "queue",
    "backoff": "queue",
    "pods": "pods",
    "order": "order",
}
REASONS: dict[Obstacle, str] = {
    "capacity": "NotEnoughResources",
    "leaving": "NotEnoughResources",
    "quota": "QueueQuota",
}
BEFORE, STARTED = (INQUEUE, PENDING), (RUNNING, COMPLETED)
UNDONE = "undone: {} of its pods stayed without a place for too long after the others were bound"


def conclude(cycle: Cycle) -> Plan:
    explainer = Explainer(cycle)
    waits: list[Wait] = []
    verdicts: list[Verdict] = []
    for _, members in sorted(cycle.view.unsettled.items()):
        if members.lone:
            waits += _lone(cycle, members, explainer)
        elif members.known:
            verdicts.append(_verdict(cycle, members, explainer))
        else:
            waits += _orphans(cycle, members, explainer)
    return Plan(
        binds=tuple(_binds(cycle)),
        waits=tuple(waits),
        evictions=tuple(cycle.evictions),
        shrinks=tuple(cycle.shrinks),
        nominations=tuple(_nominations(cycle)),
        groups=tuple(verdicts),
        reservations=tuple(sorted(cycle.reservations.items())),
        warnings=tuple(_warnings(cycle)),
        searches=cycle.searches,
        ways=(*cycle.ways, *("undo" for _ in cycle.undone)),
        wake_at=cycle.wake_at,
        again=_opens_the_way(cycle),
    )


def _binds(cycle: Cycle) -> list[Bind]:
    return [
        Bind(one.pod.key, one.pod.uid, _node(cycle, one.row), one.devices)
        for placed in cycle.bound.values()
        for one in placed
    ]


def _opens_the_way(cycle: Cycle) -> bool:
    """Whether something decided here may help a group that this plan leaves waiting.

    The watch shows nothing new when decisions come back: they were assumed. A placed pod may be the one that required
    affinity or an even spread waits for, it moves shares and accounts, and nodes open when a reservation ends.
    """
    if not cycle.still:
        return False
    if cycle.bound or cycle.evictions or cycle.shrinks or cycle.reservations != cycle.view.reservations:
        return True
    return any(record.phase is not cycle.view.groups[key].group.phase for key, record in cycle.records.items())


def _nominations(cycle: Cycle) -> list[Nominate]:
    """Kept only where pods were asked to leave, by this plan or an earlier one, on the group's behalf."""
    return [
        Nominate(one.pod.key, _node(cycle, one.row))
        for key, placed in cycle.promised.items()
        if cycle.still[key].words or key in cycle.view.nominated
        for one in placed
    ]


def _node(cycle: Cycle, row: int) -> str:
    node = cycle.room.nodes[row]
    assert node is not None, "a placed pod has a node"
    return node.name


def _lone(cycle: Cycle, members: Members, explainer: Explainer) -> list[Wait]:
    still = cycle.still.get(members.key)
    if still is None or members.key in cycle.bound:
        return []
    sentence, too_large = explainer.finding(members, still)
    return [Wait(pod.key, pod.uid, sentence, _pod_reason(still), too_large) for pod in members.waiting.values()]


def _orphans(cycle: Cycle, members: Members, explainer: Explainer) -> list[Wait]:
    still = cycle.still.get(members.key)
    if still is None:
        return []
    sentence = explainer.finding(members, still).sentence
    return [Wait(pod.key, pod.uid, sentence, "Queued") for pod in members.candidates()]


def _pod_reason(still: Standstill) -> str:
    return "Unschedulable" if BLOCKED[still.obstacle] == "capacity" else "Queued"


def _verdict(cycle: Cycle, members: Members, explainer: Explainer) -> Verdict:
    group, key = members.group, members.key
    record = cycle.records.get(key) or group
    bound = len(cycle.bound.get(key, ()))
    still = None if bound else cycle.still.get(key)
    if still is not None and group.phase in BEFORE and not (cycle.undone or members.scheduled):
        return _waits(members, record, still, explainer)
    phase = _phase(cycle, members, bound)
    ran = group.ran or phase in STARTED
    since = None if phase is PENDING else record.inqueue_since
    blocked: Blocked = ""
    too_large = False
    if key in cycle.undone:
        reason, sentence, blocked = "NotEnoughResources", UNDONE.format(members.minimum().total), "capacity"
    elif still is not None and (phase not in STARTED or members.waiting):
        (sentence, too_large), blocked = explainer.finding(members, still), BLOCKED[still.obstacle]
        reason = _reason(still, too_large)
    elif phase is UNKNOWN and (lack := members.lack()) is not None:
        (reason, words), blocked = lack, "pods"
        sentence = f"waiting: {words}"
    else:
        reason, sentence = "Scheduled", _started(members, bound)
    if phase in STARTED and blocked:
        reason, too_large = "Scheduled", False  # it runs; what waits is beyond its minimum
    timeouts = 0 if ran else record.timeouts
    return Verdict(group.key, phase, reason, sentence, blocked, since, record.not_before, timeouts, ran, too_large)


def _waits(members: Members, record: Record | Group, still: Standstill, explainer: Explainer) -> Verdict:
    """The verdict on most groups of a full cluster: nobody of it has a node yet, and nobody gets one."""
    group, phase = members.group, record.phase
    sentence, too_large = explainer.finding(members, still)
    return Verdict(
        group.key,
        phase,
        _reason(still, too_large),
        sentence,
        BLOCKED[still.obstacle],
        None if phase is PENDING else record.inqueue_since,
        record.not_before,
        0 if group.ran else record.timeouts,
        group.ran,
        too_large,
    )


def _reason(still: Standstill, too_large: bool) -> str:
    return still.reason or (TOO_LARGE if too_large else REASONS.get(still.obstacle, "NotEnoughResources"))


def _phase(cycle: Cycle, members: Members, bound: int) -> Phase:
    record = cycle.records.get(members.key) or members.group
    least = members.group.min_member
    if members.key in cycle.undone:
        return INQUEUE
    if bound and members.scheduled - members.lost + bound >= least:
        return RUNNING
    still = cycle.still.get(members.key)
    # Pods that do not exist yet, or that another scheduler places, were not tried.
    phase = members.phase(unplaced=still is not None and still.obstacle != "pods")
    if phase in BEFORE:
        return record.phase if record.phase in BEFORE else INQUEUE
    return phase


def _started(members: Members, bound: int) -> str:
    if bound:
        return f"{bound} {'pod' if bound == 1 else 'pods'} placed, {members.ready + bound} in all"
    if members.sitting:
        return "1 pod has its place" if members.ready == 1 else f"{members.ready} pods have their places"
    return "let into the queue; its pods may be created" if not members.finished else "its pods have finished"


def _warnings(cycle: Cycle) -> list[str]:
    found = []
    total = cycle.shares.total
    kept: dict[str, int] = {}
    for name, queue in sorted(cycle.view.queues.items()):
        if cycle.shares.by_weight and queue.deserved:
            found.append(f"queue {name} says what it deserves, which counts only where sharing is by capacity")
        for resource, amount in queue.guarantee.items():
            kept[resource] = kept.get(resource, 0) + amount
    for resource, amount in sorted(kept.items()):
        if amount > total.get(resource, 0):
            found.append(f"queues are guaranteed more {resource} than the cluster has")
    return found


def pod_waits(plan: Plan, view: ClusterView) -> tuple[Wait, ...]:
    """What to tell the waiting pods of gangs, where it is theirs to know.

    Only pods that more capacity would help are called Unschedulable, so that an autoscaler adds nodes for those and no
    others. Called before `assume`; it is not part of the plan because a plan is made more often than it is told.
    """
    binds: set[Key] = {bind.pod for bind in plan.binds}
    found: list[Wait] = []
    for verdict in plan.groups:
        if verdict.blocked:
            reason = "Unschedulable" if verdict.blocked == "capacity" else "Queued"
            told, waiting = verdict.sentence, view.groups[verdict.group].waiting.values()
            large = verdict.too_large
            found += [Wait(pod.key, pod.uid, told, reason, large) for pod in waiting if pod.key not in binds]
    return tuple(found)
