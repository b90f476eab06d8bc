"""Clients recognize a restart by a status that is Restarting and counts the pods that go as terminating."""

from __future__ import annotations

from kit.pod_behavior import exits, runs
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import SimulatedVolcano, scenario


@scenario(real=False)
async def test_13_a_failed_pod_that_is_restarted_counts_as_terminating(world: SimulatedVolcano) -> None:
    failing = task("failing", policies=[policy("PodFailed", "RestartPod")], fate=exits(1))
    await world.submit(vcjob("a", task(fate=runs()), failing, maxRetry=2))
    await world.in_phase("a", "Failed")
    if world.is_disturbed:
        return  # a killed operator may miss the moment
    restarting = [each for each in world.statuses["a"] if each["state"]["phase"] == "Restarting"]
    assert restarting[0].get("terminating") == 1
    assert not restarting[0].get("failed")
