"""`shoal logs JOB TASK` takes roles, numbered tasks, and the names of pods that its own lines begin with."""

from __future__ import annotations

import click
import pytest

from kit.frameworks import framework, role
from kit.native_world import job
from shoal.cli.commands.logs import LogSelection, check_tasks
from shoal.cli.job_lookup import FoundJob
from shoal.cli.line_filter import LineFilter
from shoal.cluster.client import LogOptions
from shoal.dialects import dialect_of
from shoal.dialects.framework import DIALECT


def batch_job() -> FoundJob:
    dialect = dialect_of("batch/v1", "Job")
    assert dialect is not None
    manifest = job("a", completions=2)
    manifest["metadata"]["namespace"] = "default"
    return FoundJob(manifest, dialect)


ACCEPTED: dict[str, tuple[FoundJob, str, list[str], bool]] = {
    "a role": (FoundJob(framework(role("worker", 2)), DIALECT), "worker", [], False),
    "a task": (FoundJob(framework(role("worker", 2)), DIALECT), "worker-1", [], False),
    "a task that was scaled away, with a log": (
        FoundJob(framework(role("worker", 1)), DIALECT),
        "worker-4",
        ["worker-4"],
        False,
    ),
    "a task still to come": (FoundJob(framework(role("worker", 1)), DIALECT), "worker-4", [], True),
    "a pod by its letters": (batch_job(), "pod-x7k2q", ["pod-x7k2q"], False),
}
REJECTED: dict[str, tuple[FoundJob, str, list[str], bool, str]] = {
    "another role": (FoundJob(framework(role("worker", 2)), DIALECT), "ps-0", [], True, "Its roles: worker."),
    "another task": (FoundJob(framework(role("worker", 1)), DIALECT), "worker-4", [], False, "Its tasks: worker-0."),
    "a pod that does not exist": (batch_job(), "pod-zzzzz", ["pod-x7k2q"], False, "Its tasks: pod-x7k2q."),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_name_is_accepted(case: str) -> None:
    found, word, heads, is_followed = ACCEPTED[case]
    check_tasks(found, (word,), heads, is_followed=is_followed)


@pytest.mark.parametrize("case", REJECTED)
def test_an_unknown_name_is_rejected_with_the_known_ones(case: str) -> None:
    found, word, heads, is_followed, known = REJECTED[case]
    with pytest.raises(click.ClickException) as refused:
        check_tasks(found, (word,), heads, is_followed=is_followed)
    assert refused.value.message.endswith(known)


@pytest.mark.parametrize(
    ("word", "is_selected"), [("pod", True), ("pod-0", True), ("pod-x7k2q", True), ("pod-zzzzz", False)]
)
def test_a_pod_is_selected_by_task_role_or_printed_name(word: str, is_selected: bool) -> None:
    selection = LogSelection((word,), LogOptions(), LineFilter(None), prefix=True, is_previous=False, is_all=False)
    assert selection.matches("pod-0", "pod-x7k2q") is is_selected
