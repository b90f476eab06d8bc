"""A gang scheduler that takes back what it granted ends the run: its members go, and queue again at no cost."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as with_fields

from kit.engine_jobs import volcano
from kit.engine_world import World, started
from shoal.engine import Action, EventType, Intent, Job
from shoal.engine.messages import CATALOG
from shoal.engine.policies import Reaction

ANEW = Reaction(Action.RESTART_RUN, frozenset({EventType.GROUP_EVICTED}), charged=False)


def evictable(**more: int) -> Job:
    job = volcano(**more)
    return replace(job, policies=replace(job.policies, reactions=(*job.policies.reactions, ANEW)))


def evicted(world: World) -> None:
    world.groups[""] = with_fields(world.groups[""], admitted=False, evicted=True)
    world.step()


def test_the_run_ends_and_the_next_one_asks_again():
    world = started(evictable())
    evicted(world)
    assert (world.state.run.intent, world.state.charged) == (Intent.RESTART, 0)
    assert world.groups == {}
    world.reap("trainer-0", "trainer-1", "pserver-0", "pserver-1")
    world.settle()
    assert world.state.run.number == 1
    assert list(world.groups) == [""]


def test_not_even_a_job_without_retries_fails_of_it():
    world = started(evictable(max_retry=1))
    for number in range(3):
        assert (world.state.run.number, world.state.is_ended) == (number, False)
        evicted(world)
        world.reap("trainer-0", "trainer-1", "pserver-0", "pserver-1")
        world.settle()
        world.run()
        world.settle()
    assert (world.state.run.number, world.state.charged) == (3, 0)


def test_the_reason_is_told():
    world = started(evictable())
    evicted(world)
    assert [CATALOG.text(each.message) for each in world.steps[-1].notifications if each.reason == "Restarting"] == [
        f"{world.job.name} restarts with all its tasks, because its gang was evicted"
    ]
