"""Membership: members in rank order; the round rises when they change or somebody asks, and never otherwise."""

from __future__ import annotations

from dataclasses import replace

from kit.engine_jobs import resized, t9
from kit.engine_world import World, started
from shoal.engine import Signal, SignalKind
from shoal.engine.policies import Rendezvous


def published() -> World:
    job = t9(3)
    rendezvous = Rendezvous(published=True, frozen={"min": 2, "max": 4})
    return started(replace(job, policies=replace(job.policies, rendezvous=rendezvous)))


def members(world: World) -> list[tuple[str, int]]:
    return [(role, index) for role, index, _ in world.state.round.members]


def test_a_resize_changes_the_members_and_the_round():
    world = published()
    before = world.state.round.number
    assert members(world) == [("worker", 0), ("worker", 1), ("worker", 2)]
    world.edit(lambda job: resized(job, worker=2))
    world.settle()

    assert members(world) == [("worker", 0), ("worker", 1)]
    assert world.state.round.number == before + 1


def test_a_replaced_body_is_another_member():
    world = published()
    before = world.state.round
    world.exits("worker-1", 137)
    world.settle()

    assert world.state.round.number > before.number
    assert members(world) == [("worker", 0), ("worker", 1), ("worker", 2)]


def test_a_round_that_is_asked_for_comes_once():
    world = published()
    before = world.state.round.number
    world.signals.append(Signal(SignalKind.ROUND_WANTED, "ask-1"))
    world.settle()
    world.settle()

    assert world.state.round.number == before + 1


def test_values_frozen_at_the_start_outlive_an_edit():
    world = published()
    rendezvous = Rendezvous(published=True, frozen={"min": 1, "max": 9})
    world.edit(lambda job: replace(job, policies=replace(job.policies, rendezvous=rendezvous)))
    world.settle()

    assert world.state.frozen == {"min": 2, "max": 4}
