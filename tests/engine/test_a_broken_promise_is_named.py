"""The invariants themselves: steps doctored in one way each, and the promise that must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec.structs import replace as with_

from kit.engine_jobs import fc_role, framework, paused, t9, volcano
from kit.engine_world import World, started
from shoal.engine import (
    BuildContext,
    Create,
    Delete,
    Job,
    Outcome,
    SettledReason,
    Step,
    StepHistory,
    TaskRef,
    advance,
    check,
)
from shoal.engine.types import FailureClass, Intent, Stage

Doctor = Callable[[World, Step], Step]
EXTRA = Create(TaskRef("a", 0), BuildContext())


def told(world: World, doctor: Doctor) -> set[str]:
    """The promises found broken in the next step after it was doctored."""
    observed = world.observed()
    step = advance(world.job, world.state, observed, world.now)
    broken = check(world.job, world.state, doctor(world, step), observed, StepHistory(), now=world.now)
    return {text.split(":")[0] for text in broken}


def running() -> World:
    return started(framework(fc_role("a", 2)))


def test_an_honest_step_breaks_nothing():
    assert told(running(), lambda world, step: step) == set()


DOCTORED: dict[str, tuple[Doctor, str]] = {
    "a second create": (lambda world, step: with_(step, writes=(EXTRA,)), "name_free"),
    "a birth behind a door": (
        lambda world, step: with_(step, writes=(EXTRA,), gate_statuses=()),
        "no_create_when_gate_closed",
    ),
    "a delete without reason": (
        lambda world, step: with_(step, writes=(Delete(TaskRef("a", 0), world.pods["a-0"].uid),)),
        "justified_delete",
    ),
    "a delete by name": (lambda world, step: with_(step, writes=(Delete(TaskRef("a", 0)),)), "justified_delete"),
    "a wake-up in the past": (lambda world, step: with_(step, wake_at=world.now), "wakeup_set"),
    "a subject that is not there": (
        lambda world, step: with_(step, state=step.state.settle({"ghost": SettledReason("a", 0, "retry")})),
        "settled_bounded",
    ),
    "a silent end": (
        lambda world, step: with_(
            step, state=step.state.close(Intent.END, world.now, Outcome(FailureClass.OK)), notifications=()
        ),
        "changes_have_messages",
    ),
    "a task too many": (
        lambda world, step: with_(
            step,
            state=with_(
                step.state,
                roles=(
                    with_(
                        step.state.roles[0],
                        tasks=(*step.state.roles[0].tasks, with_(step.state.roles[0].tasks[1], index=2)),
                    ),
                ),
            ),
        ),
        "sizes_match_spec",
    ),
}


@pytest.mark.parametrize("case", DOCTORED)
def test_a_broken_promise_is_named(case: str):
    doctor, promise = DOCTORED[case]
    assert promise in told(running(), doctor)


def test_a_charge_that_is_taken_back_is_noticed():
    world = started(t9())
    world.exits("worker-1", 137)
    world.settle()
    assert "run_is_monotone" in told(world, lambda world, step: with_(step, state=step.state.with_charges({})))


def test_a_run_that_falls_or_changes_its_mind_is_noticed():
    world = started(volcano())
    world.leave("trainer-0")
    world.step()
    lowered = lambda world, step: with_(step, state=with_(step.state, run=with_(step.state.run, intent=None)))  # noqa: E731
    assert "run_is_monotone" in told(world, lowered)


def test_an_ended_job_that_changes_is_noticed():
    world = running()
    world.exits("a-0", 1)
    world.settle()
    revived = lambda world, step: with_(step, state=with_(step.state, run=step.state.run.at(Stage.RUNNING, world.now)))  # noqa: E731
    assert "final_states_stay" in told(world, revived)


def test_a_body_in_a_held_job_is_noticed():
    world = started(paused(t9()))
    stray = started(t9()).pods["worker-0"]
    world.pods["worker-0"] = stray
    kept = lambda world, step: with_(step, state=world.state)  # noqa: E731
    assert "no_pods_while_held" in told(world, kept)


def test_two_bodies_of_one_task_are_noticed():
    world = running()
    world.pods["twin"] = with_(world.pods["a-0"], uid="twin", name="twin")
    assert "one_pod_per_task" in told(world, lambda world, step: step)


def test_a_judged_task_that_is_not_answered_is_noticed():
    world = started(t9())
    role = world.state.roles[0]
    judged = with_(role, tasks=(role.tasks[0].with_outcome(Outcome(FailureClass.UNKNOWN)), *role.tasks[1:]))
    unanswered = lambda world, step: with_(step, state=with_(step.state, roles=(judged,)))  # noqa: E731
    assert "ends_answered_at_once" in told(world, unanswered)


def failing(job: Job) -> World:
    """The step to come charges one retry."""
    world = started(job)
    world.exits(next(iter(world.pods)), 137)
    return world


PODS = {"of the job": ("",), "of the role": ("worker",), "of both": ("", "worker")}


@pytest.mark.parametrize("scopes", PODS.values(), ids=PODS)
def test_a_double_charge_beside_an_honest_one_is_noticed(scopes: tuple[str, ...]):
    world = failing(t9())
    assert told(world, lambda world, step: step) == set()
    assert "charged_once" in told(world, lambda world, step: with_(step, state=step.state.with_charge(*scopes)))


def test_a_missing_charge_is_noticed():
    assert "charged_once" in told(failing(t9()), lambda world, step: with_(step, state=step.state.with_charges({})))


def test_a_task_whose_own_counter_rises_twice_is_noticed():
    world = started(framework(fc_role("a", 2, task=(False, 3))))
    world.exits("a-0", 1)
    while not world.state.task(TaskRef("a", 0)).outcome:
        world.step()
    world.step()
    world.reap()

    def doubled(world: World, step: Step) -> Step:
        task = step.state.task(TaskRef("a", 0))
        return with_(step, state=step.state.with_tasks({"a": {0: with_(task, charged=task.charged + 1)}}))

    assert told(world, lambda world, step: step) == set()
    assert "charged_once" in told(world, doubled)


def test_a_run_that_is_charged_twice_is_noticed():
    world = started(framework(fc_role("a", 1), run=(False, 5)))
    world.exits("a-0", 1)
    steps = []
    while not (steps and steps[-1].charges):
        world.reap()
        steps.append(world.step())
    before, observed, history = world.state, world.observed(), world.history
    again = advance(world.job, before, observed, world.now)
    doctored = with_(again, charges=steps[-1].charges, state=again.state.with_charge(""))
    broken = check(world.job, before, doctored, observed, history, now=world.now)
    assert [text for text in broken if "charged" in text] == ["charged_once: 'run 0' was charged twice"]


def test_charges_beyond_the_budget_are_noticed():
    world = started(replace(t9(backoff=0)))
    overdrawn = lambda world, step: with_(step, state=step.state.with_charge(""))  # noqa: E731
    assert "within_budget" in told(world, overdrawn)
