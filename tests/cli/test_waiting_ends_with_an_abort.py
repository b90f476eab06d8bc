"""Waiting for a job that its own policy holds ends with the reason, unless somebody has told the job to go on."""

from __future__ import annotations

import asyncio

from kit.native_world import SimulatedJobs, job
from kit.pod_behavior import exits
from kit.scenario import NAMESPACE, SimulatedWorld
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.cli.commands.wait import describe_result, is_aborted, wait_for_goal
from shoal.cli.job_actions import start, stop
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import exit_code_of

ABORTED = (
    "Job a is held: worker-0 ended with code 7. `shoal start a` resumes it without repeating tasks that have "
    "succeeded; `shoal stop a` ends it."
)


async def seen(world: SimulatedWorld) -> FoundJob:
    return FoundJob(await world.user.get(world.dialect.kind, "a", NAMESPACE), world.dialect)


async def aborted(world: SimulatedVolcano) -> FoundJob:
    server = task("server", fate=exits(0, after=100))
    worker = task(in_runs={0: exits(7)}, fate=exits(0))
    await world.submit(vcjob("a", server, worker, policies=[policy("PodFailed", "AbortJob")]))
    await world.in_phase("a", "Aborted")
    return await seen(world)


async def waited(world: SimulatedVolcano, job: FoundJob, *, is_stopped: bool = False) -> FoundJob:
    """To its end, or hold; where the operator is stopped, it starts again after the waiting has begun."""
    waiting = asyncio.create_task(wait_for_goal(world.user, job, "completed"))
    if is_stopped:
        await world.settle()
        await world.restart_operator()
    await world.until(waiting.done)
    found = waiting.result()
    assert found is not None
    return found


async def test_an_abort_ends_it_with_the_code_of_its_cause() -> None:
    async with SimulatedVolcano() as world:
        found = await waited(world, await aborted(world))
    assert (describe_result(found), exit_code_of(found.state)) == (ABORTED, 7)


async def test_a_job_that_is_about_to_resume_is_waited_for() -> None:
    async with SimulatedVolcano() as world:
        held = await aborted(world)
        await world.kill_operator()
        await start(world.user, held)
        found = await waited(world, held, is_stopped=True)
    assert (describe_result(found), exit_code_of(found.state)) == ("Job a has succeeded.", 0)


async def test_a_job_that_is_about_to_end_is_waited_for() -> None:
    async with SimulatedVolcano() as world:
        held = await aborted(world)
        await world.kill_operator()
        await stop(world.user, held)
        found = await waited(world, held, is_stopped=True)
    assert (describe_result(found), exit_code_of(found.state)) == ("Job a was stopped.", 1)


async def test_a_pause_that_the_file_asks_for_is_no_abort() -> None:
    async with SimulatedJobs() as world:
        await world.submit(job("a", suspend=True))
        await world.at_rest()
        paused = await seen(world)
    assert (paused.state.is_held, is_aborted(paused)) == (True, False)
