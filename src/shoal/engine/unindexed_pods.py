"""Members without a name of their own: pods with random names are assigned to the slots of a role.

The one module that handles slots that are mere counts. A pod with an index (completions by index) takes that slot; one
without keeps the slot whose record names its uid, else takes the lowest free one, oldest first. A role grows a slot for
each pod that finds none, and the ordinary resize then removes the surplus. Where slots are counts, a final end is added
to the role's counters and the slot is used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shoal.engine.observed import ObservedPod, PodPhase
from shoal.engine.pass_context import PassContext, settle_pods
from shoal.engine.pod_outcomes import ExternalDeletion, SlotRelease
from shoal.engine.state import JobState, RoleState, SettledReason, TaskState
from shoal.engine.types import Memory, PodNames

if TYPE_CHECKING:
    from shoal.engine.model import Job


@dataclass(frozen=True, slots=True)
class CompletionsSize:
    """As many at once as `parallelism` and the successes still missing allow; completions None: one success."""

    parallelism: int
    completions: int | None
    indexed: bool = False  # each success belongs to an index of its own

    def open_slots(self, role: RoleState | None) -> int:
        """How many pods the role should have now."""
        tasks = role.tasks if role is not None else ()
        achieved = role.ok_count if role is not None else 0
        achieved += sum(1 for task in tasks if task.is_done and task.outcome and task.outcome.is_ok)
        if self.completions is not None:
            return max(0, min(self.parallelism, self.completions - achieved))
        if not achieved:
            return self.parallelism
        # After the first success existing pods may finish, and no more are created.
        existing = sum(1 for task in tasks if task.uid is not None and not task.is_done and not task.dropped)
        return min(existing, self.parallelism)


_LATE = datetime.max.replace(tzinfo=UTC)


_PHASES = {PodPhase.PENDING: 0, PodPhase.UNKNOWN: 1}


def assign_slots(job: Job, state: JobState, context: PassContext) -> JobState:
    """Each pod to a slot, but those that are settled, counted or not ours."""
    waiting: dict[str, list[ObservedPod]] = {}
    for pod in sorted(context.observed.pods, key=lambda pod: (pod.created or _LATE, pod.name)):
        if not pod.owned:
            continue
        if pod.uid in state.settled:
            context.settled_pods.append(pod)
        elif _needs_slot(job, pod):
            waiting.setdefault(pod.role, []).append(pod)
    known = {role.name for role in state.roles}
    roles = [*state.roles, *(RoleState(name) for name in waiting if name not in known)]
    assigned = tuple(_assign_role_slots(role, waiting.get(role.name, []), context) for role in roles)
    if len(assigned) == len(state.roles) and all(a is b for a, b in zip(assigned, state.roles, strict=True)):
        return state
    return replace(state, roles=assigned)


def _needs_slot(job: Job, pod: ObservedPod) -> bool:
    if job.policies.pod_policy.memory is Memory.FINALIZER:
        return pod.finalizer or not (pod.is_finished or pod.leaving)  # without it the pod is counted already
    if pod.is_finished:
        return False
    pod_end = job.policies.pod_end
    return not (
        pod.leaving and pod_end.external_deletion is ExternalDeletion.NOTHING and pod_end.release is SlotRelease.LEAVING
    )


def _assign_role_slots(role: RoleState, pods: list[ObservedPod], context: PassContext) -> RoleState:
    slots = {task.index: task for task in role.tasks}
    owner = {task.uid: task.index for task in role.tasks if task.uid is not None}
    present = {pod.uid for pod in pods}
    taken = {index for uid, index in owner.items() if uid in present}
    for pod in pods:
        index = owner.get(pod.uid, pod.index)
        if index is None:
            free = (t.index for t in role.tasks if t.index not in taken and not t.is_done and not t.dropped)
            index = next(free, None)
        if index is None:
            index = max(slots, default=-1) + 1
        is_over = index in slots and slots[index].is_done
        if (role.name, index) in context.pods or (is_over and not pod.is_finished):
            context.strays.append(pod)  # a second pod of one index
            continue
        taken.add(index)
        slots.setdefault(index, TaskState(index))
        context.pods[(role.name, index)] = pod
    if len(slots) == len(role.tasks):
        return role
    return replace(role, tasks=tuple(slots[index] for index in sorted(slots)))


def deletion_rank(pod: ObservedPod | None, crowd: int = 0) -> tuple[object, ...]:
    """How late a ReplicaSet deletes this pod: unassigned, not running, not ready, cheap, crowded, young first.

    `crowd` is how many members share its node.
    """
    if pod is None:
        return (False, 0, False, 0, 0, 0.0, 0, 0.0)
    return (
        bool(pod.node),
        _PHASES.get(pod.phase, 2),
        pod.ready,
        pod.deletion_cost,
        -crowd,
        _age_rank(pod.ready_since),
        -pod.restarts,
        _age_rank(pod.created),
    )


def _age_rank(moment: datetime | None) -> float:
    """Later is smaller; an unrecorded time is the latest."""
    return -moment.timestamp() if moment is not None else float("-inf")


def slots_wanted(role: RoleState, size: CompletionsSize, open_slots: int) -> list[TaskState]:
    """The role's slots for the completions still missing: those in use, then the lowest that never ended."""
    done = [task for task in role.tasks if task.is_done]
    living = [task for task in role.tasks if not task.is_done and not task.dropped]
    living = sorted(living, key=lambda task: task.uid is None)[:open_slots]  # existing pods before future ones
    used = {task.index for task in (*done, *living)}
    limit = size.completions if size.indexed and size.completions is not None else None
    index = 0
    while len(living) < open_slots and (limit is None or index < limit):
        if index not in used:
            living.append(TaskState(index))
        index += 1
    return sorted([*done, *living], key=lambda task: task.index)


def count_done(job: Job, state: JobState, context: PassContext) -> JobState:
    """Where slots are counts, ends that stand go into the counters and leave their slots."""
    size = job.policies.size
    is_counted = job.policies.pod_policy.names is PodNames.RANDOM and not (
        isinstance(size, CompletionsSize) and size.indexed
    )
    if not is_counted or not any(task.is_done for role in state.roles for task in role.tasks):
        return state
    settled: dict[str, SettledReason] = {}
    roles = []
    for role in state.roles:
        done = [task for task in role.tasks if task.is_done and task.outcome is not None]
        good = sum(1 for task in done if task.outcome is not None and task.outcome.is_ok)
        for task in done:
            pod = context.pods.get((role.name, task.index))
            if pod is not None and task.outcome is not None:
                settled[pod.uid] = SettledReason(role.name, task.index, "counted", task.outcome.is_ok)
        living = tuple(task for task in role.tasks if not task.is_done)
        counts = {"ok_count": role.ok_count + good, "bad_count": role.bad_count + len(done) - good}
        roles.append(replace(role, tasks=living, **counts) if done else role)
    context.requeue = True
    return settle_pods(replace(state, roles=tuple(roles)), context, settled)
