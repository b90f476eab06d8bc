"""Gates and order: who may get bodies now, the sentence why not, and that a door never removes anybody."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_

from kit.engine_jobs import batch, volcano
from kit.engine_world import World, started
from shoal.engine import Job, Policies, Role
from shoal.engine.policies import After, ExternalGate, GroupGate, GroupPlan, Hold, Opens, Retry, WhenShut


def staged(after: After, *, size: int = 2) -> World:
    first, other = Role("first", size, minimum=1), Role("other", 1)
    world = World(Job("u", "j", (first, other, Role("last", 1, after=after)), Policies()))
    world.settle()
    return world


def has_last(world: World) -> bool:
    world.settle()
    return "last-0" in world.pods


ORDERS = {
    # policy, what runs, what is ready: may the last role start
    "nobody runs": (After(("first",)), [], False),
    "the minimum runs": (After(("first",)), ["first-0"], True),
    "a count is asked": (After(("first",), count=2), ["first-0"], False),
    "all of several": (After(("first", "other")), ["first-0"], False),
    "all of several run": (After(("first", "other")), ["first-0", "other-0"], True),
    "any of several": (After(("first", "other"), any=True), ["other-0"], True),
}


@pytest.mark.parametrize("case", ORDERS)
def test_a_role_waits_for_others(case: str):
    after, running, expected = ORDERS[case]
    world = staged(after)
    assert not has_last(world)
    if running:
        world.run(*running)

    assert has_last(world) is expected


def test_ready_is_more_than_running_and_success_counts_as_either():
    world = staged(After(("other",), ready=True))
    world.run("other-0")
    world.pods["other-0"] = with_(world.pods["other-0"], ready=False)
    assert not has_last(world)
    world.exits("other-0", 0)
    assert has_last(world)


def test_the_door_says_whom_it_waits_for():
    world = staged(After(("first", "other")))
    assert {gate_status.role: gate_status.message for gate_status in world.steps[-1].gate_statuses} == {
        "first": "",
        "other": "",
        "last": "last waits for first, other",
    }


def test_a_gate_that_shuts_makes_nobody_and_removes_nobody():
    world = started(volcano())
    world.groups[""] = with_(world.groups[""], admitted=False)
    del world.pods["trainer-1"]
    world.edit(lambda job: replace(job, policies=replace(job.policies, reactions=())))
    world.settle()

    assert sorted(world.pods) == ["pserver-0", "pserver-1", "trainer-0"]


def test_a_group_follows_its_digest_only_where_the_gate_says_so():
    world = started(volcano())
    uid = world.groups[""].uid
    gate = GroupGate((GroupPlan("", "min-5"),), Opens.ADMITTED, follows=True)
    world.edit(lambda job: replace(job, policies=replace(job.policies, gates=(gate,))))
    world.settle()
    assert (world.groups[""].uid, world.groups[""].digest) == (uid, "min-5")

    gate = GroupGate((GroupPlan("", "min-6"),), Opens.ADMITTED)
    world.edit(lambda job: replace(job, policies=replace(job.policies, gates=(gate,))))
    world.settle()
    assert world.groups[""].digest == "min-5"


def test_each_role_may_have_a_group_of_its_own():
    gate = GroupGate((GroupPlan("a", roles=frozenset({"a"})), GroupPlan("b", roles=frozenset({"b"}))), Opens.ADMITTED)
    world = World(Job("u", "j", (Role("a"), Role("b")), Policies(gates=(gate,))))
    world.admits = False
    world.settle()
    world.groups["b"] = with_(world.groups["b"], admitted=True)
    world.settle()

    assert sorted(world.pods) == ["b-0"]


def test_a_gate_that_takes_back_what_it_gave_holds_the_job():
    gate = ExternalGate(open=True, when_closed=WhenShut.HOLD)
    policies = Policies(gates=(gate,), hold=Hold())
    world = started(Job("u", "j", (Role("a", 2, retry=Retry.from_letters("ddddf")),), policies))
    shut = replace(policies, gates=(replace(gate, open=False),))
    world.edit(lambda job: replace(job, policies=shut))
    world.settle()
    assert world.pods == {}
    world.edit(lambda job: replace(job, policies=policies))
    world.settle()

    assert sorted(world.pods) == ["a-0", "a-1"]


def test_a_key_that_others_turn_opens_the_gate():
    world = World(replace(batch(), policies=replace(batch().policies, gates=(ExternalGate(key="queue"),))))
    world.settle()
    assert world.pods == {}
    world.open_gates.add("queue")
    world.settle()
    assert len(world.pods) == 2
