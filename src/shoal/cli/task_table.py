"""How the tasks of a job are, a line each: by their numbers, or, where numbers are ambiguous, by their pods' names.

A place that several pods had one after another is no task: there each pod is listed, under the name its log lines
have, below a line with how many of the required successes have been reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    PodPhase.UNKNOWN: "out of reach",
}
_NOT_PLACED = ("preparing", "created", "waiting")
_URGENT = ("failed", "waiting", "out of reach")
_Row = tuple[str, list[str]]  # a name and the text about it


def task_lines(found: FoundJob, state: JobState, pods: list[Obj]) -> Iterator[str]:
    """The lines; of a job whose pods have names of their own and are gone, what the ledger counts."""
    if (counts := found.counts) is not None:
        yield f"{format_counts(counts)}."
    rows = list(_by_pods(found, sorted(pods, key=_age))) or list(_by_tasks(found, state, pods))
    lines = [(name, ", ".join(status for status in cells if status)) for name, cells in rows]
    shown = sorted(group_lines(lines), key=lambda line: status_rank(line[1]))
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        yield f"{name.ljust(width)}  {text}"


def status_rank(text: str) -> int:
    """The rank of a line about tasks in a table: failed ones, then waiting ones, then all others."""
    return next((rank for rank, status in enumerate(_URGENT) if text.startswith(status)), len(_URGENT))


def group_lines(lines: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Tasks that wait for the same reason as one line: `worker-0..7`, in the place of the first of them."""
    task_lines: dict[tuple[str, str], list[str]] = {}
    for name, text in lines:
        role, _, index = name.rpartition("-")
        is_task = bool(role) and index.isdecimal() and text.startswith("waiting,")
        task_lines.setdefault((role if is_task else name, text), []).append(name)
    return [(_index_range(names), text) for (_, text), names in task_lines.items()]


def group_tasks(names: Iterable[str]) -> list[tuple[str, str]]:
    """Tasks by role, as `format_tasks` lists them."""
    return group_lines((name, "waiting,") for name in names)


def _index_range(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    role = names[0].rpartition("-")[0]
    return format_tasks(role, sorted(int(name.rpartition("-")[2]) for name in names))


def _age(pod: Obj) -> tuple[str, str]:
    """The oldest first."""
    return str(pod["metadata"].get("creationTimestamp")), name_of(pod)


def observed_pods(found: FoundJob, pods: list[Obj]) -> Iterator[tuple[Obj, ObservedPod]]:
    """Pods in places of the job; one that is not owned is another's, and has the name."""
    for pod in pods:
        body = found.dialect.observe_pod(pod, found.manifest)
        if body is not None:
            yield pod, body


def _by_pods(found: FoundJob, pods: list[Obj]) -> Iterator[_Row]:
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
        yield name, [_with_code(status, code), why if status == "waiting" else "", _place(plain, body.node)]


def _by_tasks(found: FoundJob, state: JobState, pods: list[Obj]) -> Iterator[_Row]:
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
        yield view.name, [_with_code(status, view.code), retried, reason, _place(view.status, node)]


def _with_code(status: str, code: int | None) -> str:
    return f"{status} (code {code})" if code else status


def _place(status: str, node: str) -> str:
    return f"on {node}" if node and status not in _NOT_PLACED else ""
