"""Acceptance scenarios of Volcano Jobs: Commands (18 to 20)."""

from __future__ import annotations

from kit.pod_behavior import exits, runs
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import VolcanoWorld, scenario


@scenario(thorough=True, kubernetes=True)
async def test_18_a_job_is_suspended_and_resumed_without_losing_its_retries(world: VolcanoWorld) -> None:
    tasks = task(replicas=2, fate=runs()), task("done", fate=exits(0))
    await world.submit(vcjob("a", *tasks))
    await world.until(lambda: world.counts("a") == {"running": 2, "succeeded": 1})
    rounds = 1 if world.is_disturbed else 5
    for _ in range(rounds):
        await world.command("a", "AbortJob")
        await world.in_phase("a", "Aborted")
        assert world.pods_of("a") == {"a-done-0": "Succeeded"}
        await world.until(lambda: not world.commands)
        assert world.groups == {}
        await world.command("a", "ResumeJob")
        await world.until(lambda: world.phase("a") == "Running" and world.counts("a") == {"running": 2, "succeeded": 1})
        await world.until(lambda: not world.commands)
    assert world.status("a").get("retryCount", 0) == 0
    assert len(world.uids["a-done-0"]) == 1
    if not world.is_disturbed:
        assert world.phases("a")[-6:] == ["Running", "Aborting", "Aborted", "Restarting", "Pending", "Running"]


@scenario()
async def test_a_job_that_a_failure_aborted_runs_again_when_it_is_resumed(world: VolcanoWorld) -> None:
    tasks = task("flaky", in_runs={0: exits(7)}, fate=runs()), task(fate=runs())
    await world.submit(vcjob("a", *tasks, policies=[policy("PodFailed", "AbortJob")]))
    await world.in_phase("a", "Aborted")
    assert world.pods_of("a") == {"a-flaky-0": "Failed"}
    await world.command("a", "ResumeJob")
    await world.until(lambda: world.phase("a") == "Running" and world.counts("a") == {"running": 2})
    assert len(world.uids["a-flaky-0"]) == 2


@scenario()
async def test_19_two_orders_to_suspend_are_consumed_once_each(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(replicas=2, fate=runs())))
    await world.up("a", 2)
    await world.command("a", "AbortJob")
    await world.command("a", "AbortJob")
    await world.in_phase("a", "Aborted")
    await world.until(lambda: not world.commands)
    await world.rest(10)
    assert (world.phase("a"), world.pods_of("a"), world.status("a")["version"]) == ("Aborted", {}, 1)


@scenario()
async def test_20_terminate_ends_a_job_in_any_phase_and_for_good(world: VolcanoWorld) -> None:
    await world.submit(vcjob("running", task(fate=runs())))
    await world.up("running", 1)
    await world.command("running", "TerminateJob")
    await world.in_phase("running", "Terminated")

    await world.submit(vcjob("held", task(fate=runs())))
    await world.up("held", 1)
    await world.command("held", "AbortJob")
    await world.in_phase("held", "Aborted")
    await world.command("held", "TerminateJob")
    await world.in_phase("held", "Terminated")

    await world.submit(vcjob("again", task(fate=runs(leaves_after=3)), policies=[policy("PodEvicted", "RestartJob")]))
    await world.up("again", 1)
    await world.command("again", "RestartJob")
    await world.in_phase("again", "Restarting")
    await world.command("again", "TerminateJob")
    await world.in_phase("again", "Terminated")

    for name in ("running", "held", "again"):
        await world.command(name, "ResumeJob")
    await world.until(lambda: not world.commands)
    await world.rest(10)
    assert {name: world.phase(name) for name in world.frameworks} == {
        "running": "Terminated",
        "held": "Terminated",
        "again": "Terminated",
    }
    assert world.pods == {}


@scenario(real=False)
async def test_orders_nobody_understands_are_refused_with_an_event(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(fate=runs())))
    await world.up("a", 1)
    await world.command("a", "FlyAway")
    await world.until(lambda: not world.commands)
    assert world.phase("a") == "Running"
    if not world.is_disturbed:  # an operator that dies in time tells nobody
        assert "CommandUnknown" in world.reasons("a")
