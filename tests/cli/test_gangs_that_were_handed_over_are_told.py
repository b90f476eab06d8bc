"""The story of a job whose gang another scheduler places: why it waits, in that scheduler's words, and what that
scheduler was not told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kit.capabilities import capability
from kit.third_party_schedulers import FULL, answer
from kit.volcano_jobs import task, vcjob
from shoal.cli.describe_page import DescribeContext, describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.dialects.capabilities import OwnedObjects
from shoal.dialects.gang_backends import backend
from shoal.dialects.gang_backends.delegate import with_recorded_backend
from shoal.dialects.volcano import DIALECT, settings
from shoal.engine import Apply, BuildContext, GroupRef, JobState
from shoal.kube.objects import Obj

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def told(name: str) -> list[str]:
    """What is next, of a job of two in the queue research that its scheduler has not let in."""
    placer = backend(name)
    manifest = DIALECT.default(vcjob("ctr", task(replicas=2), queue="research"))
    manifest["metadata"] |= {
        "uid": "u", "namespace": "team", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"shoal.dev/gang-scheduler": placer.label},
    }  # fmt: skip
    dialect = with_recorded_backend(DIALECT, manifest)
    job = dialect.to_job(manifest, settings())
    assert job is not None
    manifest["metadata"]["annotations"] |= dict(dialect.save_state(job, JobState(), settings()).annotations)
    group: Obj = capability(dialect, OwnedObjects).build_object(
        manifest, Apply(GroupRef(""), BuildContext(), ""), is_new=True
    )
    group["metadata"]["uid"] = "g"
    group["status"] = answer(name, granted=False)
    page = describe_job(FoundJob(manifest, dialect), DescribeContext([], [], None, NOW, (group,)))
    return [line.strip() for line in page.partition("What is next:\n")[2].splitlines()]


STORIES: dict[str, list[str]] = {
    "volcano": [f"The PodGroup is not admitted: {FULL}."],
    "coscheduling": [
        "PodGroup ctr-u waits: its pods wait for each other.",
        "Its scheduler does not support its queue research.",
    ],
    "kueue": ["worker waits for its group to be admitted.", f"Workload ctr-u-d waits: {FULL}."],
}


@pytest.mark.parametrize("name", STORIES)
def test_the_reason_of_the_wait_is_shown(name: str):
    lines = [line.replace(line.split()[1], "ctr-u-d") if "Workload" in line else line for line in told(name)]
    assert lines[: len(STORIES[name])] == STORIES[name]
