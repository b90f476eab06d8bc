"""`status` as JSON. It is the job state: nothing else of a Framework survives a crash.

Every key is present, null where nothing is known; the few that are omitted when empty are UNSET or in records that omit
their defaults. Reading is tolerant: older controllers omitted the instance uids and a task's runTime.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

State = Literal[
    "AttemptCreationPending",
    "AttemptCreationRequested",
    "AttemptPreparing",
    "AttemptRunning",
    "AttemptDeletionPending",
    "AttemptDeletionRequested",
    "AttemptDeleting",
    "AttemptCompleted",
    "Completed",
]
Moment = Annotated[datetime, Meta(tz=True)]


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.upper() if word in ("uid", "ip") else word.capitalize() for word in rest)


class StatusRecord(Struct, frozen=True, rename=_json_name):
    """A record of the status; its names in JSON are camelCase."""


class CompletionType(StatusRecord, frozen=True):
    """Succeeded, or Failed with what is known about the failure."""

    name: Literal["Succeeded", "Failed"] = "Failed"
    attributes: list[str] | None = []


class ContainerCompletion(StatusRecord, frozen=True, omit_defaults=True):
    """How one container ended."""

    name: str
    code: int
    reason: str = ""
    message: str = ""
    signal: int = 0


class PodCompletion(StatusRecord, frozen=True, omit_defaults=True):
    """What the pod's status reports about its end."""

    reason: str = ""
    message: str = ""
    containers: list[ContainerCompletion] = []


class CompletionTrigger(StatusRecord, frozen=True):
    """The task whose end decided about the attempt."""

    message: str = ""
    task_role_name: str = ""
    task_index: int = 0


class CompletionStatus(StatusRecord, frozen=True):
    """How an attempt ended. Written once."""

    code: int = 0
    phrase: str = ""
    type: CompletionType = CompletionType()
    diagnostics: str = ""
    trigger: CompletionTrigger | UnsetType = UNSET
    pod: PodCompletion | UnsetType = UNSET


class RetryPolicyStatus(StatusRecord, frozen=True):
    """How often it was tried again."""

    total_retried_count: int = 0
    accountable_retried_count: int = 0
    retry_delay_sec: Annotated[int | None, Meta(description="Set while a retry is decided and waits for its time")] = (
        None
    )


class TaskAttemptStatus(StatusRecord, frozen=True):
    """The current attempt of a task."""

    id: int = 0
    start_time: Moment | None = None
    run_time: Moment | None = None
    completion_time: Moment | None = None
    instance_uid: str | None = None
    pod_name: str = ""
    pod_uid: str | None = None
    pod_node_name: str | None = None
    pod_ip: str | None = None
    pod_host_ip: str | None = None
    completion_status: CompletionStatus | None = None


class TaskStatus(StatusRecord, frozen=True):
    """One task of a role."""

    index: int = 0
    instance_uid: str | None = None
    start_time: Moment | None = None
    run_time: Moment | None = None
    completion_time: Moment | None = None
    state: State = "AttemptCreationPending"
    transition_time: Moment | None = None
    deletion_pending: Annotated[
        bool, Meta(description="Scaled away: does not count, and is removed as soon as its pod is gone")
    ] = False
    retry_policy_status: RetryPolicyStatus = RetryPolicyStatus()
    attempt_status: TaskAttemptStatus = TaskAttemptStatus()


class TaskRoleStatus(StatusRecord, frozen=True):
    """One role of the current attempt."""

    name: str = ""
    instance_uid: str | None = None
    pod_graceful_deletion_timeout_sec: Annotated[
        int | None, Meta(description="The spec's value, kept for when the role leaves the spec")
    ] = None
    task_statuses: list[TaskStatus] | None = []


class AttemptStatus(StatusRecord, frozen=True):
    """The current attempt of the whole Framework."""

    id: int = 0
    start_time: Moment | None = None
    run_time: Moment | None = None
    completion_time: Moment | None = None
    instance_uid: str | None = None
    config_map_name: str = ""
    config_map_uid: str | None = None
    completion_status: CompletionStatus | None = None
    task_role_statuses: Annotated[
        list[TaskRoleStatus] | None, Meta(description="null where they are stored compressed")
    ] = None
    task_role_statuses_compressed: Annotated[
        str | UnsetType,
        Meta(description="gzip of the JSON of taskRoleStatuses", extra_json_schema={"format": "byte"}),
    ] = UNSET


class FrameworkStatus(StatusRecord, frozen=True):
    """What became of it. Written by the controller only."""

    start_time: Moment | None = None
    run_time: Moment | None = None
    completion_time: Moment | None = None
    state: State = "AttemptCreationPending"
    transition_time: Moment | None = None
    retry_policy_status: RetryPolicyStatus = RetryPolicyStatus()
    attempt_status: AttemptStatus = AttemptStatus()
