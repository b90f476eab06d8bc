"""Pause and deadline: the clock restarts with a resume, and the deadline takes even what would stay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kit.engine_jobs import LATE, batch, paused, t9
from kit.engine_world import World, started
from shoal.engine import Stage
from shoal.engine.policies import KeepPods


def test_the_deadline_ends_the_job_at_the_very_second():
    world = started(t9(deadline=60, clean=KeepPods.ALL))
    step = world.settle()
    assert step.wake_at == world.now + timedelta(seconds=60)
    world.tick(59)
    world.settle()
    assert not world.state.is_ended
    world.exits("worker-1", 0)
    world.tick(1)
    world.settle()

    assert (world.state.run.outcome, sorted(world.pods)) == (LATE, ["worker-1"])


def test_a_success_seen_in_the_same_pass_beats_the_deadline():
    world = started(t9(deadline=60))
    world.exits("worker-0", 0)
    world.tick(60)
    world.settle()

    assert world.state.run.outcome.is_ok


def test_the_clock_restarts_with_a_resume_and_stands_while_paused():
    world = started(t9(deadline=60))
    world.tick(50)
    world.edit(paused)
    world.settle()
    world.tick(500)
    world.settle()
    assert not world.state.is_ended
    world.edit(lambda job: paused(job, False))
    world.settle()
    world.run()
    step = world.settle()

    assert step.wake_at == world.now + timedelta(seconds=60)


def test_an_open_run_that_never_got_all_its_bodies_has_no_deadline_yet():
    world = World(t9(deadline=60))
    assert world.step().wake_at is None


@pytest.mark.parametrize(
    ("clean", "left"),
    [(KeepPods.ALL, [0, 1, 2]), (KeepPods.FINISHED, [0, 1]), (KeepPods.NONE, [])],
    ids=["all stay", "finished stay", "none stays"],
)
def test_the_end_leaves_what_the_clean_up_keeps(clean: KeepPods, left: list[int]):
    world = started(t9(3, clean=clean))
    world.exits("worker-1", 1)
    world.settle()
    world.exits("worker-0", 0)
    world.settle()

    assert sorted(world.pods) == [f"worker-{index}" for index in left]
    assert world.state.run.stage is Stage.DONE


def test_a_suspended_batch_job_keeps_its_successes():
    world = started(batch(parallelism=2, completions=3))
    world.exits(min(world.pods), 0)
    world.settle()
    assert world.state.roles[0].ok_count == 1
    world.edit(paused)
    world.settle()
    assert all(pod.is_finished for pod in world.pods.values())
    world.edit(lambda job: paused(job, False))
    world.settle()

    assert world.state.roles[0].ok_count == 1
    assert len([pod for pod in world.pods.values() if not pod.is_finished]) == 2
