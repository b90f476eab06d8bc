"""An operator is killed after it created objects and before it stored their uids; the pods run on and end meanwhile.

The disturbed scenarios did not show this fault, for two reasons. A killed operator was replaced at the same virtual
moment, so no process started or ended between the two; and a run that replaced a finished pod ends in the same status
as an undisturbed one, because the replacement is what went uncounted. The scenarios now leave a pause after a kill
(`kit.fault_matrix.OUTAGE_SECONDS`) and count the pods that ran per attempt (`kit.scenario_invariants`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.scenario import FRAMEWORK, SimulatedWorld
from shoal.cluster.fault_injection import Call, FaultTiming
from shoal.kube.kinds import CONFIG_MAP, POD


def first_state_write_after(kind: object) -> Callable[[Call], bool]:
    """The first write of a Framework's status after an object of the kind was created."""
    created: list[int] = []

    def which(call: Call) -> bool:
        if (call.verb, call.kind) == ("create", kind):
            created.append(call.number)
        return bool(created) and (call.verb, call.kind) == ("patch", FRAMEWORK)

    return which


@pytest.mark.parametrize("kind", [CONFIG_MAP, POD], ids=["its ConfigMap", "its pods"])
@pytest.mark.parametrize("code", [0, 1], ids=["succeeds", "fails"])
async def test_09_a_pod_that_ended_during_an_outage_is_not_run_again_uncounted(kind: object, code: int):
    async with SimulatedWorld() as world:
        world.outage_seconds = 30
        world.lives[-1].faults.kill(first_state_write_after(kind), when=FaultTiming.BEFORE)
        await world.submit(fw("crash", role("worker", 2, fate=exits(code, after=1))))
        status = await world.completed("crash")

        assert status["attemptStatus"]["completionStatus"]["code"] == code
        assert {name: len(uids) for name, uids in world.uids.items()} == {"crash-worker-0": 1, "crash-worker-1": 1}
        assert len(world.anchors["crash-attempt"]) == 1


async def test_09_a_pod_that_runs_through_an_outage_is_not_restarted():
    async with SimulatedWorld() as world:
        world.outage_seconds = 30
        world.lives[-1].faults.kill(first_state_write_after(POD), when=FaultTiming.BEFORE)
        await world.submit(fw("crash", role("worker", 1, fate=runs())))
        await world.running("crash", 1)

        assert world.uids["crash-worker-0"] == [world.task("crash")["attemptStatus"]["podUID"]]


async def test_09_a_pod_deleted_during_an_outage_costs_an_attempt():
    async with SimulatedWorld() as world:
        world.outage_seconds = 30
        world.lives[-1].faults.kill(first_state_write_after(POD), when=FaultTiming.BEFORE)
        fate = runs(leaves_after=40)
        await world.submit(fw("crash", role("worker", 1, retry=(True, 1), fate=fate)))
        await world.until(lambda: "crash-worker-0" in world.pods and bool(world.kubelet.running))
        await world.delete_pod("crash-worker-0")
        await world.until(lambda: world.are_running("crash", 1) and len(world.uids["crash-worker-0"]) == 2)

        assert world.task("crash")["retryPolicyStatus"]["totalRetriedCount"] == 1
