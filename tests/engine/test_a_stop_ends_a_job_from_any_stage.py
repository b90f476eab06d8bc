"""A wish to stop: before the start, while it runs, and while it waits for its next run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from kit.engine_jobs import STOPPED, fc_role, framework
from kit.engine_world import World, started
from shoal.engine import Delete, Intent, Job, RunOwnerRef, Stage


def stop(job: Job) -> Job:
    return replace(job, stop=True)


def test_a_job_that_may_not_start_yet_makes_nothing_and_says_why():
    world = World(framework(fc_role("a", 2), start=False))
    step = world.settle()

    assert (world.run_owner, world.pods, world.state.run.stage) == (None, {}, Stage.WAITING)
    assert {gate_status.message for gate_status in step.gate_statuses} == {"The job is waiting to be started"}
    assert world.story() == {"a-0": "waiting 0", "a-1": "waiting 0"}


def test_a_job_stopped_before_its_start_ends_without_ever_having_an_anchor():
    world = World(framework(fc_role("a", 2), start=False))
    world.settle()
    world.edit(stop)
    assert world.step().writes == (Delete(RunOwnerRef(), "", confirm=True),)
    world.settle()

    assert (world.state.run.stage, world.state.run.outcome, world.state.run.run_owner) == (Stage.DONE, STOPPED, None)
    assert world.story() == {"a-0": "done 0 -220", "a-1": "done 0 -220"}


def test_a_running_job_that_is_stopped_ends_once_its_bodies_are_gone():
    world = started(framework(fc_role("a", 4, task=(False, -2)), run=(False, -2)))
    world.edit(stop)
    world.step()
    assert (world.state.run.intent, world.state.run.stage) == (Intent.END, Stage.CLOSING)
    world.step()
    assert world.state.run.stage is Stage.LEAVING
    world.settle()

    assert (world.state.run.stage, world.state.run.outcome, world.pods) == (Stage.DONE, STOPPED, {})
    assert set(world.story().values()) == {"done 0 -220"}


def test_a_stop_during_the_delay_opens_the_next_run_and_ends_it_at_once():
    world = started(framework(fc_role("a", 1), run=(True, 1)))
    world.exits("a-0", 201)
    step = world.settle()
    assert (world.state.run.stage, world.state.run.delay_seconds) == (Stage.OVER, 5)
    assert step.wake_at == world.now + timedelta(seconds=5)

    world.edit(stop)
    world.settle()
    run = world.state.run
    assert (run.number, run.stage, run.outcome, run.run_owner) == (1, Stage.DONE, STOPPED, None)
    assert world.state.charged == 0


def test_an_ended_job_hears_no_stop():
    world = started(framework(fc_role("a", 1)))
    world.exits("a-0", 0)
    world.settle()
    ended = world.state
    world.edit(stop)
    world.settle()

    assert world.state == ended


def test_a_stop_while_the_anchor_is_still_unseen_waits_for_a_live_look():
    world = World(framework(fc_role("a", 1)))
    world.step()
    world.run_owner = None
    world.step()
    assert world.state.run.stage is Stage.REQUESTED
    world.edit(stop)
    assert world.step().writes == (Delete(RunOwnerRef(), world.state.run.run_owner or "", confirm=True),)
    world.settle()

    assert (world.state.run.stage, world.state.run.outcome) == (Stage.DONE, STOPPED)
