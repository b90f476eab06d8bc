"""Other children: made beside their task, role or job, brought to their digest, gone when their life is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.engine_jobs import SUCCEEDED, paused, resized, t9
from kit.engine_world import World, started
from shoal.engine import Apply, CompanionRef, Job, Policies, Role, Seen, TaskRef
from shoal.engine.policies import (
    LEAD,
    Claim,
    Companion,
    Completion,
    Hold,
    Keep,
    Life,
    Retry,
    Scope,
    Tally,
    Teardown,
    When,
)


def job(*companions: Companion, keep: Keep = Keep.FINISHED) -> Job:
    policies = Policies(
        completion=Completion((When((Claim(Tally.OK, LEAD, 1),), SUCCEEDED),)),
        hold=Hold(companions=frozenset({"c"})),
        teardown=Teardown(at_end=keep),
        companions=companions,
    )
    role = Role("a", 2, retry=Retry.word("ddddf"))
    return Job("u", "t9", (role, Role("b", 1)), policies, lead=TaskRef("a", 0))


def shown(world: World) -> list[str]:
    return sorted(f"{ref.role or '*'}{ref.index if ref.index >= 0 else ''}" for ref in world.companions)


@pytest.mark.parametrize(
    ("companion", "expected"),
    [
        (Companion("c"), ["*"]),
        (Companion("c", Scope.ROLE), ["a", "b"]),
        (Companion("c", Scope.TASK), ["a0", "a1", "b0"]),
        (Companion("c", Scope.TASK, roles=frozenset({"a"})), ["a0", "a1"]),
    ],
    ids=["of the job", "of each role", "of each task", "of some tasks"],
)
def test_a_companion_stands_beside_what_its_scope_names(companion: Companion, expected: list[str]):
    assert shown(started(job(companion))) == expected


@pytest.mark.parametrize(
    ("life", "expected"),
    [
        (Life.TASK, ["a0"]),
        (Life.RUN, []),
        (Life.UNTIL_END, []),
        (Life.UNTIL_DELETED, ["a0", "a1", "b0"]),
    ],
    ids=lambda value: value.value if isinstance(value, Life) else "",
)
def test_the_end_takes_those_whose_life_is_over(life: Life, expected: list[str]):
    world = started(job(Companion("c", Scope.TASK, life)))
    world.exits("a-0", 0)
    world.settle()

    assert world.state.is_ended
    assert shown(world) == expected


def test_a_companion_goes_with_the_task_that_is_scaled_away():
    world = started(job(Companion("c", Scope.TASK)))
    world.edit(lambda job: resized(job, a=1))
    world.settle()

    assert shown(world) == ["a0", "b0"]


def test_a_companion_is_brought_to_its_digest_and_otherwise_left_alone():
    world = started(job(Companion("c", digest="one")))
    assert world.settle().writes == ()
    world.edit(lambda job: replace(job, policies=replace(job.policies, companions=(Companion("c", digest="two"),))))
    assert [type(write) for write in world.step().writes] == [Apply]
    assert [seen.digest for seen in world.companions.values()] == ["two"]


def test_a_foreign_object_of_that_name_is_never_touched():
    world = World(job(Companion("c", digest="one")))
    foreign = Seen("x", "theirs", owned=False)
    world.companions[CompanionRef("c")] = foreign
    world.settle()
    world.exits("a-0", 0)
    world.settle()

    assert world.companions == {CompanionRef("c"): foreign}


def test_a_hold_takes_only_what_it_names():
    world = started(job(Companion("c"), Companion("board", life=Life.UNTIL_DELETED)))
    world.edit(paused)
    world.settle()

    assert [ref.name for ref in world.companions] == ["board"]


def test_the_group_of_a_held_job_goes_and_comes_back():
    world = started(t9())
    old = world.groups[""].uid
    world.edit(paused)
    world.settle()
    assert world.groups == {}
    world.edit(lambda job: paused(job, False))
    world.settle()

    assert world.groups[""].uid != old
