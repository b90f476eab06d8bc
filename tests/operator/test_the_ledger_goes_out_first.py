"""What the loop owes the engine: the ledger before everything else, and every answer in the next pass."""

from __future__ import annotations

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.cluster.client import DeleteOptions
from shoal.cluster.fault_injection import Call, calls
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD


def order(world: SimulatedWorld) -> list[str]:
    """The writes of the operator."""
    return [f"{call.verb} {call.kind.kind}" for life in world.lives for call in life.calls if call.is_write]


async def test_a_job_of_one_task_that_runs_on_costs_ten_writes() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("one", role("worker", fate=exits(0, after=60))))
        await world.completed("one")
        await world.rest(1)
        ledger = "patch Framework"
        assert order(world) == [
            ledger, "create ConfigMap", "create Pod",  # recorded, then made
            ledger,  # both are known, and the pod runs
            ledger, "delete Pod",
            ledger, "delete ConfigMap",
            ledger, "create Event",
        ]  # fmt: skip


async def test_a_pod_that_is_over_at_once_is_recorded_once() -> None:
    async with SimulatedWorld(0) as world:
        world.kubelet.step_seconds = 0.01
        await world.submit(fw("one", role("worker", fate=exits(0, after=0.01))))
        await world.completed("one")
        await world.rest(1)
        ledger = "patch Framework"
        assert order(world) == [
            ledger, "create ConfigMap", "create Pod",
            ledger, "delete Pod",
            ledger, "delete ConfigMap",
            ledger, "create Event",
        ]  # fmt: skip


async def test_a_pod_whose_record_waits_outlives_an_edit() -> None:
    """The user's patch makes the waiting ledger fail: the pod that was just made must not be taken for a stray."""
    async with SimulatedWorld(0) as world:
        await world.submit(fw("one", role("worker", 1, fate=runs())))
        await world.until(lambda: "one-worker-0" in world.pods)
        assert world.task("one")["attemptStatus"]["podUID"] is None
        await world.rescale("one", 2)
        await world.running("one", 2)
        assert {name: len(uids) for name, uids in world.uids.items()} == {"one-worker-0": 1, "one-worker-1": 1}


async def test_a_pod_whose_record_waits_is_never_given_to_the_next_attempt() -> None:
    """It vanishes before it is recorded, and the answer of the ledger that says so gets lost."""
    async with SimulatedWorld(0) as world:
        await world.submit(fw("one", role("worker", 1, retry=(True, 0), fate=runs())))
        await world.until(lambda: "one-worker-0" in world.pods)
        world.lives[-1].faults.lose_response(calls("patch", FRAMEWORK))
        await world.user.delete(POD, "one-worker-0", NAMESPACE, DeleteOptions(grace_seconds=0))
        await world.running("one", 1)
        task = world.task("one")
        assert (task["attemptStatus"]["id"], task["attemptStatus"]["podUID"]) == (1, world.uids["one-worker-0"][1])


async def test_where_the_ledger_cannot_be_stored_nothing_else_is_written() -> None:
    async with SimulatedWorld(0) as world:
        world.lives[-1].faults.fail(calls("patch", FRAMEWORK), times=None)
        await world.submit(fw("one", role("worker")))
        await world.rest(300)
        assert set(order(world)) == {"patch Framework"}


async def test_a_spec_edited_under_a_pass_is_read_again() -> None:
    """The user's patch lands between the operator's look and its write: the write must not go through."""
    async with SimulatedWorld(0) as world:
        await world.submit(fw("one", role("worker", 1, fate=runs()), start="Create"))
        await world.until(lambda: world.state("one") == "AttemptCreationPending")
        stored = dict(world.frameworks["one"])

        def edited(call: Call) -> bool:
            """As the operator is about to write, somebody else does."""
            if (call.verb, call.kind) == ("patch", FRAMEWORK) and not seen:
                seen.append(call)
                scaled = [{"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": 3}]
                from shoal.cluster.client import PatchType
                from shoal.kube.objects import key_of

                world.machinery.patch(FRAMEWORK, key_of(stored), scaled, PatchType.JSON)
            return False

        seen: list[Call] = []
        world.lives[-1].faults.fail(edited, times=None)
        await world.set("one", taskRoles__0__taskNumber=2)
        await world.until(lambda: len(world.tasks("one")) == 3)
        assert seen


async def test_a_refusal_of_one_does_not_keep_the_others_from_starting() -> None:
    async with SimulatedWorld(0) as world:
        refusal = ApiError(500, "InternalError", "the webhook that looks at this one is down")
        world.lives[-1].faults.fail(calls("create", POD, "all-worker-1"), refusal, times=8)
        await world.submit(fw("all", role("worker", 4, fate=runs())))
        await world.until(lambda: world.are_running("all", 3))
        await world.running("all", 4)
        tries = [call for call in world.lives[-1].calls if call.verb == "create" and call.name == "all-worker-1"]
        assert (len(tries), world.task("all", 1)["attemptStatus"]["id"]) == (9, 0)


async def test_each_pod_that_is_made_makes_room_for_one_more() -> None:
    async with SimulatedWorld(0) as world:
        at_once: list[int] = []
        flying = 0

        def count(call: Call) -> bool:
            nonlocal flying
            if (call.verb, call.kind) == ("create", POD):
                flying += 1
            return False

        def landed(call: Call) -> bool:
            nonlocal flying
            if (call.verb, call.kind) == ("create", POD):
                at_once.append(flying)
                flying -= 1
            return False

        from shoal.cluster.fault_injection import FaultTiming

        world.lives[-1].faults.fail(count, times=None)
        world.lives[-1].faults.fail(landed, when=FaultTiming.AFTER, times=None)
        await world.submit(fw("many", role("worker", 15, fate=runs())))
        await world.running("many", 15)
        assert at_once == [1, 2, 2, 4, 4, 4, 7, 7, 7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("how", ["lost", "failed"])
async def test_a_create_whose_fate_is_unknown_is_never_doubled(how: str) -> None:
    async with SimulatedWorld(0) as world:
        which = calls("create", POD)
        faults = world.lives[-1].faults
        faults.lose_response(which) if how == "lost" else faults.fail(which)
        await world.submit(fw("one", role("worker", fate=runs())))
        await world.running("one", 1)
        assert list(world.pods) == ["one-worker-0"]
        assert world.task("one")["attemptStatus"]["id"] == 0
