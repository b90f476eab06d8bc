"""Other children: made beside their task, role or job, brought to their digest, gone when their life is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.engine_jobs import SUCCEEDED, paused, resized, t9
from kit.engine_world import World, started
from shoal.engine import Apply, Job, ObservedObject, OwnedObjectRef, Policies, Role, TaskRef
from shoal.engine.policies import (
    LEAD,
    BudgetScope,
    Completion,
    CompletionRule,
    CountCondition,
    Hold,
    KeepPods,
    Lifetime,
    OwnedObject,
    Retry,
    Tally,
    Teardown,
)


def job(*owned_objects: OwnedObject, keep: KeepPods = KeepPods.FINISHED) -> Job:
    policies = Policies(
        completion=Completion((CompletionRule((CountCondition(Tally.OK, LEAD, 1),), SUCCEEDED),)),
        hold=Hold(owned_objects=frozenset({"c"})),
        teardown=Teardown(at_end=keep),
        owned_objects=owned_objects,
    )
    role = Role("a", 2, retry=Retry.from_letters("ddddf"))
    return Job("u", "t9", (role, Role("b", 1)), policies, lead=TaskRef("a", 0))


def shown(world: World) -> list[str]:
    return sorted(f"{ref.role or '*'}{ref.index if ref.index >= 0 else ''}" for ref in world.owned_objects)


@pytest.mark.parametrize(
    ("companion", "expected"),
    [
        (OwnedObject("c"), ["*"]),
        (OwnedObject("c", BudgetScope.ROLE), ["a", "b"]),
        (OwnedObject("c", BudgetScope.TASK), ["a0", "a1", "b0"]),
        (OwnedObject("c", BudgetScope.TASK, roles=frozenset({"a"})), ["a0", "a1"]),
    ],
    ids=["of the job", "of each role", "of each task", "of some tasks"],
)
def test_a_companion_stands_beside_what_its_scope_names(companion: OwnedObject, expected: list[str]):
    assert shown(started(job(companion))) == expected


@pytest.mark.parametrize(
    ("lifetime", "expected"),
    [
        (Lifetime.TASK, ["a0"]),
        (Lifetime.RUN, []),
        (Lifetime.UNTIL_END, []),
        (Lifetime.UNTIL_DELETED, ["a0", "a1", "b0"]),
    ],
    ids=lambda value: value.value if isinstance(value, Lifetime) else "",
)
def test_the_end_takes_those_whose_life_is_over(lifetime: Lifetime, expected: list[str]):
    world = started(job(OwnedObject("c", BudgetScope.TASK, lifetime)))
    world.exits("a-0", 0)
    world.settle()

    assert world.state.is_ended
    assert shown(world) == expected


def test_a_companion_goes_with_the_task_that_is_scaled_away():
    world = started(job(OwnedObject("c", BudgetScope.TASK)))
    world.edit(lambda job: resized(job, a=1))
    world.settle()

    assert shown(world) == ["a0", "b0"]


def test_a_companion_is_brought_to_its_digest_and_otherwise_left_alone():
    world = started(job(OwnedObject("c", digest="one")))
    assert world.settle().writes == ()
    world.edit(
        lambda job: replace(job, policies=replace(job.policies, owned_objects=(OwnedObject("c", digest="two"),)))
    )
    assert [type(write) for write in world.step().writes] == [Apply]
    assert [seen.digest for seen in world.owned_objects.values()] == ["two"]


def test_a_foreign_object_of_that_name_is_never_touched():
    world = World(job(OwnedObject("c", digest="one")))
    foreign = ObservedObject("x", "theirs", owned=False)
    world.owned_objects[OwnedObjectRef("c")] = foreign
    world.settle()
    world.exits("a-0", 0)
    world.settle()

    assert world.owned_objects == {OwnedObjectRef("c"): foreign}


def test_a_hold_takes_only_what_it_names():
    world = started(job(OwnedObject("c"), OwnedObject("board", lifetime=Lifetime.UNTIL_DELETED)))
    world.edit(paused)
    world.settle()

    assert [ref.name for ref in world.owned_objects] == ["board"]


def test_the_group_of_a_held_job_goes_and_comes_back():
    world = started(t9())
    old = world.groups[""].uid
    world.edit(paused)
    world.settle()
    assert world.groups == {}
    world.edit(lambda job: paused(job, False))
    world.settle()

    assert world.groups[""].uid != old
