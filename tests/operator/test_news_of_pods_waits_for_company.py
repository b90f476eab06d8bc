"""On a cluster far away news of pods gathers for a moment, so that what happens together is one write."""

from __future__ import annotations

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import exits
from kit.scenario import SimulatedWorld

STARTS = ["patch Framework", "create ConfigMap", *["create Pod"] * 3]
RUNS, RECORDED = ["patch Framework"], "patch Framework"
LAST = [RECORDED, "delete ConfigMap", RECORDED, "create Event"]
ENDS = {
    0.1: [RECORDED, *["delete Pod"] * 3],
    0.0: [RECORDED, "delete Pod", RECORDED, RECORDED, "delete Pod", RECORDED, RECORDED, "delete Pod"],
}


def writes(world: SimulatedWorld) -> list[str]:
    return [f"{call.verb} {call.kind.kind}" for life in world.lives for call in life.calls if call.is_write]


@pytest.mark.parametrize("coalesce_seconds", ENDS)
async def test_tasks_that_end_one_after_another_are_recorded_together(coalesce_seconds: float) -> None:
    world = SimulatedWorld(0)
    world.coalesce_seconds = coalesce_seconds
    async with world:
        ends = {index: exits(0, after=5 + index * 0.04) for index in range(3)}
        await world.submit(fw("three", role("worker", 3, of=ends)))
        await world.completed("three")
        await world.rest(1)
        assert writes(world) == [*STARTS, *RUNS, *ENDS[coalesce_seconds], *LAST]


@pytest.mark.parametrize(("coalesce_seconds", "records"), [(0.1, 1), (0.0, 2)])
async def test_while_tasks_are_starting_their_record_waits_for_them(coalesce_seconds: float, records: int) -> None:
    world = SimulatedWorld(0)
    world.coalesce_seconds = coalesce_seconds
    world.kubelet.step_seconds = 0.25  # until it is placed, and again until it runs
    async with world:
        await world.submit(fw("slow", role("worker", 3, fate=exits(0, after=60))))
        await world.running("slow", 3)
        await world.rest(5)
        assert writes(world) == [*STARTS, *RUNS * records]
