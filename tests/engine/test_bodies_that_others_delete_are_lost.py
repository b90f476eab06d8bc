"""A deletion nobody of us asked for: judged before the phase, once, and by the dialect's policy."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kit.engine_jobs import fc_role, framework, replica_set, t9
from kit.engine_world import started
from shoal.engine import PodPhase, Stage, TaskRef, Trigger
from shoal.engine.messages import CATALOG


def test_a_lost_body_is_replaced_only_once_it_is_gone():
    world = started(framework(fc_role("a", 2, task=(True, 0))))
    untouched, old = world.pods["a-0"].uid, world.pods["a-1"].uid
    world.leave("a-1")
    world.step()
    assert world.story()["a-1"] == "leaving 0 -101"
    world.settle(reap=False)
    assert world.pods["a-1"].uid == old

    world.settle()
    assert world.story() == {"a-0": "running 0", "a-1": "preparing 1"}
    assert (world.task("a", 1).charged, world.pods["a-0"].uid) == (0, untouched)


def test_a_lost_body_without_a_retry_ends_the_run_with_its_outcome():
    world = started(framework(fc_role("a", 2)))
    world.leave("a-1")
    world.settle()

    outcome = world.state.run.outcome
    assert outcome is not None
    assert (outcome.code, outcome.text, outcome.trigger) == (
        -101,
        "Pod is being deleted by others",
        Trigger("a", 1, "FailedTaskCount 1 has reached MinFailedTaskCount 1 in the TaskRole"),
    )
    assert world.state.run.stage is Stage.DONE


@pytest.mark.parametrize("code", [0, 1, 210], ids=lambda code: f"exit {code}")
def test_whatever_a_leaving_body_exits_with_it_stays_lost(code: int):
    world = started(framework(fc_role("a", 1)))
    world.leave("a-0")
    world.exits("a-0", code)
    world.settle()

    assert world.story() == {"a-0": "done 0 -101"}


def test_a_body_that_vanished_while_nobody_looked_is_lost():
    world = started(framework(fc_role("a", 1)))
    del world.pods["a-0"]
    world.settle()

    assert world.task("a", 0).outcome.text == "Pod was deleted by others"


def test_a_phase_nobody_knows_is_no_news():
    world = started(framework(fc_role("a", 1)))
    before = world.state
    world.pods["a-0"] = replace(world.pods["a-0"], phase=PodPhase.UNKNOWN)
    step = world.step()

    assert (step.state, step.writes) == (before, ())


def test_where_absence_means_nothing_the_member_is_made_again_for_free():
    world = started(t9())
    del world.pods["worker-1"]
    world.settle()

    assert sorted(world.pods) == ["worker-0", "worker-1", "worker-2"]
    assert world.state.charges == {}


def test_where_places_are_free_at_leaving_the_successor_comes_at_once():
    world = started(replica_set(2))
    first = min(world.pods)
    world.leave(first)
    world.step()

    assert len(world.pods) == 3
    assert world.state.task(TaskRef("main", 0)).attempt.number == 0


@pytest.mark.parametrize("message", ["little was preempted by great of higher priority", "preempted by great"])
def test_an_evicted_body_says_for_whom_it_goes(message: str):
    """And in which attempt: what befalls it again in the same words is another thing that happened."""
    world = started(framework(fc_role("a", 2, task=(True, 0))))
    for _ in range(2):
        world.pods["a-1"] = replace(world.pods["a-1"], disruption=message)
        world.leave("a-1")
        world.settle()

    said = [CATALOG.text(each.message) for step in world.steps for each in step.notifications if each.subject == "a-1"]
    assert said == [
        f"a-1 was evicted in attempt 0: {message}", "a-1 is retried as attempt 1 (not counted)",
        f"a-1 was evicted in attempt 1: {message}", "a-1 is retried as attempt 2 (not counted)",
    ]  # fmt: skip
