"""Turns what a cycle decided into the plan: binds, evictions, each group's phase and its message."""

from __future__ import annotations

from typing import Literal

from shoal.kube.conditions import CLAIM_MISSING, TOO_LARGE
from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.cycle_state import BlockReason, CycleState, GroupRecord, Obstacle
from shoal.scheduler.planner.diagnosis import Diagnoser
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.gang_types import COMPLETED, INQUEUE, PENDING, RUNNING, UNKNOWN, PodGroup, PodGroupPhase
from shoal.scheduler.planner.message_parts import undone, waiting
from shoal.scheduler.planner.plan_types import Bind, GroupResult, Nominate, Plan, Wait

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


def build_plan(cycle: CycleState) -> Plan:
    explainer = Diagnoser(cycle)
    waits: list[Wait] = []
    results: list[GroupResult] = []
    for _, gang in sorted(cycle.view.unsettled.items()):
        if gang.lone:
            waits += _lone_pod_waits(cycle, gang, explainer)
        elif gang.known:
            results.append(_group_result(cycle, gang, explainer))
        else:
            still = cycle.blocked.get(gang.key)
            if still is not None:
                message = explainer.diagnose(gang, still).message
                waits += [Wait(pod.key, pod.uid, message, "Queued") for pod in gang.candidates()]
    return Plan(
        binds=tuple(
            Bind(one.pod.key, one.pod.uid, _node(cycle, one.row), one.devices)
            for placed in cycle.bound.values()
            for one in placed
        ),
        waits=tuple(waits),
        evictions=tuple(cycle.evictions),
        shrinks=tuple(cycle.shrinks),
        # Kept only where this plan or an earlier one requested pods to leave for the group.
        nominations=tuple(
            Nominate(one.pod.key, _node(cycle, one.row))
            for key, placed in cycle.promised.items()
            if cycle.blocked[key].leaving or key in cycle.view.nominated
            for one in placed
        ),
        groups=tuple(results),
        reservations=tuple(sorted(cycle.reservations.items())),
        warnings=tuple(_warnings(cycle)),
        searches=cycle.searches,
        ways=(*cycle.ways, *("undo" for _ in cycle.undone)),
        wake_at=cycle.wake_at,
        again=_frees_capacity(cycle),
    )


def _frees_capacity(cycle: CycleState) -> bool:
    """Whether something decided here may help a group that this plan leaves waiting.

    The watch shows nothing new when decisions come back: they were assumed. A placed pod may be the one that required
    affinity or an even spread waits for, it moves shares and accounts, and nodes open when a reservation ends.
    """
    if not cycle.blocked:
        return False
    if cycle.bound or cycle.evictions or cycle.shrinks or cycle.reservations != cycle.view.reservations:
        return True
    return any(record.phase is not cycle.view.groups[key].group.phase for key, record in cycle.records.items())


def _node(cycle: CycleState, row: int) -> str:
    node = cycle.resources.nodes[row]
    assert node is not None, "a placed pod has a node"
    return node.name


def _lone_pod_waits(cycle: CycleState, gang: Gang, explainer: Diagnoser) -> list[Wait]:
    still = cycle.blocked.get(gang.key)
    if still is None or gang.key in cycle.bound:
        return []
    message, too_large = explainer.diagnose(gang, still)
    reason = _pod_reason(BLOCKED[still.obstacle], message)
    return [Wait(pod.key, pod.uid, message, reason, too_large) for pod in gang.waiting.values()]


def _pod_reason(blocked: Blocked, message: Message) -> str:
    cause = message.parameters.get("cause")
    if cause is not None and cause.code == "All":
        cause = cause.parameters["parts"][0]
    if cause is not None and cause.code == "Claim.Missing":
        return CLAIM_MISSING
    return "Unschedulable" if blocked == "capacity" else "Queued"


def _group_result(cycle: CycleState, gang: Gang, explainer: Diagnoser) -> GroupResult:
    group, key = gang.group, gang.key
    record = cycle.records.get(key) or group
    bound = len(cycle.bound.get(key, ()))
    still = None if bound else cycle.blocked.get(key)
    if still is not None and group.phase in BEFORE and not (cycle.undone or gang.scheduled):
        return _waiting_result(gang, record, still, explainer)
    phase = _phase(cycle, gang, bound)
    ran = group.ran or phase in STARTED
    since = None if phase is PENDING else record.inqueue_since
    blocked: Blocked = ""
    too_large = False
    if key in cycle.undone:
        reason, message, blocked = "NotEnoughResources", undone(gang.minimum().total), "capacity"
    elif still is not None and (phase not in STARTED or gang.waiting):
        (message, too_large), blocked = explainer.diagnose(gang, still), BLOCKED[still.obstacle]
        reason = _reason(still, too_large)
    elif phase is UNKNOWN and (lack := gang.missing()) is not None:
        (reason, cause), blocked = lack, "pods"
        message = waiting(cause)
    else:
        reason, message = "Scheduled", _started(gang, bound)
    if phase in STARTED and blocked:
        reason, too_large = "Scheduled", False  # it runs; what waits is beyond its minimum
    timeouts = 0 if ran else record.timeouts
    return GroupResult(group.key, phase, reason, message, blocked, since, record.not_before, timeouts, ran, too_large)


def _waiting_result(
    gang: Gang, record: GroupRecord | PodGroup, still: BlockReason, explainer: Diagnoser
) -> GroupResult:
    """The result for most groups of a full cluster: no pod of it has a node yet, and none gets one."""
    group, phase = gang.group, record.phase
    message, too_large = explainer.diagnose(gang, still)
    return GroupResult(
        group.key,
        phase,
        _reason(still, too_large),
        message,
        BLOCKED[still.obstacle],
        None if phase is PENDING else record.inqueue_since,
        record.not_before,
        0 if group.ran else record.timeouts,
        group.ran,
        too_large,
    )


def _reason(still: BlockReason, too_large: bool) -> str:
    return still.reason or (TOO_LARGE if too_large else REASONS.get(still.obstacle, "NotEnoughResources"))


def _phase(cycle: CycleState, gang: Gang, bound: int) -> PodGroupPhase:
    record = cycle.records.get(gang.key) or gang.group
    least = gang.group.min_member
    if gang.key in cycle.undone:
        return INQUEUE
    if bound and gang.scheduled - gang.lost + bound >= least:
        return RUNNING
    still = cycle.blocked.get(gang.key)
    # Pods that do not exist yet, or that another scheduler places, were not tried.
    phase = gang.phase(unplaced=still is not None and still.obstacle != "pods")
    if phase in BEFORE:
        return record.phase if record.phase in BEFORE else INQUEUE
    return phase


def _started(gang: Gang, bound: int) -> Message:
    if bound:
        total = gang.ready + bound
        if bound == 1:
            return Message("Scheduled.One", {"total": total})
        return Message("Scheduled", {"placed": bound, "total": total})
    if gang.placed:
        if gang.ready == 1:
            return Message("Scheduled.OnePlaced")
        return Message("Scheduled.Placed", {"count": gang.ready})
    return Message("Scheduled.Finished" if gang.finished else "Scheduled.Admitted")


def _warnings(cycle: CycleState) -> list[Message]:
    found = []
    total = cycle.shares.total
    kept: dict[str, int] = {}
    for name, queue in sorted(cycle.view.queues.items()):
        if cycle.shares.by_weight and queue.deserved:
            found.append(Message("Queue.DeservedUnused", {"queue": name}))
        for resource, amount in queue.guarantee.items():
            kept[resource] = kept.get(resource, 0) + amount
    for resource, amount in sorted(kept.items()):
        if amount > total.get(resource, 0):
            found.append(Message("Queue.GuaranteesOverCluster", {"resource": resource}))
    return found


def pod_waits(plan: Plan, view: ClusterView) -> tuple[Wait, ...]:
    """The waits to report on pods of gangs, where they concern the pod.

    Only pods that more capacity would help are called Unschedulable, so that an autoscaler adds nodes for those and no
    others. Called before `assume`; it is not included in the plan because a plan is made more often than it is
    reported.
    """
    binds: set[Key] = {bind.pod for bind in plan.binds}
    found: list[Wait] = []
    for result in plan.groups:
        if result.blocked:
            reason = _pod_reason(result.blocked, result.message)
            reported, waiting = result.message, view.groups[result.group].waiting.values()
            large = result.too_large
            found += [Wait(pod.key, pod.uid, reported, reason, large) for pod in waiting if pod.key not in binds]
    return tuple(found)
