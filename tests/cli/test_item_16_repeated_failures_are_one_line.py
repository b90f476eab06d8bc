"""A task that fails again and again takes one line of a story: how often, since when, and why the last time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.cli_runner import at_a_cluster
from kit.framework_notation import fw, role
from kit.pod_behavior import exits
from shoal.cli.event_grouping import Line, group_events
from shoal.kube.messages import Message
from shoal.operator.messages import CATALOG

BEGIN = datetime(2030, 1, 1, 2, 56, tzinfo=UTC)
SINCE = f"{BEGIN.astimezone():%H:%M:%S}"


def line(at: datetime, code: str, **parameters: Any) -> Line:
    message = Message(code, parameters)
    return Line(at, f"{CATALOG.text(message)}.", message)


def failing(task: str, times: int) -> list[Line]:
    lines = []
    for attempt in range(times):
        at = BEGIN + timedelta(minutes=attempt)
        lines.append(line(at, "TaskFailed", task=task, attempt=attempt, cause=f"Error (code {attempt})"))
        lines.append(line(at, "TaskRetried", task=task, attempt=attempt + 1, charged=attempt + 1))
    return lines


def test_many_failures_are_one_line_in_the_place_of_the_last() -> None:
    submitted = Line(BEGIN - timedelta(minutes=1), "It was submitted.")
    assert [(each.at, each.text) for each in group_events([submitted, *failing("worker-0", 47)])] == [
        (submitted.at, submitted.text),
        (
            BEGIN + timedelta(minutes=46),
            f"worker-0 failed 47 times since {SINCE}; the last failure: Error (code 46).",
        ),
    ]


def test_a_few_failures_keep_their_lines_and_other_tasks_are_counted_apart() -> None:
    few = failing("worker-1", 3)
    both = group_events([*few, *failing("worker-0", 4)])
    assert [each for each in both if "worker-1" in each.text] == few
    assert sum("worker-0" in each.text for each in both) == 1


def running_again(times: int, *, is_failure_told: bool) -> list[Line]:
    lines = []
    for run in range(times):
        at = BEGIN + timedelta(minutes=run)
        if is_failure_told:
            outcome, cause = f"Error (code {run})", Message("Cause.NoRetry")
            lines.append(line(at, "RunEnding.FailedWith", job="pet", run=run, outcome=outcome, cause=cause))
        lines.append(line(at, "RunOpened", job="pet", run=run + 1))
    return lines


def test_many_runs_of_a_whole_job_are_one_line() -> None:
    last = BEGIN + timedelta(minutes=8)
    cause = "the last one with Error (code 8), because no retry is left"
    assert [(each.at, each.text) for each in group_events(running_again(9, is_failure_told=True))] == [
        (last, f"9 runs of pet failed since {SINCE}, {cause}.")
    ]
    assert [(each.at, each.text) for each in group_events(running_again(9, is_failure_told=False))] == [
        (last, f"Run 9 of pet started; 9 runs have started since {SINCE}.")
    ]
    few = running_again(3, is_failure_told=True)
    assert group_events(few) == few


@pytest.mark.processes
def test_describe_has_one_line_for_the_failures_of_a_task(tmp_path: Path) -> None:
    with at_a_cluster(tmp_path) as terminal:
        terminal.submit(fw("loop", role("worker", 1, 1, -1, fate=exits(3), retry=(False, 4))))
        terminal("wait", "loop", code=3)
        happened = terminal("describe", "loop").partition("What happened:\n")[2].partition("\n\n")[0]
    (line,) = (line for line in happened.splitlines() if "worker-0 failed" in line)
    assert "worker-0 failed 5 times since " in line
    assert "code 3" in line.partition("; the last failure: ")[2]
