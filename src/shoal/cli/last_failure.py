"""The attempt of a job that failed last, with the last lines of its log.

A crash loop ends no job, so the message of the task that ended the job is no help there. The log is read from the API
while the pod exists, from the archive of a cluster on this machine afterwards.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from shoal.cli.attempt_logs import Attempt, archived_jobs
from shoal.cli.job_table import tasks_of
from shoal.cli.reasons import LAST_LINES, last_message_lines
from shoal.cluster.client import LogOptions, OutcomeUnknown
from shoal.dialects.dialect import StateUnreadable
from shoal.engine import TaskRef
from shoal.kube import times
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj, name_of, uid_of

if TYPE_CHECKING:
    from shoal.cli.job_lookup import FoundJob
    from shoal.cluster.client import Cluster

_MAX_TRIED = 3  # attempts, where the log of the last one is empty or deleted while it is read


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    task: str
    code: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Failure:
    ended: float  # seconds since the epoch
    code: int
    attempt: Attempt
    container: str = ""
    message: str = ""  # of a container that was not started, which has no log


async def last_failure(cluster: Cluster, job: FoundJob, pods: list[Obj], data: Path | None) -> FailedAttempt | None:
    """None where nothing failed, where no log is left, where the job is over and did not fail, and where its state has
    the last message of the task that made it fail."""
    try:
        state = job.state
    except StateUnreadable:
        return None
    outcome = state.run.outcome
    if state.is_ended or state.is_held:
        # Some languages keep no message of the task that made the job fail.
        is_failed = state.is_ended and outcome is not None and not outcome.is_ok
        if not is_failed or outcome is None or last_message_lines(state, outcome):
            return None
    is_rerun = state.run.number > 0
    archived = {view.name for view in tasks_of(state) if view.retries or is_rerun}
    failures = [*failures_in_pods(job, pods), *failures_in_archive(job, data, archived)]
    for last in sorted(failures, key=lambda failure: failure.ended, reverse=True)[:_MAX_TRIED]:
        if lines := await read_tail(cluster, last) or tuple(last.message.splitlines()[-LAST_LINES:]):
            return FailedAttempt(last.attempt.task, last.code, lines)
    return None


def failures_in_pods(job: FoundJob, pods: list[Obj]) -> Iterator[_Failure]:
    """Containers that failed in pods that exist, now or before their last restart."""
    for pod in pods:
        body = job.dialect.observe_pod(pod, job.manifest)
        if body is None or not body.owned:
            continue
        names = job.names
        name = names.of(pod, job.manifest) if names is not None else str(TaskRef(body.role, body.index or 0))
        for each in (pod.get("status") or {}).get("containerStatuses") or ():
            for state, is_previous in ((each.get("state"), False), (each.get("lastState"), True)):
                ended = (state or {}).get("terminated") or {}
                if ended.get("exitCode") and ended.get("finishedAt"):
                    attempt = Attempt(name or name_of(pod), pod=pod, is_previous=is_previous)
                    message = str(ended.get("message") or "")
                    yield _Failure(
                        times.parse(ended["finishedAt"]).timestamp(), ended["exitCode"], attempt, each["name"], message
                    )
                    break


def failures_in_archive(job: FoundJob, data: Path | None, tasks: set[str]) -> Iterator[_Failure]:
    for kept in archived_jobs(data, job.namespace, job.name):
        for log in kept.logs if kept.uid == uid_of(job.manifest) else ():
            if log.code and log.ended is not None and log.task in tasks:
                yield _Failure(log.ended, log.code, Attempt(log.task, file=kept.folder / log.file))


async def read_tail(cluster: Cluster, failure: _Failure) -> tuple[str, ...]:
    """Empty if the log has been deleted."""
    options = LogOptions(failure.container, tail_lines=LAST_LINES)
    try:
        async with aclosing(cast("AsyncGenerator[bytes]", failure.attempt.read(cluster, options))) as chunks:
            text = b"".join([chunk async for chunk in chunks])
    except (ApiError, OutcomeUnknown, OSError):
        return ()
    return tuple(line for line in text.decode(errors="replace").splitlines() if line.strip())
