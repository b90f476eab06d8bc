"""The third trace of the design: pause, a larger size meanwhile, resume, then one worker is killed."""

from __future__ import annotations

from kit.engine_jobs import paused, resized, t9
from kit.engine_world import started
from shoal.engine import Create, Delete, Intent, SettledReason, Stage


def test_the_whole_trace():
    world = started(t9())
    world.edit(paused)
    step = world.step()
    assert (world.state.run.intent, world.state.run.number) == (Intent.HOLD, 0)
    assert len([write for write in step.writes if isinstance(write, Delete)]) == 7
    assert (world.groups, world.owned_objects) == ({}, {})

    world.exits("worker-0", 0)
    world.step()
    assert not world.state.is_ended

    world.edit(lambda job: resized(job, worker=4))
    world.step()
    assert len(world.state.role("worker").tasks) == 3

    world.edit(lambda job: paused(job, False))
    world.reap("worker-0", "worker-2")
    world.step()
    assert world.state.run.number == 0

    world.reap("worker-1")
    step = world.step()
    assert world.state.run.number == 1
    created = [write for write in step.writes if isinstance(write, Create)]
    assert [(str(write.target), write.build_context.resumed) for write in created] == [
        (f"worker-{i}", True) for i in range(4)
    ]

    world.settle()
    world.run()
    world.settle()
    assert world.state.run.stage is Stage.RUNNING
    assert world.state.stamps.clock_from is not None

    killed = world.pods["worker-2"].uid
    world.exits("worker-2", 137)
    world.step(crash_after=0)
    assert world.state.settled == {killed: SettledReason("worker", 2, "retry", ok=False)}
    assert world.state.charges == {"": 1, "worker": 1}
    world.settle()
    assert world.state.charges == {"": 1, "worker": 1}
    assert world.pods["worker-2"].uid != killed
    assert world.state.settled == {}


def test_a_success_that_is_already_visible_beats_the_pause():
    world = started(t9())
    world.exits("worker-0", 0)
    world.edit(paused)
    world.settle()

    assert world.state.is_ended
    assert world.state.run.outcome is not None
    assert world.state.run.outcome.is_ok


def test_a_job_born_paused_makes_nothing_until_it_is_released():
    world = started(paused(t9()))
    assert (world.pods, world.groups, world.owned_objects) == ({}, {}, {})

    world.edit(lambda job: paused(job, False))
    world.settle()
    assert sorted(world.pods) == ["worker-0", "worker-1", "worker-2"]
