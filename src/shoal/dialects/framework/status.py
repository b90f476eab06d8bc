"""The job state of a Framework is its status: `restore` reads it, `record` writes it, as inverse functions.

What the status does not store is derived from it: a run is closed exactly when its attempt has a completion, a final
code is identified by its number, names and instance uids are computed from adjacent fields. Times are whole seconds.
"""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.dialects.dialect import StatePatch, StateUnreadable
from shoal.dialects.framework import status_types as wire
from shoal.dialects.framework.compression import LARGE_BYTES, TOO_LARGE_BYTES, packed, unpacked
from shoal.dialects.framework.controller_outcomes import failure_class_of, is_final
from shoal.dialects.framework.names import instance_uid, pod_name, run_owner_name
from shoal.dialects.framework.settings import FrameworkSettings
from shoal.dialects.job_limits import MOST_TASKS, stored_seconds
from shoal.engine import (
    AttemptState,
    ContainerEnd,
    Detail,
    Intent,
    Job,
    JobState,
    Outcome,
    RoleState,
    Run,
    Stage,
    Stamps,
    TaskState,
    Trigger,
)
from shoal.kube.objects import Obj, name_of, namespace_of, uid_of

_STATES: dict[Stage, wire.State] = {
    Stage.WAITING: "AttemptCreationPending",
    Stage.REQUESTED: "AttemptCreationRequested",
    Stage.PREPARING: "AttemptPreparing",
    Stage.RUNNING: "AttemptRunning",
    Stage.CLOSING: "AttemptDeletionPending",
    Stage.DELETION_REQUESTED: "AttemptDeletionRequested",
    Stage.LEAVING: "AttemptDeleting",
    Stage.OVER: "AttemptCompleted",
    Stage.DONE: "Completed",
}
_STAGES = {state: stage for stage, state in _STATES.items()}


# --- writing -------------------------------------------------------------------------------------------------------


def record(job: Job, state: JobState, settings: FrameworkSettings) -> StatePatch:
    """How this job state is stored. The whole status is replaced, so that nulls stay."""
    compresses = settings.large_framework_compression
    status = packed(status_of(job.name, state), from_bytes=LARGE_BYTES if compresses else TOO_LARGE_BYTES)
    return StatePatch(({"op": "add", "path": "/status", "value": status},), subresource="status")


def status_of(framework: str, state: JobState) -> Obj:
    """The status of a Framework of that name, in the clear."""
    made: Obj = msgspec.to_builtins(_status(framework, state))
    return made


def task_status(framework: str, role: str, task: TaskState) -> Obj:
    made: Obj = msgspec.to_builtins(_task(framework, role, task))
    return made


def _status(framework: str, state: JobState) -> wire.FrameworkStatus:
    run = state.run
    return wire.FrameworkStatus(
        start_time=state.stamps.started,
        run_time=state.stamps.ran,
        completion_time=state.stamps.ended,
        state=_STATES[run.stage],
        transition_time=run.since,
        retry_policy_status=wire.RetryPolicyStatus(run.number, state.charged, run.delay_seconds),
        attempt_status=wire.AttemptStatus(
            id=run.number,
            start_time=run.started,
            run_time=run.ran,
            completion_time=run.completed,
            instance_uid=instance_uid(run.number, run.run_owner),
            config_map_name=run_owner_name(framework),
            config_map_uid=run.run_owner,
            completion_status=_completion(run.outcome),
            task_role_statuses=[
                wire.TaskRoleStatus(
                    role.name,
                    role.instance,
                    role.force_after_seconds,
                    [_task(framework, role.name, task) for task in role.tasks],
                )
                for role in state.roles
            ],
        ),
    )


def _task(framework: str, role: str, task: TaskState) -> wire.TaskStatus:
    attempt = task.attempt
    return wire.TaskStatus(
        index=task.index,
        instance_uid=task.instance,
        start_time=task.started,
        run_time=task.ran,
        completion_time=task.completed,
        state=_STATES[task.stage],
        transition_time=task.since,
        deletion_pending=task.dropped,
        retry_policy_status=wire.RetryPolicyStatus(attempt.number, task.charged),
        attempt_status=wire.TaskAttemptStatus(
            id=attempt.number,
            start_time=attempt.started,
            run_time=attempt.ran,
            completion_time=attempt.completed,
            instance_uid=instance_uid(attempt.number, attempt.uid),
            pod_name=pod_name(framework, role, task.index),
            pod_uid=attempt.uid,
            pod_node_name=attempt.node,
            pod_ip=attempt.ip,
            pod_host_ip=attempt.host_ip,
            completion_status=_completion(attempt.outcome),
        ),
    )


def _completion(outcome: Outcome | None) -> wire.CompletionStatus | None:
    if outcome is None:
        return None
    trigger, detail = outcome.trigger, outcome.detail
    pod: wire.PodCompletion | msgspec.UnsetType = msgspec.UNSET
    if detail is not None:
        ends = [wire.ContainerCompletion(c.name, c.code, c.reason, c.message, c.signal) for c in detail.containers]
        pod = wire.PodCompletion(detail.reason, detail.message, ends)
    return wire.CompletionStatus(
        code=outcome.code,
        phrase=outcome.phrase,
        type=wire.CompletionType("Succeeded" if outcome.is_ok else "Failed", list(outcome.attributes)),
        diagnostics=outcome.text,
        trigger=msgspec.UNSET if trigger is None else wire.CompletionTrigger(trigger.text, trigger.role, trigger.index),
        pod=pod,
    )


# --- reading -------------------------------------------------------------------------------------------------------


def restore(manifest: Obj) -> JobState:
    """Return the job state a Framework carries; an empty one where it has not been processed yet."""
    try:
        written = unpacked(manifest.get("status"))
        status = msgspec.convert(written or {}, wire.FrameworkStatus)
        return JobState() if status.start_time is None else _state(status, uid_of(manifest))
    except ValueError as problem:
        where = f"{namespace_of(manifest)}/{name_of(manifest)}"
        raise StateUnreadable(
            f"the status of Framework {where} was not written by a controller: {problem}. It is left alone; "
            f"delete the Framework and create it again to start over."
        ) from None


def _state(status: wire.FrameworkStatus, uid: str) -> JobState:
    attempt, retries = status.attempt_status, status.retry_policy_status
    tasks = sum(len(role.task_statuses or ()) for role in attempt.task_role_statuses or ())
    if tasks > MOST_TASKS:
        raise ValueError(f"{tasks} tasks are more than {MOST_TASKS}")
    outcome = _outcome(attempt.completion_status)
    return JobState(
        run=Run(
            number=attempt.id,
            stage=_STAGES[status.state],
            since=status.transition_time,
            started=attempt.start_time,
            ran=attempt.run_time,
            completed=attempt.completion_time,
            run_owner=attempt.config_map_uid,
            intent=None if outcome is None else Intent.END,
            outcome=outcome,
            delay_seconds=stored_seconds(retries.retry_delay_sec),
        ),
        roles=tuple(
            RoleState(
                role.name,
                role.instance_uid if role.instance_uid is not None else _derived_uid(uid, role.name),
                stored_seconds(role.pod_graceful_deletion_timeout_sec),
                tuple(_task_state(task, f"{uid}/{role.name}") for task in role.task_statuses or ()),
            )
            for role in attempt.task_role_statuses or ()
        ),
        charges={"": retries.accountable_retried_count} if retries.accountable_retried_count else {},
        stamps=Stamps(started=status.start_time, ran=status.run_time, ended=status.completion_time),
    )


def _task_state(task: wire.TaskStatus, place: str) -> TaskState:
    attempt = task.attempt_status
    instance = task.instance_uid
    return TaskState(
        task.index,
        instance=instance if instance is not None else _derived_uid(place, task.index, task.start_time),
        stage=_STAGES[task.state],
        since=task.transition_time,
        started=task.start_time,
        ran=task.run_time,
        completed=task.completion_time,
        dropped=task.deletion_pending,
        charged=task.retry_policy_status.accountable_retried_count,
        had_pod=attempt.pod_uid is not None,
        attempt=AttemptState(
            number=attempt.id,
            started=attempt.start_time,
            ran=attempt.run_time,
            completed=attempt.completion_time,
            uid=attempt.pod_uid,
            node=attempt.pod_node_name,
            ip=attempt.pod_ip,
            host_ip=attempt.pod_host_ip,
            outcome=_outcome(attempt.completion_status),
        ),
    )


def _derived_uid(*parts: object) -> str:
    """The uid of an instance an older controller did not name: the same on every call."""
    return str(uuid5(NAMESPACE_URL, "/".join(map(str, parts))))


def _outcome(completion: wire.CompletionStatus | None) -> Outcome | None:
    if completion is None:
        return None
    kind, trigger, pod = completion.type, completion.trigger, completion.pod
    succeeded, attributes = kind.name == "Succeeded", tuple(kind.attributes or ())
    detail = None
    if not isinstance(pod, msgspec.UnsetType):
        ends = tuple(ContainerEnd(c.name, c.code, c.reason, c.message, c.signal) for c in pod.containers)
        detail = Detail(pod.reason, pod.message, ends)
    return Outcome(
        failure_class_of(attributes, completion.code, succeeded=succeeded),
        code=completion.code,
        phrase=completion.phrase,
        text=completion.diagnostics,
        attributes=attributes,
        final=not succeeded and is_final(completion.code),
        trigger=None
        if isinstance(trigger, msgspec.UnsetType)
        else Trigger(trigger.task_role_name, trigger.task_index, trigger.message),
        detail=detail,
    )
