"""Acceptance scenarios of Volcano Jobs: how they end, and what stays (21 to 23, 35)."""

from __future__ import annotations

from kit.pod_behavior import exits, runs
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import SimulatedVolcano, VolcanoWorld, scenario


@scenario(kubernetes=True)
async def test_21_enough_successes_complete_a_job_and_end_the_others(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(replicas=5, fate=exits(0)), task("redis", fate=runs()), minSuccess=5))
    await world.in_phase("a", "Completed")
    await world.until(lambda: "a-redis-0" not in world.pods)
    await world.rest(10)
    assert world.pods_of("a") == {f"a-worker-{index}": "Succeeded" for index in range(5)}
    assert world.counts("a") == {"succeeded": 5}
    assert world.groups == {}


@scenario()
async def test_22_minima_decide_when_all_have_ended(world: VolcanoWorld) -> None:
    await world.submit(vcjob("all", task(replicas=4, of={3: exits(1)})))
    await world.in_phase("all", "Failed")
    assert world.counts("all") == {"succeeded": 3, "failed": 1}
    await world.submit(vcjob("most", task(replicas=4, least=0, of={3: exits(1)}), minAvailable=3))
    await world.in_phase("most", "Completed")
    assert world.counts("most") == {"succeeded": 3, "failed": 1}


@scenario(real=False)
async def test_23_an_ended_job_lives_for_its_time_and_an_aborted_one_goes_on(world: SimulatedVolcano) -> None:
    await world.submit(vcjob("a", task(), plugins={"svc": []}, ttlSecondsAfterFinished=5))
    await world.in_phase("a", "Completed")
    ended = world.cluster.clock.now()
    await world.until(lambda: "a" not in world.frameworks)
    assert 4 <= (world.cluster.clock.now() - ended).total_seconds() <= 10
    await world.until(lambda: not world.pods and not world.services)

    await world.submit(vcjob("b", task(fate=runs()), ttlSecondsAfterFinished=5))
    await world.up("b", 1)
    await world.command("b", "AbortJob")
    await world.in_phase("b", "Aborted")
    await world.rest(30)
    assert world.phase("b") == "Aborted"


@scenario(kubernetes=True)
async def test_35_a_finished_pod_that_vanishes_is_not_run_again(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task("short", fate=exits(0)), task(fate=runs())))
    await world.until(lambda: world.counts("a") == {"running": 1, "succeeded": 1})
    await world.delete_pod("a-short-0")
    await world.until(lambda: "a-short-0" not in world.pods)
    await world.rest(20)
    assert (world.counts("a"), len(world.uids["a-short-0"])) == ({"running": 1, "succeeded": 1}, 1)
