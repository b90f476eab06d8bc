"""The second trace of the design: a lost pserver restarts everything once, then the trainers end the job."""

from __future__ import annotations

from kit.engine_jobs import SUCCEEDED, volcano
from kit.engine_world import World, started
from shoal.engine import Apply, Create, Delete, Intent, Mark, Stage


def kinds(world: World) -> list[str]:
    return sorted({type(write).__name__ for write in world.steps[-1].writes})


def test_no_body_is_made_before_the_group_is_admitted():
    world = World(volcano())
    world.admits = False
    world.step()
    assert kinds(world) == ["Apply"]
    world.settle()
    assert world.pods == {}
    assert {gate_status.message for gate_status in world.steps[-1].gate_statuses} == {
        "pserver waits for its group to be admitted",
        "trainer waits for its group to be admitted",
    }


def test_the_whole_trace():
    world = started(volcano())
    world.leave("pserver-1")
    step = world.step()
    assert (world.state.run.intent, world.state.charged) == (Intent.RESTART, 1)
    assert [str(write.target) for write in step.writes if isinstance(write, Mark)] == [
        "pserver-0",
        "trainer-0",
        "trainer-1",
    ]
    assert world.groups == {}

    world.exits("trainer-0", 143)
    world.step()
    assert world.state.charged == 1

    world.reap("trainer-0", "trainer-1", "pserver-0")
    world.step()
    assert world.state.run.number == 0

    world.reap()
    world.step()
    assert world.state.run.number == 1
    assert [type(write) for write in world.steps[-1].writes] == [Apply]

    world.settle()
    world.run()
    world.settle()
    assert sorted(world.pods) == ["pserver-0", "pserver-1", "trainer-0", "trainer-1"]

    world.exits("trainer-0", 0)
    world.settle()
    assert world.story()["trainer-0"] == "done 0 0"
    world.exits("trainer-1", 0)
    step = world.step()
    assert (world.state.run.intent, world.state.run.outcome) == (Intent.END, SUCCEEDED)
    assert [str(w.target) for w in step.writes if isinstance(w, Delete) and hasattr(w.target, "role")] == [
        "pserver-0",
        "pserver-1",
    ]
    world.settle()
    assert world.state.run.stage is Stage.DONE
    assert sorted(world.pods) == ["trainer-0", "trainer-1"]
    assert world.state.charged == 1


def test_a_crash_right_after_closing_charges_nothing_more():
    world = started(volcano())
    world.leave("pserver-1")
    world.step(crash_after=0)
    step = world.step()

    assert world.state.charged == 1
    assert len([write for write in step.writes if isinstance(write, Delete | Mark)]) == 7
    assert not [write for write in step.writes if isinstance(write, Create)]


def test_the_restart_that_is_one_too_many_is_counted_and_fails_the_job():
    world = started(volcano(max_retry=2))
    for _ in range(2):
        world.exits("trainer-0", 1)
        world.settle()
        world.run()
        world.settle()

    assert world.state.run.stage is Stage.DONE
    assert (world.state.charged, world.state.run.number) == (2, 1)
    assert world.state.run.outcome is not None
    assert not world.state.run.outcome.is_ok
