"""Gangs are called after their job and its uid; a story leaves the uid out, and touches no other name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kit.framework_notation import fw, role
from shoal.cli.describe_page import DescribeContext, describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.dialects.framework import DIALECT

NOW = datetime(2030, 1, 1, tzinfo=UTC)
UID = "0b6c3f5e-1d2a-4b7c-8e9f-a0b1c2d3e4f5"
OTHER = "5487ce1e-af19-422a-99b8-a714e61a441c"

CASES = {
    "gangs": (
        f"w-0 was evicted in attempt 0: train-{UID} gives way, lower priority than urgent-{OTHER} in queue default",
        "w-0 was evicted in attempt 0: train gives way, lower priority than urgent in queue default.",
    ),
    "gangs of later stages": (
        f"train gives a pod back, w-1: lower priority than urgent-{OTHER}-1 in queue default",
        "train gives a pod back, w-1: lower priority than urgent-1 in queue default.",
    ),
    "several gangs": (
        f"train gives a pod back, w-1: for a-{UID} in queue a; for b-{OTHER} in queue b",
        "train gives a pod back, w-1: for a in queue a; for b in queue b.",
    ),
    "a volume": (
        f'w-0 could not be created yet: volume "pvc-{UID}" is in use',
        f'w-0 could not be created yet: volume "pvc-{UID}" is in use.',
    ),
    "a volume that is waited for": (
        f"w-0 failed in attempt 0: pvc-{UID} gives no answer",
        f"w-0 failed in attempt 0: pvc-{UID} gives no answer.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_names_in_what_happened(case: str) -> None:
    message, expected = CASES[case]
    job = fw("train", role("w"))
    job["metadata"] |= {"namespace": "default", "uid": UID}
    event = {"metadata": {"resourceVersion": "1"}, "message": message, "lastTimestamp": "2030-01-01T00:00:00Z"}
    page = describe_job(FoundJob(job, DIALECT), DescribeContext(pods=[], events=[event], run_owner=None, now=NOW))
    told = page.split("What happened:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split("ago)  ")[1] for line in told] == [expected]
