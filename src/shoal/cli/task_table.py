"""How the tasks of a job are, a line each: by their numbers, or, where numbers are ambiguous, by their pods' names.

A place that several pods had one after another is no task: there each pod is listed, under the name its log lines
have, below a line with how many of the required successes have been reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import format_counts, tasks_of
from shoal.cli.reasons import status_with_reason, why_name_taken, why_waiting
from shoal.engine import JobState, ObservedPod, PodPhase, TaskRef
from shoal.engine.state import format_tasks
from shoal.kube.objects import Obj, name_of, uid_of

_PHASES = {
    PodPhase.PENDING: "preparing",
    PodPhase.RUNNING: "running",
    PodPhase.SUCCEEDED: "succeeded",
    PodPhase.FAILED: "failed",
    PodPhase.UNKNOWN: "unknown",
}
_NOT_PLACED = ("preparing", "created", "waiting")
_URGENT = ("failed", "waiting", "unknown")


class TaskRow(NamedTuple):
    """A line about a task: its name, its status and the whole text, which begins with it."""

    name: str
    status: str
    text: str


def task_lines(found: FoundJob, state: JobState, pods: list[Obj]) -> Iterator[str]:
    """The lines; for a job whose pods have names of their own and are gone, what the job state counts."""
    if (counts := found.counts) is not None:
        yield f"{format_counts(counts)}."
    oldest_first = sorted(pods, key=lambda pod: (str(pod["metadata"].get("creationTimestamp")), name_of(pod)))
    rows = list(rows_of_pods(found, oldest_first)) or list(rows_of_tasks(found, state, pods))
    shown = sorted(group_rows(rows), key=lambda row: status_rank(row.status))
    width = max((len(row.name) for row in shown), default=0)
    for row in shown:
        yield f"{row.name.ljust(width)}  {row.text}"


def status_rank(status: str) -> int:
    """The rank of a line about tasks in a table: failed ones, then waiting ones, then all others."""
    return _URGENT.index(status) if status in _URGENT else len(_URGENT)


def group_rows(rows: Iterable[TaskRow]) -> list[TaskRow]:
    """Tasks that wait for the same reason as one line: `worker-0..7`, in the place of the first of them."""
    groups: dict[tuple[str, str], list[TaskRow]] = {}
    for row in rows:
        role, _, index = row.name.rpartition("-")
        has_reason = row.status == "waiting" and row.text != row.status
        is_task = bool(role) and index.isdecimal() and has_reason
        groups.setdefault((role if is_task else row.name, row.text), []).append(row)
    return [group[0]._replace(name=_index_range([row.name for row in group])) for group in groups.values()]


def group_tasks(names: Iterable[str]) -> list[str]:
    """Tasks by role, as `format_tasks` lists them."""
    by_role: dict[str, list[str]] = {}
    for name in names:
        role, _, index = name.rpartition("-")
        by_role.setdefault(role if role and index.isdecimal() else name, []).append(name)
    return [_index_range(group) for group in by_role.values()]


def _index_range(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    role = names[0].rpartition("-")[0]
    return format_tasks(role, sorted(int(name.rpartition("-")[2]) for name in names))


def observed_pods(found: FoundJob, pods: list[Obj]) -> Iterator[tuple[Obj, ObservedPod]]:
    """Pods in places of the job; one that is not owned is another's, and has the name."""
    for pod in pods:
        body = found.dialect.observe_pod(pod, found.manifest)
        if body is not None:
            yield pod, body


def rows_of_pods(found: FoundJob, pods: list[Obj]) -> Iterator[TaskRow]:
    names = found.names
    if names is None:
        return
    for pod, body in observed_pods(found, pods):
        name = names.of(pod, found.manifest)
        if not name or not body.owned:
            continue
        why = "" if body.is_finished else why_waiting(pod)
        plain = "ending" if body.leaving and not body.is_finished else _PHASES[body.phase]
        status = status_with_reason(plain, why)
        code = next((each.code for each in body.containers if each.code), 0) if body.phase is PodPhase.FAILED else 0
        yield _row(name, status, code, why if status == "waiting" else "", _place(plain, body.node))


def rows_of_tasks(found: FoundJob, state: JobState, pods: list[Obj]) -> Iterator[TaskRow]:
    own, whys = dict[str, Obj](), dict[str, str]()
    for pod, body in observed_pods(found, pods):
        name = str(TaskRef(body.role, body.index or 0))
        whys[name] = why_waiting(pod) if body.owned else why_name_taken(pod)
        if body.owned:
            own[name] = pod
    for view in tasks_of(state):
        own_pod = own.get(view.name)
        is_current = own_pod is not None and view.pod_uid in (None, uid_of(own_pod))
        why = whys.get(view.name, "") if is_current or own_pod is None else ""
        status = status_with_reason(view.status, why)
        retried = f"retried {view.retries} times" if view.retries > 1 else "retried once" if view.retries else ""
        node = view.node or (own_pod["spec"].get("nodeName") if own_pod is not None else "") or ""
        reason = why if status == "waiting" else ""
        yield _row(view.name, status, view.code, retried, reason, _place(view.status, node))


def _row(name: str, status: str, code: int | None, *more: str) -> TaskRow:
    first = f"{status} (code {code})" if code else status
    return TaskRow(name, status, ", ".join(part for part in (first, *more) if part))


def _place(status: str, node: str) -> str:
    return f"on {node}" if node and status not in _NOT_PLACED else ""
