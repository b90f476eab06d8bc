"""The first trace of the design: 4 -> 2 -> 3 with failures on the way; survivors and the run stay what they were."""

from __future__ import annotations

from kit.engine_jobs import fc_role, framework, resized
from kit.engine_world import World, started
from shoal.engine import Create, Delete


def scaled_down() -> World:
    world = started(framework(fc_role("a", 4), rules={"a": (4, 1)}))
    world.edit(lambda job: resized(job, {"a": (2, 1)}, a=2))
    world.step()
    return world


def targets(world: World, kind: type[Create] | type[Delete]) -> list[str]:
    return [str(write.target) for write in world.steps[-1].writes if isinstance(write, kind)]


def test_dropped_tasks_get_their_outcome_before_their_bodies_are_deleted():
    world = scaled_down()

    assert world.story() == {
        "a-0": "running 0",
        "a-1": "running 0",
        "a-2'": "closing 0 -230",
        "a-3'": "closing 0 -230",
    }
    assert targets(world, Delete) == ["a-2", "a-3"]


def test_a_dropped_task_keeps_its_outcome_whatever_its_body_does():
    world = scaled_down()
    world.exits("a-3", 1)
    world.step()

    assert world.story()["a-3'"] == "leaving 0 -230"


def test_the_whole_trace():
    world = scaled_down()
    survivor = world.task("a", 0).uid
    old_instance = world.task("a", 2).instance
    world.exits("a-3", 1)
    world.exits("a-1", 1)
    world.step()
    assert targets(world, Delete) == ["a-1"]
    world.step()

    world.reap("a-1")
    world.step()
    assert world.story()["a-1"] == "done 0 1"
    assert world.state.run.is_open

    world.reap("a-2")
    world.step()
    assert world.story()["a-2'"] == "done 0 -230"

    world.edit(lambda job: resized(job, {"a": (3, 1)}, a=3))
    world.step()
    assert world.story()["a-2"] == "waiting 0"
    assert targets(world, Create) == ["a-2"]
    assert world.task("a", 2).instance != old_instance

    world.reap("a-3")
    world.settle()
    world.run()
    world.settle()
    assert world.story() == {"a-0": "running 0", "a-1": "done 0 1", "a-2": "running 0"}
    assert (world.task("a", 0).uid, world.state.run.number) == (survivor, 0)


def test_a_pod_created_right_before_a_crash_is_adopted_by_its_attempt():
    world = scaled_down()
    world.reap("a-2", "a-3")
    world.settle()
    world.edit(lambda job: resized(job, {"a": (3, 1)}, a=3))
    world.step(crash_after=1)
    created = world.pods["a-2"].uid

    world.step()
    assert (targets(world, Delete), targets(world, Create)) == ([], [])
    world.settle()
    assert world.task("a", 2).attempt.uid == world.pods["a-2"].uid == created
    assert world.task("a", 2).attempt.number == 0
