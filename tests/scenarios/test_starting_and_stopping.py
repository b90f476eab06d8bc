"""Acceptance scenarios 13 to 16: Create, Start and Stop."""

from __future__ import annotations

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.scenario import World

ALWAYS_600 = {
    "frameworkMinRetryDelaySecForTransientConflictFailed": 600,
    "frameworkMaxRetryDelaySecForTransientConflictFailed": 600,
}


def rests_uncreated(world: World, name: str) -> bool:
    status = world.status(name)
    return status.get("state") == "AttemptCreationPending" and status["attemptStatus"]["configMapUID"] is None


@scenario()
async def test_scenario_13_create_without_start(world: World) -> None:
    await world.submit(fw("later", role("worker", 2, fate=exits(0)), start="Create"))
    await world.until(lambda: rests_uncreated(world, "later"))
    await world.rest(30)
    assert rests_uncreated(world, "later")
    assert (world.uids, world.anchors) == ({}, {})
    await world.set("later", executionType="Start")
    await world.completed("later")
    assert (world.code("later"), world.codes("later")) == (0, [0, 0])


@scenario()
async def test_scenario_14_create_then_stop(world: World) -> None:
    await world.submit(fw("never", role("worker", 2, fate=exits(0)), start="Create"))
    await world.until(lambda: rests_uncreated(world, "never"))
    await world.set("never", executionType="Stop")
    await world.completed("never")
    assert (world.code("never"), world.attempt("never")["instanceUID"]) == (-210, None)
    assert world.codes("never") == [-220, -220]
    assert [task["attemptStatus"]["podUID"] for task in world.tasks("never")] == [None, None]
    assert [task["state"] for task in world.tasks("never")] == ["Completed", "Completed"]
    assert (world.uids, world.anchors) == ({}, {})


@scenario()
async def test_scenario_15_stop_while_running(world: World) -> None:
    await world.submit(fw("long", role("worker", 4, retry=(False, -2), fate=runs()), retry=(False, -2)))
    await world.running("long", 4)
    await world.set("long", executionType="Stop")
    status = await world.completed("long")
    assert status["attemptStatus"]["completionStatus"] == {
        "code": -210,
        "phrase": "StopFrameworkRequested",
        "type": {"name": "Failed", "attributes": ["Permanent"]},
        "diagnostics": "User has requested to stop the Framework",
    }
    assert (status["attemptStatus"]["id"], world.codes("long")) == (0, [-220] * 4)
    await world.rest(60)
    assert "long" in world.frameworks


@scenario(config=ALWAYS_600)
async def test_scenario_16_stop_during_retry_delay(world: World) -> None:
    await world.submit(fw("waits", role("worker", fate=exits(201)), retry=(True, 1)))
    await world.until(lambda: world.status("waits").get("retryPolicyStatus", {}).get("retryDelaySec") == 600)
    assert world.state("waits") == "AttemptCompleted"
    anchors = len(world.anchors["waits-attempt"])
    await world.set("waits", executionType="Stop")
    status = await world.completed("waits")
    assert (status["attemptStatus"]["id"], world.code("waits")) == (1, -210)
    assert status["retryPolicyStatus"] == {
        "totalRetriedCount": 1, "accountableRetriedCount": 0, "retryDelaySec": None,
    }  # fmt: skip
    assert len(world.anchors["waits-attempt"]) == anchors
