"""Reclaim: a group with more members than it needs gives some back when its scheduler requests their places.

The scheduler names pods by uid, because it has planned what replaces them; a repeated request, or one for a pod that is
gone, therefore has no effect. No needed member is given back: job, group and each role keep their minima, and where not
all that is requested can be given back, the highest indexes of the last role are first. Each member given back is
settled in the same job state: its end is not evaluated, triggers no reaction and is charged to no budget. Its task
waits and gets a new pod, which is placed when there is room again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.engine.gates import GroupGate, GroupPlan
from shoal.engine.messages import stated
from shoal.engine.observed import ObservedPod, PodPhase
from shoal.engine.pass_context import PassContext, Tasks, settle_pods
from shoal.engine.state import JobState, SettledReason, format_tasks
from shoal.engine.types import TaskRef
from shoal.kube.messages import Message

if TYPE_CHECKING:
    from shoal.engine.model import Job


@dataclass(frozen=True, slots=True)
class ReclaimLimits:
    """What remains of a group that gives members back to the scheduler on request."""

    minimum: int  # members of the group
    of_role: Mapping[str, int] = field(default_factory=dict)  # and of single roles among them


RECLAIMED = "given"  # why a pod is settled


def reclaim_pods(job: Job, state: JobState, context: PassContext) -> JobState:
    if not state.run.is_open or job.deleting:
        return state  # all are deleted in any case
    for plan in (plan for gate in job.policies.gates if isinstance(gate, GroupGate) for plan in gate.groups):
        group = context.observed.groups.get(plan.key)
        if group is not None and group.asked and group.owned and not group.leaving and plan.reclaim_limits is not None:
            going = _select_pods(job, state, context, plan, plan.reclaim_limits, frozenset(group.asked))
            if going:
                cause = stated(group.reclaim_reason) if group.reclaim_reason else Message("Cause.Scheduler")
                state = _release_pods(job, state, context, going, cause)
    return state


def _select_pods(
    job: Job,
    state: JobState,
    context: PassContext,
    plan: GroupPlan,
    reclaim_limits: ReclaimLimits,
    asked: frozenset[str],
) -> list[TaskRef]:
    """Which of the requested members are given back: as many as the group can spare."""
    ranks = {role.name: rank for rank, role in enumerate(job.roles) if not plan.roles or role.name in plan.roles}
    up = {TaskRef(*place): pod for place, pod in context.pods.items() if is_up(pod)}
    staying = Counter(ref.role for ref in up)
    for role in state.roles:  # members that have succeeded count for the minima as well
        staying[role.name] += sum(
            1 for t in role.tasks if t.is_done and not t.dropped and t.outcome is not None and t.outcome.is_ok
        )
    of_group = sum(count for name, count in staying.items() if name in ranks)
    spare = min(of_group - reclaim_limits.minimum, staying.total() - (job.minimum or 0))
    going: list[TaskRef] = []
    wanted = (ref for ref, pod in up.items() if pod.uid in asked and ref.role in ranks)
    for ref in sorted(wanted, key=lambda ref: (-ranks[ref.role], -ref.index)):
        if len(going) < spare and staying[ref.role] > reclaim_limits.of_role.get(ref.role, 0):
            staying[ref.role] -= 1
            going.append(ref)
    return going


def is_up(pod: ObservedPod) -> bool:
    """Whether it holds a place and keeps it."""
    return bool(pod.node or pod.phase is PodPhase.RUNNING) and not pod.is_finished and not pod.leaving


def _release_pods(job: Job, state: JobState, context: PassContext, going: list[TaskRef], cause: Message) -> JobState:
    roles = dict.fromkeys(ref.role for ref in going)
    tasks = " and ".join(format_tasks(role, (ref.index for ref in going if ref.role == role)) for role in roles)
    code = "GaveBack" if len(going) > 1 else "GaveBack.One"
    context.emit("", code, job=job.name, count=len(going), tasks=tasks, cause=cause)
    changes, settled = Tasks(), dict[str, SettledReason]()
    for ref in going:
        task = state.task(ref)
        assert task is not None, f"{ref} has a pod and no record"
        settled[context.pods[(ref.role, ref.index)].uid] = SettledReason(ref.role, ref.index, RECLAIMED)
        changes.setdefault(ref.role, {})[ref.index] = task.after_reclaim(context.stamp)
    return settle_pods(state.with_tasks(changes), context, settled)
