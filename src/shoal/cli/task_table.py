"""How the tasks of a job are, a line each: by their numbers, or, where numbers tell nobody apart, by their pods' names.

A place that several pods had one after another is no task: there each pod is told of, under the name its log lines
have, and above them stands how many of the successes that are wanted have come about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.cli.job_lookup import Found
from shoal.cli.job_table import counted, tasks_of
from shoal.cli.reasons import why_taken, why_waiting, word_with
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
_Row = tuple[str, list[str]]  # a name and what is said of it


def members(found: Found, state: JobState, pods: list[Obj]) -> Iterator[str]:
    """The lines; of a job whose pods have names of their own and are gone, what the ledger counts."""
    if (counts := found.counts) is not None:
        yield f"{counted(counts)}."
    rows = list(_by_pods(found, sorted(pods, key=_age))) or list(_by_tasks(found, state, pods))
    lines = [(name, ", ".join(word for word in words if word)) for name, words in rows]
    shown = sorted(grouped(lines), key=lambda line: urgency(line[1]))
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        yield f"{name.ljust(width)}  {text}"


def urgency(text: str) -> int:
    """Where a line about tasks stands in a table: failed ones, then waiting ones, then all others."""
    return next((rank for rank, word in enumerate(_URGENT) if text.startswith(word)), len(_URGENT))


def grouped(lines: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Tasks that wait for the same reason as one line: `worker-0..7`, in the place of the first of them."""
    members: dict[tuple[str, str], list[str]] = {}
    for name, text in lines:
        role, _, index = name.rpartition("-")
        is_task = bool(role) and index.isdecimal() and text.startswith("waiting,")
        members.setdefault((role if is_task else name, text), []).append(name)
    return [(_named_together(names), text) for (_, text), names in members.items()]


def grouped_tasks(names: Iterable[str]) -> list[tuple[str, str]]:
    """Tasks by role, as `format_tasks` lists them."""
    return grouped((name, "waiting,") for name in names)


def _named_together(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    role = names[0].rpartition("-")[0]
    return format_tasks(role, sorted(int(name.rpartition("-")[2]) for name in names))


def _age(pod: Obj) -> tuple[str, str]:
    """The oldest first."""
    return str(pod["metadata"].get("creationTimestamp")), name_of(pod)


def bodies_of(found: Found, pods: list[Obj]) -> Iterator[tuple[Obj, ObservedPod]]:
    """Pods in places of the job; one that is not owned is another's, and has the name."""
    for pod in pods:
        body = found.dialect.observe_pod(pod, found.manifest)
        if body is not None:
            yield pod, body


def _by_pods(found: Found, pods: list[Obj]) -> Iterator[_Row]:
    called = found.dialect.display_name
    if called is None:
        return
    for pod, body in bodies_of(found, pods):
        name = called(pod, found.manifest)
        if not name or not body.owned:
            continue
        why = "" if body.is_finished else why_waiting(pod)
        plain = "ending" if body.leaving and not body.is_finished else _PHASES[body.phase]
        word = word_with(plain, why)
        code = next((each.code for each in body.containers if each.code), 0) if body.phase is PodPhase.FAILED else 0
        yield name, [_with_code(word, code), why if word == "waiting" else "", _place(plain, body.node)]


def _by_tasks(found: Found, state: JobState, pods: list[Obj]) -> Iterator[_Row]:
    own, whys = dict[str, Obj](), dict[str, str]()
    for pod, body in bodies_of(found, pods):
        name = str(TaskRef(body.role, body.index or 0))
        whys[name] = why_waiting(pod) if body.owned else why_taken(pod)
        if body.owned:
            own[name] = pod
    for view in tasks_of(state):
        its = own.get(view.name)
        is_its = its is not None and view.pod_uid in (None, uid_of(its))
        why = whys.get(view.name, "") if is_its or its is None else ""
        word = word_with(view.word, why)
        often = f"retried {view.retries} times" if view.retries > 1 else "retried once" if view.retries else ""
        node = view.node or (its["spec"].get("nodeName") if its is not None else "") or ""
        because = why if word == "waiting" else ""
        yield view.name, [_with_code(word, view.code), often, because, _place(view.word, node)]


def _with_code(word: str, code: int | None) -> str:
    return f"{word} (code {code})" if code else word


def _place(word: str, node: str) -> str:
    return f"on {node}" if node and word not in _NOT_PLACED else ""
