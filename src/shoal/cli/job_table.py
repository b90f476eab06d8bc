"""Jobs in brief: what a table cell shows for a job or a task. Pure: records in, text out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shoal.cli.job_lookup import FoundJob
from shoal.dialects.capabilities import CompletionProgress
from shoal.dialects.dialect import StateUnreadable
from shoal.engine import Intent, JobState, Stage, TaskState
from shoal.kube import times
from shoal.kube.objects import Obj, without_managed_fields

_STAGES = {
    Stage.WAITING: "waiting",
    Stage.REQUESTED: "created",
    Stage.PREPARING: "preparing",
    Stage.RUNNING: "running",
    Stage.CLOSING: "ending",
    Stage.DELETION_REQUESTED: "ending",
    Stage.LEAVING: "ending",
    Stage.OVER: "ended",
}
STYLES = {
    "running": "green",
    "succeeded": "bold green",
    "failed": "bold red",
    "waiting": "dim",
    "ending": "yellow",
    "stopped": "dim",
    "dropped": "dim",
}


@dataclass(frozen=True, slots=True)
class TaskView:
    name: str  # worker-0
    role: str
    index: int
    status: str
    retries: int
    node: str
    pod_uid: str | None
    code: int | None


def tasks_of(state: JobState) -> list[TaskView]:
    return [
        TaskView(
            f"{role.name}-{task.index}",
            role.name,
            task.index,
            task_status(task, state),
            task.attempt.number,
            task.attempt.node or "",
            task.uid,
            task.outcome.code if task.outcome is not None else None,
        )
        for role in state.roles
        for task in role.tasks
    ]


def task_status(task: TaskState, state: JobState) -> str:
    """One word for a task; a task that went because the whole ended is neither good nor bad."""
    if not task.is_done:
        return "ending" if task.dropped else _STAGES[task.stage]
    if task.dropped:
        return "dropped"
    outcome = task.outcome
    if outcome is None or outcome.is_ok:
        return "succeeded"
    return "stopped" if outcome.final and state.run.intent is not None else "failed"


def job_status(state: JobState) -> str:
    run = state.run
    if state.is_new:
        return "new"
    if state.is_ended:
        if run.outcome is None:
            return "failed"
        # Of a whole job only a requested stop is final; tasks are also cut off and dropped.
        return "succeeded" if run.outcome.is_ok else "stopped" if run.outcome.final else "failed"
    if run.intent is Intent.HOLD:
        return "held"
    if run.stage is Stage.OVER:
        return "to be retried"
    return "ending" if not run.is_open else "running" if run.stage is Stage.RUNNING else "pending"


def exit_code_of(state: JobState) -> int:
    """The job's own: 0, the failed task's where it is one a process can have, else 1."""
    outcome = state.run.outcome
    if outcome is None:
        return 1
    if outcome.is_ok:
        return 0
    return outcome.code if 0 < outcome.code < 256 else 1


def job_row(found: FoundJob, now: datetime) -> list[str]:
    """NAME KIND STATE TASKS RUN RETRIES CODE AGE."""
    name, kind = found.name, found.dialect.kind.kind
    since = age(found.manifest["metadata"].get("creationTimestamp"), now)
    try:
        state, counts = found.state, found.counts
    except StateUnreadable:
        return [name, kind, "unreadable", "", "", "", "", since]
    views = tasks_of(state)
    up = sum(view.status == "running" for view in views)
    over = sum(view.status in ("succeeded", "failed", "stopped") for view in views)
    outcome = state.run.outcome
    plain = f"{over}/{len(views)} over" if state.is_ended else f"{up}/{len(views)} running"
    return [
        name,
        kind,
        job_status(state),
        plain if counts is None else format_counts(counts),
        str(state.run.number),
        str(sum(view.retries for view in views)),
        str(outcome.code or exit_code_of(state)) if outcome is not None and state.is_ended else "",
        since,
    ]


def format_counts(counts: CompletionProgress) -> str:
    """The progress of a job that has fewer pods at once than it requires successes: 2/4 succeeded, 1 running."""
    counted_states = {"running": counts.running, "failed": counts.failed}
    others = [f"{count} {status}" for status, count in counted_states.items() if count]
    return ", ".join([f"{counts.succeeded}/{counts.wanted} succeeded", *others])


JOB_COLUMNS = ("NAME", "KIND", "STATE", "TASKS", "RUN", "RETRIES", "CODE", "AGE")


def age(stamp: str | None, now: datetime) -> str:
    return format_duration((now - times.parse(stamp)).total_seconds()) if stamp else ""


def format_duration(seconds: float) -> str:
    """A length of time as people say it: 42s, 3m, 2h5m, 4d."""
    total = max(int(seconds), 0)
    if total < 120:
        return f"{total}s"
    minutes = total // 60
    if minutes < 120:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 48:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{hours // 24}d"


def format_table(rows: list[list[str]], heads: tuple[str, ...]) -> str:
    """Left-aligned columns, two spaces between them."""
    table = [list(heads), *rows]
    widths = [max(len(row[position]) for row in table) for position in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


def format_objects(objects: list[Obj], form: str) -> str:
    """One object as itself, several as a List; as `documents`, each as a YAML document of its own."""
    import json

    from shoal.kube import yaml_codec

    shown = [without_managed_fields(obj) for obj in objects]
    if form == "documents":
        return "---\n".join(yaml_codec.encode(obj, sort_keys=False) for obj in shown).rstrip()
    value: Any = shown[0] if len(shown) == 1 else {"apiVersion": "v1", "kind": "List", "items": shown}
    return json.dumps(value, indent=2) if form == "json" else yaml_codec.encode(value, sort_keys=False).rstrip()
