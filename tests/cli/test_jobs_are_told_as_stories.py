"""`shoal describe`, `shoal get` and exit codes, from jobs played on the simulated cluster."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import Fate, exits, runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.cli.commands.describe import load_context
from shoal.cli.describe_page import describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import exit_code_of, job_row, job_status, tasks_of
from shoal.cluster.client import PatchType
from shoal.dialects.framework import DIALECT
from shoal.kube.kinds import EVENT, POD


async def found(world: SimulatedWorld, name: str) -> FoundJob:
    return FoundJob(await world.user.get(FRAMEWORK, name, NAMESPACE), DIALECT)


async def told(world: SimulatedWorld, name: str) -> str:
    """The story, with times taken out."""
    await world.rest(1)
    job = await found(world, name)
    page = describe_job(job, await load_context(world.user, job))
    return re.sub(r"\d\d:\d\d:\d\d( \([^)]*\))? ?", "", re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "DAY", page))


async def test_describe_a_failed_job() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("sad", role("worker", 2, retry=(False, 1), of={1: runs()}, fate=exits(3))))
        await world.completed("sad")
        page = await told(world, "sad")
    head, happened, tasks, following = page.split("\n\n")
    assert re.fullmatch(
        r"Framework sad in namespace default \(worker x 2\) failed after \d+s: worker-0 ended with code 3\.", head
    )
    assert " It was submitted." in happened
    assert " worker-0 is retried as attempt 1 (counted retries: 1)." in happened
    assert tasks.splitlines()[1:] == [
        "  worker-0  failed (code 3), retried once, on node-1",
        "  worker-1  stopped (code -220), on node-1",
    ]
    assert following.startswith("What is next:\n  Nothing: it has ended. It is kept until DAY.")


async def test_describe_a_stopped_job_shows_no_failure() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("enough", role("worker", 2, fate=runs())))
        await world.running("enough", 2)
        await world.set("enough", executionType="Stop")
        await world.completed("enough")
        page = await told(world, "enough")
        events = (await world.user.list(EVENT, NAMESPACE)).items
    happened = [line.strip() for line in page.split("What happened:\n")[1].split("\n\n")[0].splitlines()]
    assert happened == [
        "It was submitted.",
        "Its first task started.",
        "Run 0 of enough is stopped, because a stop was requested.",
        "It was stopped.",
    ]
    assert "fail" not in page.lower()
    assert [event["message"] for event in events if event["type"] == "Warning"] == []


@pytest.mark.parametrize(
    ("pods", "sentence"),
    [
        pytest.param(0, "Its pods are gone; `shoal get done -o yaml` shows what it left.", id="none"),
        pytest.param(1, "Its pod is still there; `shoal logs done` shows what was printed.", id="one"),
        pytest.param(2, "2 of its pods are still there; `shoal logs done` shows what was printed.", id="several"),
    ],
)
async def test_describe_an_ended_job_names_the_commands_for_more(pods: int, sentence: str) -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("done", role("worker", 2, fate=exits(0))))
        await world.running("done", 2)
        left = (await load_context(world.user, await found(world, "done"))).pods[:pods]
        await world.completed("done")
        job = await found(world, "done")
        page = describe_job(job, replace(await load_context(world.user, job), pods=left))
    assert page.endswith(sentence)


async def test_describe_a_running_job_shows_how_it_completes() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("long", role("worker", 2, 1, 2, fate=runs())))
        await world.running("long", 2)
        page = await told(world, "long")
    assert page.split("What is next:\n")[1].splitlines() == [
        "  It fails as soon as 1 task of worker has failed.",
        "  It succeeds as soon as 2 tasks of worker have succeeded.",
        "  It succeeds as soon as all tasks have ended.",
    ]


async def test_describe_a_waiting_job_shows_the_reason() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("later", role("worker"), start="Create"))
        await world.until(lambda: world.state("later") == "AttemptCreationPending")
        page = await told(world, "later")
    assert "The Framework waits for executionType Start." in page


async def test_describe_a_crash_looping_container() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("loops", role("worker", fate=runs())))
        await world.running("loops", 1)
        waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}
        status = {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}
        await world.user.patch(
            POD, "loops-worker-0", NAMESPACE, patch={"status": status}, patch_type=PatchType.MERGE, subresource="status"
        )
        page = await told(world, "loops")
    assert "  worker-0  waiting, CrashLoopBackOff: back-off 10s restarting failed container, on node-1" in page


async def test_describe_a_delayed_retry_shows_its_time() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("again", role("worker", fate=exits(201)), retry=(True, 1)))
        await world.until(lambda: bool(world.status("again").get("retryPolicyStatus", {}).get("retryDelaySec")))
        page = await told(world, "again")
    assert "It is tried again at as run 1." in page


async def test_describe_a_job_without_tasks_shows_the_remedy() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("empty", role("worker", 0)))
        await world.submit(fw("bare"))
        await world.until(lambda: all(world.status(name).get("attemptStatus") for name in ("empty", "bare")))
        pages = [await told(world, name) for name in ("empty", "bare")]
    assert [page.rpartition("What is next:\n")[2] for page in pages] == [
        "  It waits because it has no tasks: `shoal scale empty worker=1` gives it one.",
        "  It waits because it has no roles and so no tasks: write some into its spec.",
    ]


@pytest.mark.parametrize(
    ("fate", "word", "code"),
    [
        pytest.param(exits(0), "succeeded", 0, id="good"),
        pytest.param(exits(7), "failed", 7, id="a code a process can have"),
        pytest.param(exits(1, pod_reason="Evicted"), "failed", 1, id="a code only the language has"),
    ],
)
async def test_the_exit_code_is_the_jobs_own(fate: Fate, word: str, code: int) -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("one", role("worker", fate=fate)))
        await world.completed("one")
        state = (await found(world, "one")).state
    assert (job_status(state), exit_code_of(state)) == (word, code)


async def test_a_line_sums_a_job_up() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("mixed", role("worker", 3, -1, -1, retry=(True, 0), of={0: exits(0)}, fate=runs())))
        await world.until(lambda: world.are_running("mixed", 2) and world.codes("mixed")[0] == 0)
        await world.delete_pod("mixed-worker-2")
        await world.until(lambda: world.task("mixed", 2)["attemptStatus"]["id"] == 1 and world.are_running("mixed", 2))
        job = await found(world, "mixed")
        row = job_row(job, world.cluster.clock.now())
        words = [(view.name, view.status) for view in tasks_of(job.state)]
    assert row[:7] == ["mixed", "Framework", "running", "2/3 running", "0", "1", ""]
    assert words == [("worker-0", "succeeded"), ("worker-1", "running"), ("worker-2", "running")]
