"""`shoal get` and `shoal describe` of a batch Job agree: how many successes are wanted, how many came, who is there."""

from __future__ import annotations

import re

import pytest

from kit.native_world import SimulatedJobs, job
from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from shoal.cli.commands.describe import load_context
from shoal.cli.describe_page import describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import job_row
from shoal.cluster.client import PatchType
from shoal.dialects.native.batch_job import DIALECT
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, name_of

LETTERS = re.compile(r"pod-[a-z0-9]{5}\b")


async def told(world: SimulatedJobs) -> tuple[str, str, list[str], str]:
    """What stands under TASKS, in brackets behind the name, under `Tasks`, and about pods that are left."""
    found = FoundJob(await world.user.get(DIALECT.kind, "a", NAMESPACE), DIALECT)
    page = LETTERS.sub("pod-LETTERS", describe_job(found, await load_context(world.user, found)))
    roles = re.search(r"\((.*?)\)", page)
    left = re.search(r"\d+ of its pods are still there", page)
    lines = page.partition("Tasks:\n")[2].partition("\n\n")[0].splitlines()
    row = job_row(found, world.cluster.clock.now())
    return row[3], roles[1] if roles else "", [line.strip() for line in lines], left[0] if left else ""


SUCCEEDED, RUNNING = "pod-LETTERS  succeeded, on node-1", "pod-LETTERS  running, on node-1"
ROLES = "pod x 4, 2 at a time"


async def test_a_job_is_counted_from_its_first_pod_to_its_last() -> None:
    async with SimulatedJobs() as world:
        await world.submit(job("a", exits(0, 5), completions=4, parallelism=2))
        new = await told(world)
        await world.ready("a", 2)
        first = await told(world)
        await world.until(lambda: world.counts("a").get("succeeded") == 2 and world.counts("a").get("ready") == 2)
        second = await told(world)
        await world.change("a", suspend=True)
        await world.rest(5)
        held = await told(world)
        await world.change("a", suspend=False)
        await world.ended("a")
        last = await told(world)
    assert [new, first, second, held, last] == [
        ("0/4 succeeded", ROLES, ["0/4 succeeded."], ""),
        ("0/4 succeeded, 2 running", ROLES, ["0/4 succeeded, 2 running.", RUNNING, RUNNING], ""),
        ("2/4 succeeded, 2 running", ROLES, ["2/4 succeeded, 2 running.", *[SUCCEEDED] * 2, *[RUNNING] * 2], ""),
        ("2/4 succeeded", ROLES, ["2/4 succeeded.", *[SUCCEEDED] * 2], ""),
        ("4/4 succeeded", ROLES, ["4/4 succeeded.", *[SUCCEEDED] * 4], "4 of its pods are still there"),
    ]


ENDS: dict[str, tuple[Obj, tuple[str, str, list[str], str]]] = {
    "failed": (
        job("a", exits(3), completions=4, parallelism=1, backoffLimit=1),
        ("0/4 succeeded, 2 failed", "pod x 4, 1 at a time",
         ["0/4 succeeded, 2 failed.", *["pod-LETTERS  failed (code 3), on node-1"] * 2],
         "2 of its pods are still there"),
    ),
    "all at once": (
        job("a", exits(0), completions=2, parallelism=2),
        ("2/2 succeeded", "pod x 2", ["2/2 succeeded.", SUCCEEDED, SUCCEEDED], "2 of its pods are still there"),
    ),
    "by index": (
        job("a", exits(0), completions=3, parallelism=1, completionMode="Indexed"),
        ("3/3 succeeded", "pod x 3, 1 at a time",
         ["3/3 succeeded.", *[f"pod-{index}  succeeded, on node-1" for index in range(3)]],
         "3 of its pods are still there"),
    ),
    "until one has succeeded": (
        job("a", exits(0), parallelism=2, completions=None),
        ("2/2 over", "pod x 2", [SUCCEEDED, SUCCEEDED], "2 of its pods are still there"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
async def test_a_job_that_ended_is_counted_by_what_it_wanted(case: str) -> None:
    manifest, expected = ENDS[case]
    async with SimulatedJobs() as world:
        await world.submit(manifest)
        await world.ended("a")
        assert await told(world) == expected


async def test_a_waiting_pod_is_listed_with_its_reason() -> None:
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}
    status = {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}
    async with SimulatedJobs() as world:
        await world.submit(job("a", runs(), completions=2, parallelism=1))
        await world.ready("a", 1)
        name = name_of(world.pods_of("a")[0])
        await world.user.patch(
            POD, name, NAMESPACE, patch={"status": status}, patch_type=PatchType.MERGE, subresource="status"
        )
        _, _, lines, _ = await told(world)
    assert lines == [
        "0/2 succeeded, 1 running.",
        "pod-LETTERS  waiting, CrashLoopBackOff: back-off 10s restarting failed container, on node-1",
    ]
