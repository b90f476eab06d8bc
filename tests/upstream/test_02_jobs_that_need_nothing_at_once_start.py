"""A PodGroup whose minMember is 0 is admitted, so that the Job behind it creates its pods."""

from __future__ import annotations

from kit.pod_behavior import runs
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import VolcanoWorld, scenario


@scenario()
async def test_02_a_job_with_min_available_0_runs_all_its_pods(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task("worker", 2, least=0, fate=runs()), minAvailable=0))
    await world.until(lambda: len(world.pods_of("a")) == 2)
    await world.until(lambda: world.counts("a").get("running") == 2)


@scenario()
async def test_02_a_job_created_with_0_replicas_grows(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task("worker", 0, least=0, fate=runs()), minAvailable=0))
    await world.until(lambda: bool(world.phase("a")))
    await world.resize("a", 2, least=0)
    await world.until(lambda: world.counts("a").get("running") == 2)


@scenario()
async def test_02_a_job_that_needs_nothing_is_suspended_and_resumed(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task("worker", 2, least=0, fate=runs()), minAvailable=0))
    await world.until(lambda: world.counts("a").get("running") == 2)
    await world.command("a", "AbortJob")
    await world.until(lambda: world.phase("a") == "Aborted")
    await world.command("a", "ResumeJob")
    await world.until(lambda: world.counts("a").get("running") == 2)
