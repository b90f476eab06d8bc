"""Step 7, plan_writes: from the pass context to the wanted objects.

Marks and finalizers, deletes, run owner and groups, owned objects, pods. Every delete is justified by the job state
that is stored before it: the pod is settled, dropped, a stray, or of a closed run that may not keep it. It carries the
uid and is repeated until the object is gone. A pod is created only for an attempt the job state requires, behind an
open gate, under a free name.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from shoal.engine.gates import may_start
from shoal.engine.model import GuardResult, Job
from shoal.engine.observed import CommandRef, JobRef, ObservedPod, RunOwnerRef
from shoal.engine.owned_objects import plan_groups, plan_owned_objects
from shoal.engine.pass_context import PassContext
from shoal.engine.policies import DropMark, KeepPods, Memory, PodNames, Propagation, TeardownVia
from shoal.engine.retry_spacing import run_created_from, task_created_from
from shoal.engine.run_closing import pods_to_keep
from shoal.engine.run_lifecycle import must_delete
from shoal.engine.state import JobState
from shoal.engine.types import Stage, TaskRef
from shoal.engine.writes import BuildContext, Create, Delete, GateStatus, Mark, RemoveFinalizer, Write


def plan_writes(
    job: Job, state: JobState, context: PassContext, doors: tuple[GateStatus, ...], guarded: GuardResult
) -> list[Write]:
    build_context = _build_context(state, context)
    going = [] if "delete" in guarded.blocks else list(_plan_deletes(job, state, context))
    writes: list[Write] = [*guarded.writes, *_plan_marks(job, state, context, going)]
    writes += going
    writes += _plan_run_owner(job, state, context, build_context)
    writes += plan_groups(job, state, context, build_context)
    writes += plan_owned_objects(job, state, context, doors, build_context)
    if "create" not in guarded.blocks:
        writes += _plan_pods(job, state, context, doors, build_context)
    writes += _delete_handled_commands(state, context)
    writes += _delete_expired_job(job, state, context)
    return writes


def _build_context(state: JobState, context: PassContext) -> BuildContext:
    return BuildContext(
        run=state.run.number,
        run_owner=state.run.run_owner or "",
        sizes=context.sizes,
        charged=state.charged,
        resumed=state.stamps.held is not None,
        round=state.round.number,
        frozen=state.frozen,
    )


def _plan_deletes(job: Job, state: JobState, context: PassContext) -> Iterator[Delete]:
    """Pods to delete, gracefully; terminating ones by force when their time is up."""
    for pod in _pods_to_delete(job, state, context):
        if not pod.leaving:
            yield Delete(_ref(pod), pod.uid)
    if job.policies.pod_policy.memory is Memory.RECORD and state.run.is_open:
        yield from _confirm_absent(state)
    for pod in context.observed.pods:
        if pod.leaving and pod.owned:
            due = force_due(state, pod)
            if due is not None and context.now >= due:
                yield Delete(_ref(pod), pod.uid, grace_seconds=0, confirm=True)


def _pods_to_delete(job: Job, state: JobState, context: PassContext) -> Iterator[ObservedPod]:
    yield from context.strays
    for pod in context.settled_pods:
        why = state.settled.get(pod.uid)
        if why is None or why.reason != "counted":
            yield pod
    if job.policies.pod_policy.memory is Memory.RECORD:
        for role in state.roles:
            for task in role.tasks:
                found = context.pods.get((role.name, task.index)) if task.stage is Stage.CLOSING else None
                if found is not None:
                    yield found
    if (
        not state.run.is_open
        and job.policies.teardown.via is TeardownVia.EACH
        and pods_to_keep(job, state) is not KeepPods.ALL
    ):
        yield from (pod for pod in context.pods.values() if must_delete(job, state, pod))


def _confirm_absent(state: JobState) -> Iterator[Delete]:
    """Attempts that ended without their body ever being seen: a live look must confirm that there is none."""
    for role in state.roles:
        for task in role.tasks:
            if task.stage <= Stage.REQUESTED and task.attempt.outcome is not None:
                yield Delete(TaskRef(role.name, task.index), task.uid or "", confirm=True)


def force_due(state: JobState, pod: ObservedPod) -> datetime | None:
    """When a leaving body is deleted by force; None: never."""
    role = state.role(pod.role)
    if role is None or role.force_after_seconds is None or pod.leaving_since is None:
        return None
    return pod.leaving_since + timedelta(seconds=role.force_after_seconds)


def _plan_marks(job: Job, state: JobState, context: PassContext, going: list[Delete]) -> Iterator[Write]:
    """Before a pod is deleted: set the mark that names the deleter, and remove our finalizer.

    The finalizer only once the pod is counted or leaving: with neither finalizer nor delete it would be lost to an
    operator that starts after a crash.
    """
    doomed = {write.uid for write in going}
    freed = {uid for uid, why in state.settled.items() if why.reason == "counted"}
    freed.update(_counted_pods(state, context))
    sent_away = {*state.settled, *(pod.uid for pod in context.strays)}
    if not state.run.is_open:
        sent_away.update(pod.uid for pod in context.pods.values())
    freed.update(pod.uid for pod in context.observed.pods if pod.leaving and pod.uid in sent_away)
    marks, tracked = job.policies.shrink.mark is DropMark.POD, job.policies.pod_policy.memory is Memory.FINALIZER
    if not marks and not tracked:
        return
    for pod in context.observed.pods:
        if marks and pod.uid in doomed and not pod.marked:
            yield Mark(_ref(pod), pod.uid)
        elif tracked and pod.finalizer and pod.owned and pod.uid in freed:
            yield RemoveFinalizer(_ref(pod), pod.uid)


def _counted_pods(state: JobState, context: PassContext) -> Iterator[str]:
    """Pods whose end is in the record of their task."""
    for role in state.roles:
        for task in role.tasks:
            pod = context.pods.get((role.name, task.index)) if task.is_done else None
            if pod is not None and pod.is_finished:
                yield pod.uid


def _plan_run_owner(job: Job, state: JobState, context: PassContext, build_context: BuildContext) -> Iterator[Write]:
    if job.policies.pod_policy.run_owner is None:
        return
    run, stray, found = state.run, context.stray_run_owner, context.run_owner
    if stray is not None and stray.owned and not stray.leaving:
        yield Delete(RunOwnerRef(), stray.uid)
    if run.is_open:
        if (
            run.stage is Stage.WAITING
            and stray is None
            and _is_run_due(job, state, context)
            and may_start(job, state, context)
        ):
            yield Create(RunOwnerRef(), build_context)
    elif run.stage <= Stage.REQUESTED:
        yield Delete(RunOwnerRef(), run.run_owner or "", confirm=True)
    elif run.stage is Stage.CLOSING and found is not None and not found.leaving:
        # Waiting for pods means waiting for the collector; with no pods left there is no need to.
        alone = Propagation.BACKGROUND if _is_run_empty(state, context) else None
        yield Delete(RunOwnerRef(), found.uid, propagation=alone)


def _is_run_due(job: Job, state: JobState, context: PassContext) -> bool:
    created_from = run_created_from(job, state)
    return created_from is None or created_from <= context.now


def _is_run_empty(state: JobState, context: PassContext) -> bool:
    over = all(task.is_done for role in state.roles for task in role.tasks)
    return over and not any(pod.owned for pod in context.observed.pods)


def _plan_pods(
    job: Job, state: JobState, context: PassContext, doors: tuple[GateStatus, ...], build_context: BuildContext
) -> Iterator[Create]:
    open_roles = {gate_status.role for gate_status in doors if gate_status.open}
    if not open_roles or not _is_run_due(job, state, context):
        return
    reserved = context.used_names if job.policies.pod_policy.names is PodNames.INDEX else context.pods.keys()
    rank = 0
    for role in state.roles:
        if role.name in open_roles:
            for position, task in enumerate(role.tasks):
                attempt = task.attempt
                if task.stage is not Stage.WAITING or attempt.uid is not None or attempt.outcome is not None:
                    continue
                if task.dropped or (role.name, task.index) in reserved:
                    continue
                created_from = task_created_from(job, task)
                if created_from is not None and created_from > context.now:
                    continue
                ref = TaskRef(role.name, task.index)
                if ref in context.refused:
                    continue  # retried after the caller's backoff, not in the pass that observes it
                yield Create(
                    ref, build_context, attempt.number, task.instance, role.instance, rank + position, task.charged
                )
        rank += len(role.tasks)


def _delete_handled_commands(state: JobState, context: PassContext) -> Iterator[Delete]:
    handled = set(state.handled)
    for command in context.observed.commands:
        if command.uid in handled:
            yield Delete(CommandRef(command.uid), command.uid)


def _delete_expired_job(job: Job, state: JobState, context: PassContext) -> Iterator[Delete]:
    """An ended job is deleted when its time to live is over."""
    due = ttl_due(job, state)
    if due is not None and context.now >= due and not job.deleting:
        yield Delete(JobRef(), job.uid, propagation=job.policies.clock.propagation)


def ttl_due(job: Job, state: JobState) -> datetime | None:
    ttl, ended = job.policies.clock.ttl_seconds, state.stamps.ended
    return ended + timedelta(seconds=ttl) if ttl is not None and ended is not None and state.is_ended else None


def _ref(pod: ObservedPod) -> TaskRef:
    return TaskRef(pod.role, pod.index if pod.index is not None else -1)
