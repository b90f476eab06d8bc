"""Step 2, resize: which tasks should exist. Sizes come from the spec, victims from the shrink policy.

Works on an open run only: a closed one keeps its tasks, and the next run is built from the spec of its own moment.
A dropped task stops counting at once. Where the job state is the record (DropMark.LEDGER) it is kept until its pod is
gone and is then removed, or replaced by a new instance if its index is wanted again; elsewhere it is forgotten at
once and its pod is settled. Kept tasks are not touched.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shoal.engine.observed import PodPhase
from shoal.engine.pass_context import PassContext, settle_pods
from shoal.engine.state import AttemptState, JobState, RoleState, SettledReason, TaskState, format_tasks
from shoal.engine.types import DROPPED, Memory, NoticeKind, Outcome, PodNames, Stage
from shoal.engine.unindexed_pods import CompletionsSize, deletion_rank, slots_wanted

if TYPE_CHECKING:
    from shoal.engine.model import Job, Role


@dataclass(frozen=True, slots=True)
class FixedSize:
    """Each role has the size it names."""


@dataclass(frozen=True, slots=True)
class WeightedSize:
    """`total` members shared among the roles with a weight; roles of weight 0 keep their size."""

    total: int

    def shares(self, roles: tuple[Role, ...]) -> dict[str, int]:
        """One member at a time to the role with the smallest count / weight, ties to the first; all in integers.

        Adding them one by one keeps what a role already has when the total grows, which rounding shares would not.
        """
        counts = {role.name: 0 if role.weight else role.size for role in roles}
        scalable = [role for role in roles if role.weight]
        for _ in range(max(0, self.total - sum(counts.values())) if scalable else 0):
            chosen = scalable[0]
            for role in scalable[1:]:
                if counts[role.name] * chosen.weight < counts[chosen.name] * role.weight:
                    chosen = role
            counts[chosen.name] += 1
        return counts


Size = FixedSize | WeightedSize | CompletionsSize


class VictimOrder(Enum):
    HIGHEST = "highest"
    PENDING_FIRST = "pending first"
    NAMED = "named"  # Role.victims, then the highest
    RANKED = "ranked"  # as a ReplicaSet ranks pods


class DropMark(Enum):
    LEDGER = "ledger"  # a dropped task is kept until its pod is gone
    POD = "pod"  # its pod is marked before the delete
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class ShrinkPolicy:
    victims: VictimOrder = VictimOrder.HIGHEST
    mark: DropMark = DropMark.INFERRED
    outcome: Outcome = DROPPED


def target_sizes(job: Job, state: JobState | None = None) -> dict[str, int]:
    """How many tasks each role should have now."""
    size = job.policies.size
    if isinstance(size, WeightedSize):
        return size.shares(job.roles)
    if isinstance(size, CompletionsSize):
        return {role.name: size.open_slots(state.role(role.name) if state else None) for role in job.roles}
    return {role.name: role.size for role in job.roles}


def resize(job: Job, state: JobState, context: PassContext) -> JobState:
    context.sizes = target_sizes(job, state)
    context.total = sum(context.sizes.values())
    if state.is_ended:
        return state
    state = _copy_force_times(state, context)
    if not state.run.is_open:
        return state
    known = {role.name: role for role in state.roles}
    before = [known.get(role.name) or _new_role(role, context) for role in job.roles]
    # Roles removed from the spec come last and stay until their pods are gone.
    before += [role for role in state.roles if role.name not in context.roles]
    roles: list[RoleState] = []
    settled: dict[str, SettledReason] = {}
    for role in before:
        # A role that is there for the first time has not grown.
        after = _resize_role(role, context, settled, is_reported=role.name in known)
        if after.tasks or after.name in context.roles:
            roles.append(after)
    if len(roles) != len(state.roles) or any(a is not b for a, b in zip(roles, state.roles, strict=True)):
        state = replace(state, roles=tuple(roles))
    return settle_pods(state, context, settled)


def new_roles(job: Job, context: PassContext) -> tuple[RoleState, ...]:
    """The tasks of a run that opens now."""
    return tuple(
        replace(
            _new_role(role, context),
            tasks=tuple([_new_task(context, role.name, index) for index in range(context.sizes[role.name])]),
        )
        for role in job.roles
    )


def _new_role(role: Role, context: PassContext) -> RoleState:
    return RoleState(role.name, _instance(context, role.name, -1), role.force_after_seconds)


def _copy_force_times(state: JobState, context: PassContext) -> JobState:
    """The time limits of the spec for terminating pods, kept so that they outlive the role in the spec."""
    roles, changed = [], False
    for role in state.roles:
        spec = context.roles.get(role.name)
        if spec is not None and spec.force_after_seconds != role.force_after_seconds:
            role = replace(role, force_after_seconds=spec.force_after_seconds)
            changed = True
        roles.append(role)
    return replace(state, roles=tuple(roles)) if changed else state


def _resize_role(
    role: RoleState, context: PassContext, settled: dict[str, SettledReason], *, is_reported: bool
) -> RoleState:
    """Remove and replace what was dropped before, drop what is too much, add what is missing."""
    size = context.sizes.get(role.name, 0)
    if isinstance(context.job.policies.size, CompletionsSize):
        return _resize_slots(role, context.job.policies.size, context, settled)
    kept = [task for task in role.tasks if not task.dropped]
    if len(kept) == len(role.tasks) == size and (not size or role.tasks[-1].index == size - 1):
        return role
    going = victims(context.roles.get(role.name), role, context, len(kept) - size)
    wanted = _wanted_indexes(role, {task.index for task in kept}.difference(going), size)
    tasks = list(role.tasks)
    # Dropped tasks that are done leave from the tail, so that positions below stay what they were.
    while tasks and tasks[-1].dropped and tasks[-1].is_done and tasks[-1].index not in wanted:
        context.notify(NoticeKind.TASK_REMOVED, role.name, tasks.pop())
    for position, task in enumerate(tasks):
        if task.dropped and task.is_done and task.index in wanted:  # wanted again: it gets a new task
            context.notify(NoticeKind.TASK_REMOVED, role.name, task)
            name = f"{role.name}-{task.index}"
            context.emit(name, "TaskReplaced", task=name)
            tasks[position] = _new_task(context, role.name, task.index)
    if going:
        context.emit(role.name, "ScaledDown", tasks=format_tasks(role.name, going), size=size)
        tasks = _drop(tasks, role.name, set(going), context, settled)
    added = sorted(wanted.difference(task.index for task in tasks))
    if added:
        tasks = sorted([*tasks, *(_new_task(context, role.name, i) for i in added)], key=lambda task: task.index)
        if is_reported:
            context.emit(role.name, "ScaledUp", tasks=format_tasks(role.name, added), size=size)
    if len(tasks) == len(role.tasks) and all(a is b for a, b in zip(tasks, role.tasks, strict=True)):
        return role
    return replace(role, tasks=tuple(tasks))


def _resize_slots(
    role: RoleState, size: CompletionsSize, context: PassContext, settled: dict[str, SettledReason]
) -> RoleState:
    wanted = slots_wanted(role, size, context.sizes.get(role.name, 0))
    staying = {task.index for task in wanted}
    going = {task.index for task in role.tasks if task.index not in staying}
    if going:
        context.emit(role.name, "ScaledDown", tasks=format_tasks(role.name, going), size=len(wanted))
        _drop(list(role.tasks), role.name, going, context, settled)
    if len(wanted) == len(role.tasks) and not going:
        return role
    return replace(role, tasks=tuple(wanted))


def _wanted_indexes(role: RoleState, staying: set[int], size: int) -> set[int]:
    """The indexes that should have a task: those that stay, then the lowest others.

    A gap in the entries can only be a task that a compact job state does not store; it precedes an index that was
    dropped.
    """
    known = {task.index for task in role.tasks}
    # Generated one by one: an index is read from stored state or a pod's annotation and may be of any size.
    gaps = (index for index in range(max(known, default=0)) if index not in known)
    wanted = set(staying)
    for index in chain(gaps, range(len(staying) + size)):
        if len(wanted) >= size:
            break
        wanted.add(index)
    return wanted


def victims(spec: Role | None, role: RoleState, context: PassContext, count: int) -> list[int]:
    """Which `count` of the role's tasks go, in the order of the shrink policy; spared ones last."""
    tasks = [task for task in role.tasks if not task.dropped]
    if spec is None:
        return [task.index for task in tasks]
    chosen = context.job.policies.shrink.victims
    if chosen is VictimOrder.HIGHEST:
        size = len(tasks) - count
        return [task.index for task in tasks if task.index >= size]
    if count <= 0:
        return []
    crowds = Counter(pod.node for (name, _), pod in context.pods.items() if name == role.name and pod.node)

    def first_to_go(task: TaskState) -> tuple[object, ...]:
        order: tuple[object, ...] = ()
        pod = context.pods.get((role.name, task.index))
        if chosen is VictimOrder.NAMED:
            order = (spec.victims.index(task.index) if task.index in spec.victims else len(spec.victims),)
        elif chosen is VictimOrder.PENDING_FIRST:
            order = (task.is_done or (pod is not None and pod.phase is PodPhase.RUNNING),)
        elif chosen is VictimOrder.RANKED:
            order = deletion_rank(pod, crowds.get(pod.node, 0) if pod is not None else 0)
        return (task.index in spec.protected, *order, -task.index)

    return sorted(task.index for task in sorted(tasks, key=first_to_go)[:count])


def _drop(
    tasks: list[TaskState], role: str, going: set[int], context: PassContext, settled: dict[str, SettledReason]
) -> list[TaskState]:
    if context.job.policies.shrink.mark is DropMark.LEDGER:
        outcome = context.job.policies.shrink.outcome
        context.requeue = context.requeue or any(task.is_done for task in tasks if task.index in going)
        return [task.drop(outcome, context.stamp) if task.index in going else task for task in tasks]
    for index in going:
        pod = context.pods.get((role, index))
        if pod is not None:
            settled[pod.uid] = SettledReason(role, index, "dropped")
    last_kept = max((task.index for task in tasks if task.index not in going), default=-1)
    if context.job.policies.pod_policy.names is PodNames.RANDOM:
        last_kept = -1  # a slot has no identity to keep a record for
    return [
        task if task.index not in going else TaskState(task.index, stage=Stage.DONE, dropped=True)
        for task in tasks
        if task.index not in going or task.index < last_kept
    ]


def _new_task(context: PassContext, role: str, index: int) -> TaskState:
    if context.job.policies.pod_policy.memory is not Memory.RECORD:
        return TaskState(index)
    now = context.stamp
    instance = _instance(context, role, index)
    return TaskState(index, instance, since=now, started=now, attempt=AttemptState(started=now))


def _instance(context: PassContext, role: str, index: int) -> str:
    """A uuid that depends on this pass's nonce only, so that equal inputs give equal steps."""
    if context.job.policies.pod_policy.memory is not Memory.RECORD:
        return ""
    seed = f"{context.job.uid}/{context.observed.nonce}/{role}/{index}".encode()
    digits = blake2b(seed, digest_size=16).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
