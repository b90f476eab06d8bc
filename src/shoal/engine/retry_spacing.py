"""Backoff between retries that fail at once: the earliest time at which a late attempt may be created.

Derived in each pass from the attempt's number and start stamp, so nothing more is persisted. Every attempt starts where
the one before it ended; creating each no earlier than a second after its start stamp therefore limits the rate to one a
second, however fast it fails. Counts and outcomes do not depend on it.

Where a compact state does not store the number of an attempt (`Memory.ROSTER`, `LEVEL`, `FINALIZER`), an operator that
restarts counts from 0 again. Containers that restart in place are slowed by the kubelet instead.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.engine.model import Job
from shoal.engine.state import JobState, TaskState


def run_created_from(job: Job, state: JobState) -> datetime | None:
    """When the open run's first object may be created; None: at once."""
    return _spaced(job, state.run.number, state.run.started)


def task_created_from(job: Job, task: TaskState) -> datetime | None:
    """When the pod of the task's attempt may be created; None: at once."""
    spaced = _spaced(job, task.attempt.number, task.attempt.started)
    if spaced is None or task.not_before is None:
        return spaced or task.not_before
    return max(spaced, task.not_before)


def _spaced(job: Job, number: int, started: datetime | None) -> datetime | None:
    clock = job.policies.clock
    if number < clock.quick_retries or started is None:
        return None
    return started + timedelta(seconds=clock.retry_spacing_seconds)
