"""Step 1, match_pods: the observed pods are matched to the tasks of the job state.

By uid where the job state has one, else by stamp; never by name alone. An object whose uid was not stored before a
crash carries the stamp of the very attempt that the job state still waits for, and is adopted: its process may have
run, and to replace it would be a retry that no counter shows. Write results enter uids into records, and every task
advances to the stage its pod shows. No outcome is decided here: a pod that ended or vanished is only listed.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from msgspec.structs import replace

from shoal.engine.model import Job
from shoal.engine.observed import (
    Accepted,
    Created,
    Gone,
    Observed,
    ObservedPod,
    PodPhase,
    Refused,
    RunOwnerRef,
)
from shoal.engine.pass_context import PassContext, Tasks
from shoal.engine.state import JobState, RoleState, TaskState
from shoal.engine.types import Memory, PodNames, Stage, TaskRef
from shoal.engine.unindexed_pods import assign_slots


def match_pods(job: Job, state: JobState, observed: Observed, now: datetime) -> tuple[JobState, PassContext]:
    context = PassContext(job, observed, now)
    settled = state.settled
    state = _prune(state, context)
    state = _apply_write_results(state, context, settled)
    state = _observe_run_owner(state, context)
    if job.policies.pod_policy.names is PodNames.RANDOM:
        state = assign_slots(job, state, context)
    else:
        state = match_by_index(state, context)
    return _advance_stages(state, context), context


def _apply_write_results(state: JobState, context: PassContext, settled: Collection[str]) -> JobState:
    """Record the results of our writes. A create may be reported again after its pod was settled: it gets no task."""
    changes: Tasks = {}
    for result in context.observed.write_results:
        target = result.target
        if isinstance(result, Created) and result.uid in settled:
            continue
        if isinstance(result, Gone):
            context.gone.add((target, result.uid))
        elif isinstance(target, RunOwnerRef):
            state = _apply_run_owner_result(state, result, context.stamp)
        elif isinstance(target, TaskRef):
            if isinstance(result, Refused):
                context.refused[target] = result
                continue
            task = changes.get(target.role, {}).get(target.index) or state.task(target)
            if task is None:
                continue
            if isinstance(result, Created) and task.uid is None and task.stage is Stage.WAITING:
                task = task.with_pod(result.uid).at(Stage.REQUESTED, context.stamp)
            elif isinstance(result, Accepted) and task.stage is Stage.CLOSING and result.uid == task.uid:
                task = task.at(Stage.DELETION_REQUESTED, context.stamp)
            changes.setdefault(target.role, {})[target.index] = task
    return state.with_tasks(changes)


def _apply_run_owner_result(state: JobState, result: Created | Accepted | Refused, stamp: datetime) -> JobState:
    run = state.run
    if isinstance(result, Created) and run.run_owner is None and run.stage is Stage.WAITING:
        run = replace(run, run_owner=result.uid).at(Stage.REQUESTED, stamp)
    elif isinstance(result, Accepted) and run.stage is Stage.CLOSING and result.uid == run.run_owner:
        run = run.at(Stage.DELETION_REQUESTED, stamp)
    return state if run is state.run else replace(state, run=run)


def _observe_run_owner(state: JobState, context: PassContext) -> JobState:
    """The run's stage follows its run owner, whose loss is handled later."""
    if context.job.policies.pod_policy.run_owner is None:
        return state
    run, found = state.run, context.observed.run_owner
    is_unrecorded = run.stage is Stage.WAITING and run.run_owner is None
    if found is not None and is_unrecorded and found.owned and found.run == run.number:
        # Created for this run by an operator that stopped before it stored the uid.
        run = replace(run, run_owner=found.uid).at(Stage.REQUESTED, context.stamp)
    if found is not None and found.uid != run.run_owner:
        context.stray_run_owner, found = found, None
    context.run_owner = found
    if found is None or run.stage >= Stage.OVER:
        return state
    if found.leaving:
        run = run.at(Stage.LEAVING, context.stamp)
    elif run.stage is Stage.REQUESTED:
        run = run.at(Stage.PREPARING if run.is_open else Stage.CLOSING, context.stamp)
    return state if run is state.run else replace(state, run=run)


def match_by_index(state: JobState, context: PassContext) -> JobState:
    """Each pod to the task of its role and index; those of no current attempt are strays."""
    is_recorded = context.job.policies.pod_policy.memory is Memory.RECORD
    known = {role.name: {task.index: task for task in role.tasks} for role in state.roles}
    found: dict[str, list[ObservedPod]] = {}  # pods of tasks the job state does not list
    for pod in context.observed.pods:
        place = (pod.role, pod.index if pod.index is not None else -1)
        context.used_names.add(place)
        if not pod.owned:
            continue
        if pod.uid in state.settled:
            context.settled_pods.append(pod)
            continue
        task = known.get(pod.role, {}).get(place[1])
        if task is not None and (task.uid == pod.uid or _is_stamped_for(task, pod, state, is_recorded=is_recorded)):
            context.pods[place] = pod
        elif task is None and not is_recorded and state.run.is_open and pod.run == state.run.number:
            context.pods[place] = pod
            found.setdefault(pod.role, []).append(pod)
        elif task is None and not is_recorded and pod.run == state.run.number:
            context.pods[place] = pod  # of a run that has ended: whether it stays is the teardown's business
        else:
            context.strays.append(pod)
    return _rebuild_tasks(state, found) if found else state


def _is_stamped_for(task: TaskState, pod: ObservedPod, state: JobState, *, is_recorded: bool) -> bool:
    """Whether a pod that the record does not name belongs to the task."""
    if task.dropped:
        return False
    if not is_recorded:  # a pod of this run, or the kept remains of a task that is done
        return pod.run == state.run.number or (task.is_done and pod.is_finished)
    # Created for this very attempt by an operator that stopped before it stored the uid.
    is_awaited = state.run.is_open and task.stage is Stage.WAITING and task.attempt.outcome is None and task.uid is None
    stamp = (pod.run, pod.instance, pod.attempt)
    return is_awaited and stamp == (state.run.number, task.instance, task.attempt.number)


def _rebuild_tasks(state: JobState, found: dict[str, list[ObservedPod]]) -> JobState:
    """Tasks rebuilt from their pods, where the job state holds none for living ones."""
    names = {role.name for role in state.roles}
    roles = [*state.roles, *(RoleState(name) for name in found if name not in names)]
    entered = []
    for role in roles:
        extra = [TaskState(pod.index or 0) for pod in found.get(role.name, ())]
        tasks = tuple(sorted([*role.tasks, *extra], key=lambda task: task.index)) if extra else role.tasks
        entered.append(replace(role, tasks=tasks) if extra else role)
    return replace(state, roles=tuple(entered))


def _advance_stages(state: JobState, context: PassContext) -> JobState:
    """Every task to the stage its pod shows."""
    memory = context.job.policies.pod_policy.memory
    roles, pods, moved = [], context.pods, False
    for role in state.roles:
        name, changed = role.name, False
        tasks: list[TaskState] = []
        for task in role.tasks:
            if task.stage is Stage.DONE:
                tasks.append(task)
                continue
            pod = pods.get((name, task.index))
            after = (
                _advance_with_pod(task, pod, state, context)
                if pod is not None
                else _advance_without_pod(task, name, memory, state, context)
            )
            changed = changed or after is not task
            tasks.append(after)
        roles.append(replace(role, tasks=tuple(tasks)) if changed else role)
        moved = moved or changed
    return replace(state, roles=tuple(roles)) if moved else state


def _advance_with_pod(task: TaskState, pod: ObservedPod, state: JobState, context: PassContext) -> TaskState:
    if task.uid != pod.uid:
        task = task.with_pod(pod.uid)
    if pod.leaving:
        return task.at(Stage.LEAVING, context.stamp)
    attempt = task.attempt
    if attempt.ip != pod.ip or attempt.node != pod.node or attempt.host_ip != pod.host_ip:
        task = replace(task, attempt=replace(attempt, node=pod.node, ip=pod.ip, host_ip=pod.host_ip))
    if task.stage >= Stage.CLOSING:
        return task
    if attempt.outcome is not None and state.run.is_open:
        return task.at(Stage.CLOSING, context.stamp)  # ended before it was ever seen
    if pod.phase is PodPhase.RUNNING:
        return task.at(Stage.RUNNING, context.stamp)
    if task.stage < Stage.PREPARING or pod.phase is PodPhase.PENDING:
        return task.at(Stage.PREPARING, context.stamp)
    return task


def _advance_without_pod(
    task: TaskState, role: str, memory: Memory, state: JobState, context: PassContext
) -> TaskState:
    """The task without a pod: not created yet, deleted as requested, or lost."""
    if memory is Memory.RECORD:
        return _recorded_pod_missing(task, role, state, context)
    if task.stage is Stage.REQUESTED and not _is_confirmed_gone(task, role, context):
        return task  # created and not seen yet; how long that may take is the clock's business
    if memory is Memory.ROSTER and task.had_pod and state.run.is_open and not task.dropped:
        context.losses.append(TaskRef(role, task.index))
        return task
    if task.stage is Stage.WAITING and task.uid is None and not task.had_pod:
        return task
    return task.without_pod(context.stamp)


def _recorded_pod_missing(task: TaskState, role: str, state: JobState, context: PassContext) -> TaskState:
    if task.stage >= Stage.PREPARING:
        ref = TaskRef(role, task.index)
        if task.outcome is None:
            context.losses.append(ref)
        context.ended_attempts.append(ref)
        return task.at(Stage.OVER, context.stamp)
    if task.outcome is not None and state.run.is_open and _is_confirmed_gone(task, role, context):
        context.ended_attempts.append(TaskRef(role, task.index))
        return task.at(Stage.OVER, context.stamp)
    return task


def _is_confirmed_gone(task: TaskState, role: str, context: PassContext) -> bool:
    return bool(context.gone) and (TaskRef(role, task.index), task.uid or "") in context.gone


def _prune(state: JobState, context: PassContext) -> JobState:
    """Drops settled subjects and handled commands whose objects are gone."""
    if state.settled:
        tracked = context.job.policies.pod_policy.memory is Memory.FINALIZER
        present = {pod.uid for pod in context.observed.pods if pod.finalizer or not tracked}
        # Latches contain a colon and are removed by the code that set them.
        state = state.unsettle(uid for uid in list(state.settled) if ":" not in uid and uid not in present)
    if state.handled:
        there = {command.uid for command in context.observed.commands}
        if not there.issuperset(state.handled):
            state = replace(state, handled=tuple(uid for uid in state.handled if uid in there))
    return state
