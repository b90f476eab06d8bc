"""Messages with one code and equal parameters about several tasks are one line; everything else line by line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.cli.event_grouping import Line, group_events
from shoal.kube.messages import Message
from shoal.operator.messages import CATALOG

T0 = datetime(2030, 1, 1, tzinfo=UTC)


def line(second: int, code: str, task: str, attempt: int = 0, cause: str = "x", **more: Any) -> Line:
    message = Message(code, {"task": task, "attempt": attempt, "cause": cause, **more})
    return Line(T0 + timedelta(seconds=second), f"{CATALOG.text(message)}.", message)


EVICTED, LOST, FAILED, RETRIED = "TaskLost.Evicted", "TaskLost", "TaskFailed", "TaskRetried"
CASES: dict[str, tuple[list[Line], list[tuple[int, str]]]] = {
    "interleaved": (
        [line(0, LOST, "w-0"), line(0, RETRIED, "w-0", 1, charged=1),
         line(1, LOST, "w-1"), line(1, RETRIED, "w-1", 1, charged=1)],
        [(0, "w-0 and w-1 were lost in attempt 0: x."),
         (0, "w-0 and w-1 are retried as attempt 1 (counted retries: 1 each).")],
    ),
    "out of order": (
        [line(9, EVICTED, "w-1"), line(3, EVICTED, "w-0"), line(4, EVICTED, "w-7")],
        [(3, "w-0, w-1 and w-7 were evicted in attempt 0: x.")],
    ),
    "another cause": (
        [line(0, FAILED, "w-0", cause="Error (code 1)"), line(0, FAILED, "w-1", cause="Error (code 2)")],
        [(0, "w-0 failed in attempt 0: Error (code 1)."), (0, "w-1 failed in attempt 0: Error (code 2).")],
    ),
    "another role": (
        [line(0, EVICTED, "ps-0"), line(0, EVICTED, "w-1")],
        [(0, "ps-0 was evicted in attempt 0: x."), (0, "w-1 was evicted in attempt 0: x.")],
    ),
    "much later": (
        [line(0, EVICTED, "w-0"), line(61, EVICTED, "w-1"), line(62, EVICTED, "w-2")],
        [(0, "w-0 was evicted in attempt 0: x."), (61, "w-1 and w-2 were evicted in attempt 0: x.")],
    ),
    "the same task again": (
        [line(0, EVICTED, "w-0"), line(1, EVICTED, "w-0")],
        [(0, "w-0 was evicted in attempt 0: x."), (1, "w-0 was evicted in attempt 0: x.")],
    ),
    "another attempt": (
        [line(0, EVICTED, "w-0"), line(1, EVICTED, "w-1"), line(2, EVICTED, "w-0", 1), line(3, EVICTED, "w-2", 1)],
        [(0, "w-0 and w-1 were evicted in attempt 0: x."), (2, "w-0 and w-2 were evicted in attempt 1: x.")],
    ),
    "a code without a text for several": (
        [line(0, "TaskReplaced", "w-0"), line(0, "TaskReplaced", "w-1")],
        [(0, f"w-{index} is created again, because its role was scaled up.") for index in (0, 1)],
    ),
    "no message": (
        [Line(T0, "w-0 was lost in attempt 0: x."), Line(T0, "w-1 was lost in attempt 0: x.")],
        [(0, "w-0 was lost in attempt 0: x."), (0, "w-1 was lost in attempt 0: x.")],
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
