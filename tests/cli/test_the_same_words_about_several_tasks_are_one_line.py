"""Messages with one code and equal parameters about several tasks are one line; everything else line by line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.cli.event_grouping import Line, group_events
from shoal.engine.messages import SEVERAL
from shoal.kube.messages import Message
from shoal.operator.messages import CATALOG

T0 = datetime(2030, 1, 1, tzinfo=UTC)


def line(second: int, code: str, task: str, attempt: int = 0, cause: str = "x", **more: Any) -> Line:
    message = Message(code, {"task": task, "attempt": attempt, "cause": cause, **more})
    return Line(T0 + timedelta(seconds=second), f"{CATALOG.text(message)}.", message)


def one(second: int, code: str, task: str, attempt: int = 0, cause: str = "x") -> tuple[int, str]:
    return second, line(second, code, task, attempt, cause).text


def several(second: int, code: str, tasks: str, attempt: int = 0, cause: str = "x", **more: Any) -> tuple[int, str]:
    message = Message(code, {"tasks": tasks, "attempt": attempt, "cause": cause, **more})
    return second, f"{SEVERAL.text(message)}."


EVICTED, LOST, FAILED, RETRIED = "TaskLost.Evicted", "TaskLost", "TaskFailed", "TaskRetried"
REPLACED = "TaskReplaced"
CASES: dict[str, tuple[list[Line], list[tuple[int, str]]]] = {
    "interleaved": (
        [line(0, LOST, "w-0"), line(0, RETRIED, "w-0", 1, charged=1),
         line(1, LOST, "w-1"), line(1, RETRIED, "w-1", 1, charged=1)],
        [several(0, LOST, "w-0 and w-1"), several(0, RETRIED, "w-0 and w-1", 1, charged=1)],
    ),
    "out of order": (
        [line(9, EVICTED, "w-1"), line(3, EVICTED, "w-0"), line(4, EVICTED, "w-7")],
        [several(3, EVICTED, "w-0, w-1 and w-7")],
    ),
    "another cause": (
        [line(0, FAILED, "w-0", cause="Error (code 1)"), line(0, FAILED, "w-1", cause="Error (code 2)")],
        [one(0, FAILED, "w-0", cause="Error (code 1)"), one(0, FAILED, "w-1", cause="Error (code 2)")],
    ),
    "another role": (
        [line(0, EVICTED, "ps-0"), line(0, EVICTED, "w-1")],
        [one(0, EVICTED, "ps-0"), one(0, EVICTED, "w-1")],
    ),
    "much later": (
        [line(0, EVICTED, "w-0"), line(61, EVICTED, "w-1"), line(62, EVICTED, "w-2")],
        [one(0, EVICTED, "w-0"), several(61, EVICTED, "w-1 and w-2")],
    ),
    "the same task again": (
        [line(0, EVICTED, "w-0"), line(1, EVICTED, "w-0")],
        [one(0, EVICTED, "w-0"), one(1, EVICTED, "w-0")],
    ),
    "another attempt": (
        [line(0, EVICTED, "w-0"), line(1, EVICTED, "w-1"), line(2, EVICTED, "w-0", 1), line(3, EVICTED, "w-2", 1)],
        [several(0, EVICTED, "w-0 and w-1"), several(2, EVICTED, "w-0 and w-2", 1)],
    ),
    "a code without a text for several": (
        [line(0, REPLACED, "w-0"), line(0, REPLACED, "w-1")],
        [one(0, REPLACED, "w-0"), one(0, REPLACED, "w-1")],
    ),
    "no message": (
        [Line(T0, "w-0 was lost."), Line(T0, "w-1 was lost.")],
        [(0, "w-0 was lost."), (0, "w-1 was lost.")],
    ),
    "a message somebody else wrote": (
        [Line(T0, "odd.", Message(LOST, {"task": f"w-{index}"})) for index in range(2)],
        [(0, "odd.")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_lines_are_grouped(case: str) -> None:
    lines, expected = CASES[case]
    assert [(int((each.at - T0).total_seconds()), each.text) for each in group_events(lines)] == expected
