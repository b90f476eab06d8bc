"""Patience with leaving bodies: the role's seconds, whoever asked them to go, also after an edit."""

from __future__ import annotations

from datetime import timedelta

from kit.engine_jobs import fc_role, framework
from kit.engine_world import World, started
from shoal.engine import Delete, TaskRef


def forced(world: World) -> list[Delete]:
    return [write for write in world.step().writes if isinstance(write, Delete) and write.grace_seconds == 0]


def test_force_comes_exactly_when_the_patience_is_over():
    world = started(framework(fc_role("a", 1, task=(True, 0), force=5)))
    uid = world.pods["a-0"].uid
    world.leave("a-0")
    step = world.step()
    assert step.wake_at == world.now + timedelta(seconds=5)
    world.tick(4)
    assert forced(world) == []
    world.tick(1)
    assert forced(world) == [Delete(TaskRef("a", 0), uid, grace_seconds=0, confirm=True)]
    world.settle()

    assert world.story() == {"a-0": "preparing 1"}


def test_without_a_limit_a_leaving_body_is_waited_for_for_ever():
    world = started(framework(fc_role("a", 1, task=(True, 0))))
    world.leave("a-0")
    world.step()
    world.tick(10**6)

    assert forced(world) == []
    assert world.steps[-1].wake_at is None


def test_a_limit_given_meanwhile_counts_from_the_beginning_of_the_deletion():
    world = started(framework(fc_role("a", 1, task=(True, 0))))
    world.leave("a-0")
    world.step()
    world.tick(10)
    world.job = framework(fc_role("a", 1, task=(True, 0), force=5))

    assert len(forced(world)) == 1


def test_a_role_that_left_the_spec_keeps_its_patience():
    world = started(framework(fc_role("a", 1, force=5), fc_role("b", 1)))
    world.job = framework(fc_role("b", 1))
    world.step()
    world.step()
    world.tick(6)

    assert [write.target for write in forced(world)] == [TaskRef("a", 0)]
