"""Acceptance scenarios 37 to 41: the operator dies, objects vanish unseen, and old Frameworks go."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, holding, runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.cluster.client import DeleteOptions
from shoal.cluster.fault_injection import Call, FaultTiming
from shoal.kube.kinds import POD
from shoal.kube.objects import uid_of


@scenario()
async def test_scenario_37_controller_restart_while_running(world: Any) -> None:
    with holding() as hold:
        ends = exits(0, after=20, held=hold)
        await world.submit(fw("lives", role("worker", 2, -1, -1, of={1: ends}, fate=runs())))
        await world.running("lives", 2)
        before, pods = deepcopy(world.status("lives")), deepcopy(dict(world.uids))
        await world.restart_operator()
        await world.rest(5)
        if not world.is_disturbed and not world.is_real:
            assert world.status("lives") == before
        await world.kill_operator()
    if not world.is_real:
        await world.rest(60)  # task 1 ends meanwhile
    started = world.start_operator()
    if started is not None:
        await started
    await world.until(lambda: world.task("lives", 1)["state"] == "Completed")
    assert (world.codes("lives"), world.state("lives")) == ([None, 0], "AttemptRunning")
    assert (dict(world.uids), world.attempt("lives")["id"]) == (pods, 0)
    assert world.task("lives", 1)["attemptStatus"]["id"] == 0


@scenario(real=False)
async def test_scenario_38_crash_between_create_and_record(world: SimulatedWorld) -> None:
    created: list[int] = []

    def right_after_the_pod(call: Call) -> bool:
        if (call.verb, call.kind) == ("create", POD):
            created.append(call.number)
        return bool(created) and (call.verb, call.kind) == ("patch", FRAMEWORK)

    world.lives[-1].faults.kill(right_after_the_pod, when=FaultTiming.BEFORE)
    await world.submit(fw("crash", role("worker", fate=runs())))
    await world.running("crash", 1)
    task = world.task("crash")
    assert (task["attemptStatus"]["id"], task["retryPolicyStatus"]["totalRetriedCount"]) == (0, 0)
    assert task["attemptStatus"]["podUID"] == uid_of(world.pods["crash-worker-0"])
    assert world.is_disturbed or len(world.uids["crash-worker-0"]) == 1
    assert list(world.pods) == ["crash-worker-0"]


@scenario(real=False)
async def test_scenario_39_restart_during_completion(world: SimulatedWorld) -> None:
    for name, state in (
        ("pending", "AttemptDeletionPending"),
        ("asked", "AttemptDeletionRequested"),
        ("leaving", "AttemptDeleting"),
    ):
        await world.submit(fw(name, role("worker", 2, fate=runs(leaves_after=3)), retry=(True, 3)))
        await world.running(name, 2)
        seen: list[str] = []

        def reached(_: Call, name: str = name, state: str = state, seen: list[str] = seen) -> bool:
            found = not seen and world.state(name) == state
            seen.extend([state] * found)
            return found

        world.lives[-1].faults.kill(reached, when=FaultTiming.AFTER)
        await world.set(name, executionType="Stop")
        await world.completed(name)
        assert (world.code(name), world.codes(name), world.attempt(name)["id"]) == (-210, [-220, -220], 0)


# Where the operator dies before it has recorded the pod, there is no attempt that could time out.
@scenario(real=False, config={"objectLocalCacheCreationTimeoutSec": 10}, varies=("id", "totalRetriedCount"))
async def test_scenario_40_creation_timeout(world: SimulatedWorld) -> None:
    await world.submit(fw("unseen", role("worker", retry=(True, 0), fate=exits(0))))
    world.machinery.store.observers.append(lambda *_: _hide_first(world))
    await world.until(lambda: bool(world.hidden))
    now = DeleteOptions(grace_seconds=0)
    await world.user.delete(POD, "unseen-worker-0", NAMESPACE, now)
    await world.completed("unseen")
    codes = {
        task["attemptStatus"]["completionStatus"]["code"]
        for status in world.statuses["unseen"]
        for task in status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]
        if task["attemptStatus"]["id"] == 0 and task["attemptStatus"]["completionStatus"]
    }
    if not world.is_disturbed:
        assert codes == {-111}
        assert world.task("unseen")["retryPolicyStatus"]["totalRetriedCount"] == 1
    assert (world.code("unseen"), world.task("unseen")["retryPolicyStatus"]["accountableRetriedCount"]) == (0, 0)


def _hide_first(world: SimulatedWorld) -> None:
    """Whatever happens to the first pod, the operator's watches are silent about it."""
    if uids := world.uids.get("unseen-worker-0"):
        world.hidden.add(uids[0])


@scenario(config={"frameworkCompletedRetainSec": 5})
async def test_scenario_41_retention(world: Any) -> None:
    await world.submit(fw("old", role("worker", fate=exits(0))))
    await world.completed("old")
    if not world.is_real:
        await world.rest(3)
        assert world.is_disturbed or "old" in world.frameworks
    await world.until(lambda: "old" not in world.frameworks)
    assert (world.pods, world.config_maps) == ({}, {})
