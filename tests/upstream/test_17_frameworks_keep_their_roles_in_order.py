"""Roles of a Framework that are inserted, removed, moved or added again, and which of many ends is the trigger."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from kit.engine_jobs import fc_role, framework
from kit.engine_world import World, started
from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.scenario import SimulatedWorld
from shoal.cluster.client import PatchType
from shoal.engine import Create, Job, Role
from shoal.kube.kinds import POD


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


@pytest.mark.parametrize("grace", [None, 5], ids=["", "forced"])
async def test_17_a_role_waits_for_an_old_pod_with_a_finalizer(grace: int | None) -> None:
    held = role("b", 1, fate=runs(), grace=grace)
    held["task"]["pod"].setdefault("metadata", {})["finalizers"] = ["example.com/hold"]
    async with SimulatedWorld() as world:
        await world.submit(fw("back", role("a", 1, fate=runs()), held))
        await world.running("back", 1, "b")
        old = world.task("back", 0, "b")["attemptStatus"]["podUID"]
        await world.patch("back", {"op": "remove", "path": "/spec/taskRoles/1"})
        await world.until(lambda: world.task("back", 0, "b")["deletionPending"])
        await world.patch("back", {"op": "add", "path": "/spec/taskRoles/-", "value": role("b", 1, fate=runs())})
        await world.rest(60)
        now = world.task("back", 0, "b")
        assert (now["attemptStatus"]["podUID"], now["deletionPending"]) == (old, True)
        freed = [{"op": "remove", "path": "/metadata/finalizers"}]
        await world.user.patch(POD, "back-b-0", "default", patch=freed, patch_type=PatchType.JSON)
        await world.until(
            lambda: world.are_running("back", 1, "b") and not world.task("back", 0, "b")["deletionPending"]
        )
        assert world.task("back", 0, "b")["attemptStatus"]["podUID"] != old


@pytest.mark.parametrize("order", list(permutations(["a-0", "b-0", "b-1"])), ids="-".join)
def test_17_of_ends_within_one_pass_the_first_role_and_index_is_the_trigger(order: tuple[str, ...]):
    world = started(framework(fc_role("b", 2), fc_role("a", 1), rules={"b": (1, -1), "a": (1, -1)}))
    for name in order:
        world.exits(name, 1)
    world.step()
    world.reap(*order)
    world.settle()
    assert world.state.run.outcome is not None
    trigger = world.state.run.outcome.trigger
    assert trigger is not None
    assert (trigger.role, trigger.index) == ("b", 0)


def test_17_an_earlier_end_is_the_trigger_before_role_and_index():
    world = started(framework(fc_role("b", 2), fc_role("a", 1), rules={"b": (1, -1), "a": (1, -1)}))
    world.exits("a-0", 1)
    world.step()
    world.reap("a-0")
    world.tick(1)
    world.exits("b-0", 1)
    world.settle()
    assert world.state.run.outcome is not None
    trigger = world.state.run.outcome.trigger
    assert trigger is not None
    assert (trigger.role, trigger.index) == ("a", 0)
