"""Step 7, plan_writes: from the pass context to the wanted objects.

Marks and finalizers, deletes, run owner and groups, owned objects, pods. Every delete is justified by the job state
that is stored before it: the pod is settled, dropped, a stray, or of a closed run that may not keep it. It carries the
uid and is repeated until the object is gone. A pod is created only for an attempt the job state requires, behind an
open gate, under a free name.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.gates import may_start
from shoal.engine.model import GuardResult, Job
from shoal.engine.observed import CommandRef, JobRef, ObservedPod, RunOwnerRef
from shoal.engine.owned_objects import plan_groups, plan_owned_objects
from shoal.engine.pass_context import PassContext
from shoal.engine.retry import created_from
from shoal.engine.run_lifecycle import TeardownVia, must_delete, pods_to_keep
from shoal.engine.scaling import DropMark
from shoal.engine.state import JobState
from shoal.engine.timeouts import Propagation, force_due, ttl_due
from shoal.engine.types import KeepPods, Memory, PodNames, Stage, TaskRef
from shoal.engine.writes import BuildContext, Create, Delete, GateStatus, Mark, RemoveFinalizer, Write


def plan_writes(
    job: Job, state: JobState, context: PassContext, gate_statuses: tuple[GateStatus, ...], guarded: GuardResult
) -> list[Write]:
    build_context = BuildContext(
        run=state.run.number,
        run_owner=state.run.run_owner or "",
        sizes=context.sizes,
        charged=state.charged,
        resumed=state.stamps.held is not None,
        round=state.round.number,
        frozen=state.frozen,
    )
    deletes = [] if "delete" in guarded.blocks else list(plan_deletes(job, state, context))
    writes: list[Write] = [*guarded.writes, *plan_marks(job, state, context, deletes), *deletes]
    writes += plan_run_owner(job, state, context, build_context)
    writes += plan_groups(job, state, context, build_context)
    writes += plan_owned_objects(job, state, context, gate_statuses, build_context)
    if "create" not in guarded.blocks:
        writes += plan_pods(job, state, context, gate_statuses, build_context)
    handled = [command.uid for command in context.observed.commands if command.uid in state.handled]
    writes += [Delete(CommandRef(uid), uid) for uid in handled]
    ttl = ttl_due(job, state)
    if ttl is not None and context.now >= ttl and not job.deleting:
        writes.append(Delete(JobRef(), job.uid, propagation=job.policies.clock.propagation))
    return writes


def plan_deletes(job: Job, state: JobState, context: PassContext) -> Iterator[Delete]:
    """Pods to delete, gracefully; terminating ones by force when their time is up."""
    for pod in pods_to_delete(job, state, context):
        if not pod.leaving:
            yield Delete(_ref(pod), pod.uid)
    if job.policies.pod_policy.memory is Memory.RECORD and state.run.is_open:
        for role in state.roles:
            for task in role.tasks:
                if task.stage <= Stage.REQUESTED and task.attempt.outcome is not None:
                    # It ended without its pod ever being observed: a live read must confirm that there is none.
                    yield Delete(TaskRef(role.name, task.index), task.uid or "", confirm=True)
    for pod in context.observed.pods:
        if pod.leaving and pod.owned:
            due = force_due(state, pod)
            if due is not None and context.now >= due:
                yield Delete(_ref(pod), pod.uid, grace_seconds=0, confirm=True)


def pods_to_delete(job: Job, state: JobState, context: PassContext) -> Iterator[ObservedPod]:
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


def plan_marks(job: Job, state: JobState, context: PassContext, deletes: list[Delete]) -> Iterator[Write]:
    """Before a pod is deleted: set the mark that names the deleter, and remove our finalizer.

    The finalizer only once the pod is counted or leaving: with neither finalizer nor delete it would be lost to an
    operator that starts after a crash.
    """
    marks, tracked = job.policies.shrink.mark is DropMark.POD, job.policies.pod_policy.memory is Memory.FINALIZER
    if not marks and not tracked:
        return
    deleted_uids = {write.uid for write in deletes}
    freed = {uid for uid, why in state.settled.items() if why.reason == "counted"}
    for role in state.roles:
        for task in role.tasks:
            found = context.pods.get((role.name, task.index)) if task.is_done else None
            if found is not None and found.is_finished:
                freed.add(found.uid)  # its end is in the record of its task
    dismissed = {*state.settled, *(pod.uid for pod in context.strays)}
    if not state.run.is_open:
        dismissed.update(pod.uid for pod in context.pods.values())
    freed.update(pod.uid for pod in context.observed.pods if pod.leaving and pod.uid in dismissed)
    for pod in context.observed.pods:
        if marks and pod.uid in deleted_uids and not pod.marked:
            yield Mark(_ref(pod), pod.uid)
        elif tracked and pod.finalizer and pod.owned and pod.uid in freed:
            yield RemoveFinalizer(_ref(pod), pod.uid)


def plan_run_owner(job: Job, state: JobState, context: PassContext, build_context: BuildContext) -> Iterator[Write]:
    if job.policies.pod_policy.run_owner is None:
        return
    run, stray, found = state.run, context.stray_run_owner, context.run_owner
    if stray is not None and stray.owned and not stray.leaving:
        yield Delete(RunOwnerRef(), stray.uid)
    if run.is_open:
        is_wanted = run.stage is Stage.WAITING and stray is None
        if is_wanted and _is_run_due(job, state, context) and may_start(job, state, context):
            yield Create(RunOwnerRef(), build_context)
    elif run.stage <= Stage.REQUESTED:
        yield Delete(RunOwnerRef(), run.run_owner or "", confirm=True)
    elif run.stage is Stage.CLOSING and found is not None and not found.leaving:
        # With foreground deletion the run owner outlives its pods; without pods there is no need to wait for that.
        is_empty = all(task.is_done for role in state.roles for task in role.tasks)
        is_empty = is_empty and not any(pod.owned for pod in context.observed.pods)
        yield Delete(RunOwnerRef(), found.uid, propagation=Propagation.BACKGROUND if is_empty else None)


def _is_run_due(job: Job, state: JobState, context: PassContext) -> bool:
    due = created_from(job.policies.clock, state.run)
    return due is None or due <= context.now


def plan_pods(
    job: Job,
    state: JobState,
    context: PassContext,
    gate_statuses: tuple[GateStatus, ...],
    build_context: BuildContext,
) -> Iterator[Create]:
    open_roles = {gate_status.role for gate_status in gate_statuses if gate_status.open}
    if not open_roles or not _is_run_due(job, state, context):
        return
    reserved = context.used_names if job.policies.pod_policy.names is PodNames.INDEX else context.pods.keys()
    first_rank = 0
    for role in state.roles:
        if role.name in open_roles:
            for position, task in enumerate(role.tasks):
                attempt = task.attempt
                if task.stage is not Stage.WAITING or attempt.uid is not None or attempt.outcome is not None:
                    continue
                if task.dropped or (role.name, task.index) in reserved:
                    continue
                due = created_from(job.policies.clock, attempt, task.not_before)
                if due is not None and due > context.now:
                    continue
                ref = TaskRef(role.name, task.index)
                if ref in context.refused:
                    continue  # retried after the caller's backoff, not in the pass that observes it
                rank = first_rank + position
                yield Create(ref, build_context, attempt.number, task.instance, role.instance, rank, task.charged)
        first_rank += len(role.tasks)


def _ref(pod: ObservedPod) -> TaskRef:
    return TaskRef(pod.role, pod.index if pod.index is not None else -1)
