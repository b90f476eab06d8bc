"""`shoal run` tells why a task waits: once as a line, as long as it lasts in the table, and never as markup."""

from __future__ import annotations

import asyncio
import re
from io import StringIO

import pytest
from rich.console import Console

from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.cli.follow import Follower, PodView
from shoal.cli.job_actions import stop
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import tasks_of
from shoal.cli.progress import LineDisplay, TableDisplay
from shoal.dialects.framework import DIALECT
from shoal.kube.objects import Obj

WHY = "needs 8 nvidia.com/gpu, but no node that the pod can run on has any"


async def running_job() -> tuple[FoundJob, str]:
    """A job of one task that runs, and the uid of its pod."""
    async with SimulatedWorld(0) as world:
        await world.submit(fw("job", role("worker", fate=runs())))
        await world.running("job", 1)
        found = FoundJob(await world.user.get(FRAMEWORK, "job", NAMESPACE), DIALECT)
    uid = tasks_of(found.state)[0].pod_uid
    assert uid is not None
    return found, uid


async def resting(name: str, manifest: Obj) -> FoundJob:
    """A job that does nothing, and has been looked at."""
    async with SimulatedWorld(0) as world:
        await world.submit(manifest)
        await world.until(lambda: bool(world.state(name)))
        await world.rest(1)
        return FoundJob(await world.user.get(FRAMEWORK, name, NAMESPACE), DIALECT)


AT_REST = {
    "no tasks": (fw("idle", role("worker", 0)), "pending: it has no tasks"),
    "no roles": (fw("idle"), "pending: it has no roles and so no tasks"),
    "not started": (
        fw("idle", role("worker", 2), start="Create"),
        "pending: The Framework waits for executionType Start",
    ),
}


@pytest.mark.parametrize("case", AT_REST)
async def test_an_idle_job_has_a_reason(case: str) -> None:
    manifest, word = AT_REST[case]
    job, out = await resting("idle", manifest), StringIO()
    lines = LineDisplay(Console(file=out, width=200), logs=True)
    lines.change(job)
    lines.change(job)
    assert next(line for line in out.getvalue().splitlines() if "idle:" in line).endswith(f" idle: {word}")
    assert out.getvalue().count(word) == 1


async def test_a_job_without_tasks_has_a_line_in_the_table() -> None:
    job, out = await resting("idle", fw("idle", role("worker", 0))), StringIO()
    screen = TableDisplay(Console(file=out, width=140, height=30, force_terminal=True, color_system=None), logs=True)
    with screen.shown():
        screen.change(job)
    assert re.search(r"\n- +waiting +it has no tasks", out.getvalue())


async def test_each_reason_is_printed_once() -> None:
    job, uid = await running_job()
    out = StringIO()
    lines = LineDisplay(Console(file=out, width=200), logs=True)
    lines.pod(job, "worker-0", PodView(uid, why=WHY))
    lines.change(job)
    lines.pod(job, "worker-0", PodView(uid, why=WHY))
    lines.pod(job, "worker-7", PodView("another pod", why="another reason"))
    lines.pod(job, "worker-0", PodView(uid))
    said = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in out.getvalue().splitlines()]
    assert said == ["job: running", f"job worker-0: waiting: {WHY}", "job worker-0: running"]


async def test_the_table_has_the_reason_and_no_markup_below_a_note() -> None:
    job, uid = await running_job()
    out = StringIO()
    screen = TableDisplay(Console(file=out, width=140, height=30, force_terminal=True, color_system=None), logs=True)
    with screen.shown():
        screen.change(job)
        screen.pod(job, "worker-0", PodView(uid, why=WHY))
        screen.note("Stopping; [Ctrl-C] again ends everything at once.")
        screen.log_failure("worker-0", "no [log]")
    shown = out.getvalue()
    assert re.search(rf"worker-0 +waiting +node-\d +{re.escape(WHY)}", shown)
    assert "[Ctrl-C] again" in shown
    assert "no [log]" in shown
    assert "[dim]" not in shown
    assert "[/]" not in shown


CASES = {
    "a priority nobody knows": (
        vcjob("a", task(fate=runs()), priorityClassName="top"),
        "a: worker-0 could not be created yet: "
        'pods "a-worker-0" is forbidden: no PriorityClass with name top was found',
    ),
    "a claim somebody has to make": (
        vcjob("a", task(fate=runs()), volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]),
        "a: The job waits for the PersistentVolumeClaim data: create it",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_pod_that_cannot_be_created_is_reported_once(case: str) -> None:
    manifest, word = CASES[case]
    out = StringIO()
    lines = LineDisplay(Console(file=out, width=200), logs=True)
    async with SimulatedVolcano() as world:
        await world.submit(manifest)
        found = FoundJob(await world.user.get(world.dialect.kind, "a", NAMESPACE), world.dialect)
        follower = Follower(world.user, [found], on_create_failure=lines.create_failure)
        following = asyncio.create_task(follower.run())
        await world.until(lambda: word in out.getvalue())
        await world.rest(60)  # in which it is tried again and again
        await stop(world.user, found)
        await world.until(following.done)
    assert [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in out.getvalue().splitlines()] == [word]
