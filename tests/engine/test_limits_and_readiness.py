"""Levels over living bodies: restarts in place, sidecars that run on, being ready and falling back from it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as with_

from kit.engine_jobs import FAILED
from kit.engine_world import World, started
from shoal.engine import ContainerState, FailureClass, Job, Policies, Role, Stage, Trigger
from shoal.engine.policies import (
    ALL,
    Bound,
    BudgetScope,
    BudgetUnit,
    Completion,
    CompletionRule,
    CountCondition,
    DecisiveContainer,
    FailurePolicy,
    FailureRule,
    PodEndPolicy,
    Ready,
    Retry,
    RetryBudget,
    Tally,
    WhenEmpty,
)


def job(size: int = 3, *, minimum: int | None = None, **policies: object) -> Job:
    role = Role("w", size, minimum=minimum, retry=Retry.from_letters("dcddf"))
    return Job("u", "j", (role,), Policies(**policies))


def restarted(world: World, name: str, times: int, code: int = 0) -> None:
    world.pods[name] = with_(world.pods[name], containers=(ContainerState("python", restarts=times, last_code=code),))


@pytest.mark.parametrize(("restarts", "ends"), [((1, 1), False), ((2, 1), True)], ids=["permitted", "too many"])
def test_restarts_in_place_beyond_the_budget_fail_the_job(restarts: tuple[int, int], ends: bool):
    budget = RetryBudget(BudgetUnit.CONTAINERS, BudgetScope.JOB, 2, when_empty=WhenEmpty.FAIL, outcome=FAILED)
    world = started(job(2, budgets=(budget,)))
    for index, times in enumerate(restarts):
        restarted(world, f"w-{index}", times)
    world.settle()

    assert world.state.is_ended is ends
    assert world.state.charges == {}


def test_the_job_takes_the_code_of_whoever_restarted_most_often():
    budget = RetryBudget(BudgetUnit.CONTAINERS, BudgetScope.JOB, 2, when_empty=WhenEmpty.FAIL, outcome=FAILED)
    world = started(job(2, budgets=(budget,)))
    restarted(world, "w-0", 1, code=3)
    restarted(world, "w-1", 2, code=9)
    world.settle()

    assert world.state.run.outcome == FAILED.blaming(Trigger("w", 1, "w-1 restarted 2 times"), 9)


@pytest.mark.parametrize(
    ("in_place", "code", "expected"),
    [(False, 137, "preparing 1"), (False, 1, "done 0 1"), (True, 137, "running 0"), (False, 0, "running 0")],
    ids=["transient", "other", "the kubelet restarts it", "it succeeded"],
)
def test_a_judged_container_may_end_while_a_sidecar_runs_on(in_place: bool, code: int, expected: str):
    ending = PodEndPolicy(decisive_container=DecisiveContainer.NAMED, container="python", while_running=True)
    rules = (FailureRule(FailureClass.TRANSIENT, codes=frozenset({137})), FailureRule(FailureClass.PERMANENT))
    world = started(job(1, pod_end=ending, classify=FailurePolicy(rules)))
    containers = (ContainerState("python", code=code), ContainerState("side"))
    world.pods["w-0"] = with_(world.pods["w-0"], containers=containers, restarts_in_place=in_place)
    world.settle()

    assert world.story() == {"w-0": expected}


def test_a_job_is_ready_with_its_minimum_and_may_fall_back():
    ready = Ready((CountCondition(Tally.RUNNING, "w", at_least=Bound.MIN),), sticky=False)
    world = World(job(3, minimum=2, ready=ready))
    world.settle()
    stages = []
    for names in (["w-0"], ["w-1"]):
        world.run(*names)
        world.settle()
        stages.append(world.state.run.stage)
    del world.pods["w-0"]
    world.settle()

    assert [*stages, world.state.run.stage] == [Stage.PREPARING, Stage.RUNNING, Stage.PREPARING]
    assert world.state.run.ran is not None


def test_a_job_that_can_no_longer_reach_its_minimum_fails():
    too_few = CompletionRule((CountCondition(Tally.ABLE, "w", below=Bound.MIN),), FAILED)
    world = started(job(3, minimum=2, completion=Completion((too_few,))))
    world.exits("w-0", 1)
    world.settle()
    assert not world.state.is_ended
    world.exits("w-1", 1)
    world.settle()

    assert world.state.run.outcome == FAILED


def test_a_claim_on_the_size_of_nothing_never_holds():
    done = CompletionRule((CountCondition(Tally.DONE, ALL, Bound.SIZE),), FAILED)
    world = started(job(0, completion=Completion((done,))))

    assert world.state.run.is_open
