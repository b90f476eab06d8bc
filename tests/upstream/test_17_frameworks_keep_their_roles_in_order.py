"""Roles of a Framework that are inserted, removed, moved or added again, and which of many ends is the trigger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.engine_jobs import fc_role, framework
from kit.engine_world import World, started
from shoal.engine import Create, Job, Role


def with_roles(*roles: Role):
    return lambda job: replace(job, roles=roles)


def names(world: World) -> list[str]:
    return [role.name for role in world.state.roles]


def job(*roles: str) -> Job:
    return framework(*(fc_role(name, 1) for name in roles), rules={})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("bc", "abc", id="inserted before the others"),
        pytest.param("ac", "abc", id="inserted between"),
        pytest.param("abc", "cab", id="moved"),
        pytest.param("abc", "ca", id="moved and one removed"),
    ],
)
def test_17_roles_in_the_status_stand_in_the_order_of_the_spec(before: str, after: str):
    world = started(job(*before))
    world.edit(with_roles(*(fc_role(name, 1) for name in after)))
    world.settle()
    assert names(world) == list(after)


def test_17_a_removed_role_stands_last_until_its_pods_are_gone():
    world = started(job("a", "b", "c"))
    world.edit(with_roles(fc_role("c", 1), fc_role("d", 1), fc_role("b", 1)))
    world.step()
    assert names(world) == ["c", "d", "b", "a"]
    world.settle()
    assert names(world) == ["c", "d", "b"]


@pytest.mark.parametrize("done", [False, True], ids=["running", "done"])
def test_17_a_role_that_comes_back_waits_for_the_old_pod(done: bool):
    world = started(job("a", "b"))
    old = world.pods["b-0"].uid
    if done:
        world.exits("b-0", 1)
        world.step()
    world.edit(with_roles(fc_role("a", 1)))
    world.settle(reap=False)
    world.edit(with_roles(fc_role("a", 1), fc_role("b", 1)))
    world.settle(reap=False)
    assert (world.pods["b-0"].uid, world.story()["b-0'"].split()[0]) == (old, "leaving")
    assert not any(isinstance(write, Create) for step in world.steps[-3:] for write in step.writes)
    world.reap()
    world.settle()
    assert (world.pods["b-0"].uid != old, world.story()["b-0"]) == (True, "preparing 0")
