"""Events about several tasks, and repeated failures, as one line each. Grouped by the code of their message.

Only codes with a text for several tasks are merged, and only within a minute: what happens later is another line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from shoal.engine.messages import REPEATED, SEVERAL
from shoal.engine.state import format_tasks
from shoal.kube.messages import Catalog, Message
from shoal.operator.messages import CATALOG

_TOGETHER = timedelta(minutes=1)
_MAX_FAILURES = 3  # of one task, each with its own lines
_FAILED, _OPENED = frozenset({"TaskFailed"}), frozenset({"RunOpened"})
_RETRIED = frozenset({"TaskRetried", "TaskRetried.Free"})
_RUN_FAILED = frozenset({"RunEnding.Failed", "RunEnding.FailedWith"})


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a history. Only lines with a message are grouped."""

    at: datetime
    text: str
    message: Message | None = None

    def get(self, parameter: str) -> Any:
        return self.message.parameters.get(parameter) if self.message is not None else None

    def is_of(self, codes: frozenset[str]) -> bool:
        return self.message is not None and self.message.code in codes


def group_events(lines: Iterable[Line]) -> list[Line]:
    """In the order of time; a group has the position of its first line."""
    kept = merge_repeated_runs(merge_repeated_tasks(sorted(lines, key=lambda line: line.at)))
    groups: list[tuple[Line, list[tuple[str, int]]]] = []
    latest: dict[tuple[Any, ...], int] = {}
    for line in kept:
        # Role and index, where the line is about one task and may be about several.
        task: tuple[str, int] | None = None
        key: tuple[Any, ...] = ()
        if line.message is not None and line.message.code in SEVERAL:
            role, dash, index = str(line.get("task")).rpartition("-")
            task = (role, int(index)) if dash and index.isdecimal() and len(index) < 10 else None
            others = {name: value for name, value in line.message.parameters.items() if name != "task"}
            key = (line.message.code, role, repr(others))
        known = latest.get(key) if task is not None else None
        if known is not None and task is not None:
            first, tasks = groups[known]
            if line.at - first.at <= _TOGETHER and task not in tasks:
                tasks.append(task)
                continue
        if task is not None:
            latest[key] = len(groups)
        groups.append((line, [task] if task is not None else []))
    return [
        line
        if len(tasks) < 2
        else _with(line, SEVERAL, {"tasks": format_tasks(tasks[0][0], sorted(index for _, index in tasks))})
        for line, tasks in groups
    ]


def _with(line: Line, texts: Catalog, more: Mapping[str, Any]) -> Line:
    """The line with the text of a group; as it is where its message lacks a parameter."""
    assert line.message is not None
    message = Message(line.message.code, {**line.message.parameters, **more})
    try:
        return replace(line, text=f"{(CATALOG | texts).text(message)}.")
    except (KeyError, ValueError, TypeError):
        return line


def merge_repeated_tasks(lines: list[Line]) -> list[Line]:
    """A task that failed again and again as one line, in the place of the last failure."""
    failures: dict[str, list[Line]] = {}
    for line in lines:
        if line.is_of(_FAILED):
            failures.setdefault(str(line.get("task")), []).append(line)
    kept: list[Line] = []
    for line in lines:
        known = failures.get(str(line.get("task")), []) if line.is_of(_FAILED | _RETRIED) else []
        if len(known) <= _MAX_FAILURES:
            kept.append(line)
        elif line is known[-1]:
            kept.append(_with(line, REPEATED, _repetition(known, "attempt")))
    return kept


def merge_repeated_runs(lines: list[Line]) -> list[Line]:
    """Runs of a whole job. Of a language that emits no Event for the failure of a run, the last start is left."""
    failed = [line for line in lines if line.is_of(_RUN_FAILED)]
    opened = [line for line in lines if line.is_of(_OPENED)]
    if len(failed) > _MAX_FAILURES:
        last, runs = _with(failed[-1], REPEATED, _repetition(failed, "run")), _RUN_FAILED | _OPENED
        return [last if line is failed[-1] else line for line in lines if line is failed[-1] or not line.is_of(runs)]
    if len(opened) > _MAX_FAILURES:
        last = _with(opened[-1], REPEATED, _repetition(opened, "run"))
        return [last if line is opened[-1] else line for line in lines if line is opened[-1] or not line.is_of(_OPENED)]
    return lines


def _repetition(lines: list[Line], number: str) -> dict[str, Any]:
    """How often, counted by the numbers of the attempts or runs, because old Events are deleted."""
    first, last = lines[0], lines[-1]
    low, high = first.get(number), last.get(number)
    times = high - low + 1 if isinstance(low, int) and isinstance(high, int) else len(lines)
    return {"times": times, "since": f"{first.at.astimezone():%H:%M:%S}"}
