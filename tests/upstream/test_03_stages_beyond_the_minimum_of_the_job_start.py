"""Stages of dependsOn start although the stages before them reach the job's `minAvailable` alone: the gang of such a
stage needs no pod at once."""

from __future__ import annotations

from kit.pod_behavior import runs
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import VolcanoWorld, scenario


@scenario()
async def test_03_a_stage_beyond_the_minimum_of_the_job_starts(world: VolcanoWorld) -> None:
    tasks = task("ps", 2, fate=runs()), task("worker", 2, after=["ps"], fate=runs())
    await world.submit(vcjob("a", *tasks, minAvailable=2))
    await world.until(lambda: world.counts("a").get("running") == 4)


@scenario()
async def test_03_three_stages_start_where_a_part_of_the_first_is_the_minimum(world: VolcanoWorld) -> None:
    tasks = (
        task("ps", 2, fate=runs()),
        task("worker", 2, after=["ps"], fate=runs()),
        task("evaluator", 1, after=["worker"], fate=runs()),
    )
    await world.submit(vcjob("a", *tasks, minAvailable=1))
    await world.until(lambda: world.counts("a").get("running") == 5)
