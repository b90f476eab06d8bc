"""Tasks and jobs that may be retried for ever, and a cluster that refuses them for ever: they ask ever more rarely."""

from __future__ import annotations

from typing import Any

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.scenario import NAMESPACE, SimulatedWorld
from shoal.cluster.client import DeleteOptions, DeletionPropagation, PatchType
from shoal.cluster.fault_injection import FaultTiming, calls
from shoal.engine import Step
from shoal.kube.errors import ApiError, forbidden
from shoal.kube.kinds import CONFIG_MAP, EVENT, POD
from shoal.kube.objects import Key

FOR_EVER = (False, -1)
NEVER = (False, 0)


@pytest.mark.parametrize(
    ("of_task", "of_job", "refusal"),
    [
        pytest.param(FOR_EVER, NEVER, forbidden(POD, "one-worker-0", "denied by policy"), id="a-task"),
        pytest.param(NEVER, FOR_EVER, ApiError(422, "Invalid", "Pod is invalid"), id="a-job"),
    ],
)
async def test_a_refusal_slows_down_the_attempts_that_follow(
    of_task: tuple[bool, int], of_job: tuple[bool, int], refusal: ApiError
) -> None:
    async with SimulatedWorld(0) as world:
        world.pod_refusal = refusal
        await world.submit(fw("one", role("worker", 1, retry=of_task, fate=runs()), retry=of_job))
        await world.rest(300)
        refused = sum(call.verb == "create" and call.kind == POD for life in world.lives for call in life.calls)
        assert 10 < refused < 30  # 0.05 s, then twice as long each time, to a minute
        world.pod_refusal = None
        await world.until(lambda: world.are_running("one", 1))


def asked(world: SimulatedWorld) -> int:
    return sum((call.verb, call.kind) == ("create", POD) for life in world.lives for call in life.calls)


async def told(world: SimulatedWorld, reason: str) -> list[str]:
    events = (await world.user.list(EVENT, NAMESPACE)).items
    return [event["message"] for event in events if event["reason"] == reason]


async def test_a_full_quota_is_asked_once_for_all_tasks_of_a_role() -> None:
    async with SimulatedWorld(0) as world:
        world.pod_refusal = forbidden(POD, "many-worker-0", "exceeded quota: pods=0")
        await world.submit(fw("many", role("worker", 500, retry=NEVER, fate=runs()), role("other", 2, fate=runs())))
        await world.rest(300)
        assert asked(world) < 60  # each role alone: 0.05 s, then twice as long each time, to a minute
        assert {task["state"] for task in world.tasks("many")} == {"AttemptCreationPending"}
        assert set(await told(world, "CreatesWithheld")) == {
            f"Pods not created, because the API server rejected worker-0: worker-1 to worker-499. "
            f"{world.pod_refusal.message}",
            f"Pods not created, because the API server rejected other-0: other-1. {world.pod_refusal.message}",
        }
        world.pod_refusal = None
        await world.until(lambda: world.are_running("many", 500))


async def test_where_nobody_may_make_such_a_pod_the_first_refusal_may_end_the_job() -> None:
    async with SimulatedWorld(0) as world:
        world.pod_refusal = forbidden(POD, "many-worker-0", "denied by policy")
        await world.submit(fw("many", role("worker", 500, retry=NEVER)))
        await world.completed("many")
        assert (asked(world), world.code("many"), world.codes("many")) == (1, -310, [-310, *[-220] * 499])


async def test_where_it_does_not_end_the_job_every_task_gets_its_own_answer() -> None:
    async with SimulatedWorld(0) as world:
        world.pod_refusal = forbidden(POD, "many-worker-0", "denied by policy")
        await world.submit(fw("many", role("worker", 50, -1, -1, retry=NEVER)))
        await world.completed("many")
        assert (asked(world), world.code("many"), world.codes("many")) == (50, 0, [-310] * 50)


async def test_what_became_of_an_attempt_is_nothing_to_the_next_one_though_an_answer_got_lost() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("one", role("worker", 8, retry=NEVER, fate=runs()), retry=(True, 0), start="Create"))
        await world.until(lambda: world.state("one") == "AttemptCreationPending")
        faults, is_taken = world.lives[-1].faults, False

        def take_the_anchor_away(call: object) -> bool:
            """As the first pod is made; and the operator never hears whether its next ledger was stored."""
            nonlocal is_taken
            if calls("create", POD)(call) and not is_taken:  # type: ignore[arg-type]
                is_taken, anchor = True, Key(NAMESPACE, "one-attempt")
                bare = [{"op": "replace", "path": "/metadata/finalizers", "value": []}]
                world.machinery.patch(CONFIG_MAP, anchor, bare, PatchType.JSON)
                world.machinery.delete(CONFIG_MAP, anchor, DeleteOptions(propagation=DeletionPropagation.BACKGROUND))
                faults.lose_response(lambda later: later.kind.kind == "Framework" and later.is_write)
            return False

        faults.fail(take_the_anchor_away, when=FaultTiming.AFTER, times=None)
        await world.set("one", executionType="Start")
        await world.until(lambda: world.are_running("one", 8))
        assert world.attempt("one")["id"] == 1
        told = [
            task["attemptStatus"]["podUID"]
            for each in world.attempt("one")["taskRoleStatuses"]
            for task in each["taskStatuses"]
        ]
        assert told == [world.uids[f"one-worker-{index}"][-1] for index in range(8)]


async def test_a_pause_that_ends_during_the_pass_is_not_forgotten() -> None:
    async with SimulatedWorld(0) as world:
        engine = world.loop.advance

        def slow(*asked: Any) -> Step:
            step = engine(*asked)
            world.cluster.clock.advance(0.2)  # longer than the first pause
            return step

        world.loop.advance = slow
        world.pod_refusal = forbidden(POD, "one-worker-0", "exceeded quota: pods=0")
        await world.submit(fw("one", role("worker", 1, fate=runs())))
        await world.until(lambda: asked(world) > 0)
        world.pod_refusal = None
        await world.running("one", 1)
