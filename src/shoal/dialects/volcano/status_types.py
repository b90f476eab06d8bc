"""`status` of a Job as JSON. A projection: everything in it follows from the job state and the pods."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

Moment = Annotated[datetime, Meta(tz=True)]

PENDING, RUNNING, RESTARTING = "Pending", "Running", "Restarting"
ABORTING, ABORTED = "Aborting", "Aborted"
COMPLETING, COMPLETED = "Completing", "Completed"
TERMINATING, TERMINATED = "Terminating", "Terminated"
FAILED = "Failed"


class VolcanoJobState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the job does now, and since when."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Moment | None = None


class PhaseCondition(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A phase the job has been in."""

    status: str = ""
    last_transition_time: Moment | None = None


class TaskCount(Struct, frozen=True, rename="camel"):
    """The pods of one task by phase."""

    phase: dict[str, int] = {}


class VolcanoJobStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What became of it. Written by the controller only."""

    state: VolcanoJobState = VolcanoJobState()
    min_available: int = 0
    task_status_count: dict[str, TaskCount] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str = ""
    controlled_resources: dict[str, str] = {}
    conditions: list[PhaseCondition] = []
