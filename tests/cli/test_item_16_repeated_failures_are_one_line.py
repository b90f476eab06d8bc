"""A task that fails again and again takes one line of a story: how often, since when, and why the last time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shoal.cli.event_grouping import Moment, folded

BEGIN = datetime(2030, 1, 1, 2, 56, tzinfo=UTC)


def failing(task: str, times: int) -> list[Moment]:
    moments = []
    for attempt in range(times):
        at = BEGIN + timedelta(minutes=attempt)
        moments.append((at, f"{task} failed in attempt {attempt}: it ended (code {attempt})."))
        moments.append((at, f"{task} is tried again as attempt {attempt + 1} ({attempt + 1} charged)."))
    return moments


def test_many_failures_are_one_line_in_the_place_of_the_last() -> None:
    since = f"{BEGIN.astimezone():%H:%M:%S}"
    submitted = (BEGIN - timedelta(minutes=1), "It was submitted.")
    assert folded([submitted, *failing("worker-0", 47)]) == [
        submitted,
        (BEGIN + timedelta(minutes=46), f"worker-0 failed 47 times since {since}, the last time: it ended (code 46)."),
    ]


def test_a_few_failures_keep_their_lines_and_other_tasks_are_counted_apart() -> None:
    few = failing("worker-1", 3)
    both = folded([*few, *failing("worker-0", 4)])
    assert [line for line in both if "worker-1" in line[1]] == few
    assert sum("worker-0" in sentence for _, sentence in both) == 1


def running_again(times: int, *, is_failure_told: bool) -> list[Moment]:
    moments = []
    for run in range(times):
        at = BEGIN + timedelta(minutes=run)
        if is_failure_told:
            moments.append((at, f"Run {run} of pet failed: no luck (code {run})."))
        moments.append((at, f"Run {run + 1} of pet is open."))
    return moments


def test_many_runs_of_a_whole_job_are_one_line() -> None:
    since, last = f"{BEGIN.astimezone():%H:%M:%S}", BEGIN + timedelta(minutes=8)
    assert folded(running_again(9, is_failure_told=True)) == [
        (last, f"pet failed as a whole 9 times since {since}, the last time: no luck (code 8).")
    ]
    assert folded(running_again(9, is_failure_told=False)) == [
        (last, f"Run 9 of pet is open, the last of 9 since {since}.")
    ]
    few = running_again(3, is_failure_told=True)
    assert folded(few) == few
