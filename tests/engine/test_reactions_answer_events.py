"""Reactions: which rule answers, what it restarts, when it waits, and that a level fires once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec.structs import replace as with_

from kit.engine_jobs import FAILED, SUCCEEDED, volcano
from kit.engine_world import World, started
from shoal.engine import Action, Command, EventType, Intent, Job, Role, Signal, SignalKind, Stage
from shoal.engine.policies import BudgetScope, BudgetUnit, Reaction, Retry, RetryBudget, WhenEmpty

LOST, DEAD = frozenset({EventType.TASK_LOST}), frozenset({EventType.TASK_FAILED})


def job(*reactions: Reaction, own: tuple[Reaction, ...] = (), **changes: object) -> Job:
    role = Role("w", 4, retry=Retry.from_letters("ddddf"), reactions=own, partition_size=2)
    return replace(volcano(role, Role("x", 1, retry=Retry.from_letters("ddddf")), reactions=reactions), **changes)


def renewed(world: World, before: dict[str, str]) -> list[str]:
    return sorted(name for name, pod in world.pods.items() if pod.uid != before.get(name))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action.RESTART_TASK, ["w-1"]),
        (Action.RESTART_PARTITION, ["w-0", "w-1"]),
        (Action.RESTART_ROLE, ["w-0", "w-1", "w-2", "w-3"]),
        (Action.RESTART_RUN, ["w-0", "w-1", "w-2", "w-3", "x-0"]),
    ],
    ids=lambda value: value.value if isinstance(value, Action) else "",
)
def test_a_restart_reaches_exactly_its_scope_and_costs_one(action: Action, expected: list[str]):
    world = started(job(Reaction(action, DEAD)))
    before = {name: pod.uid for name, pod in world.pods.items()}
    world.exits("w-1", 3)
    world.settle()

    assert renewed(world, before) == expected
    assert (world.state.charged, world.state.run.number) == (1, int(action is Action.RESTART_RUN))


CHOICES = {
    "own list first": ((Reaction(Action.RESTART_RUN, DEAD),), (Reaction(Action.RESTART_TASK, DEAD),), ["w-1"]),
    "own list silent": ((Reaction(Action.RESTART_ROLE, DEAD),), (Reaction(Action.RESTART_TASK, LOST),), 4),
    "event before code": ((Reaction(Action.RESTART_ROLE, code=3), Reaction(Action.RESTART_TASK, DEAD)), (), ["w-1"]),
    "exit code": ((Reaction(Action.RESTART_ROLE, code=4), Reaction(Action.RESTART_TASK, code=3)), (), ["w-1"]),
    "any": ((Reaction(Action.RESTART_TASK, frozenset({EventType.ANY})),), (), ["w-1"]),
    "nobody": ((Reaction(Action.RESTART_TASK, LOST),), (), []),
}


@pytest.mark.parametrize("case", CHOICES)
def test_the_first_matching_rule_answers(case: str):
    reactions, own, expected = CHOICES[case]
    world = started(job(*reactions, own=own))
    before = {name: pod.uid for name, pod in world.pods.items()}
    world.exits("w-1", 3)
    world.settle()

    found = renewed(world, before)
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_a_failure_without_a_rule_is_done_and_a_lost_member_is_made_again():
    world = started(job())
    world.exits("w-0", 3)
    world.leave("w-1")
    world.settle()

    assert world.story()["w-0"] == "done 0 3"
    assert world.story()["w-1"] == "preparing 1"
    assert world.state.charges == {}


def test_a_disrupted_body_that_failed_first_counts_as_lost():
    world = started(job(Reaction(Action.RESTART_RUN, DEAD), Reaction(Action.RESTART_TASK, LOST)))
    world.exits("w-0", 143, conditions=frozenset({"DisruptionTarget"}))
    world.settle()

    assert (world.state.run.number, world.story()["w-0"]) == (0, "preparing 1")


def test_further_restarts_while_one_is_under_way_are_free():
    world = started(job(Reaction(Action.RESTART_TASK, DEAD)))
    world.exits("w-0", 1)
    world.step()
    world.exits("w-1", 1)
    world.settle()

    assert world.state.charged == 1


def test_a_delayed_reaction_waits_for_its_time_and_survives_a_crash():
    world = started(job(Reaction(Action.RESTART_RUN, DEAD, after_seconds=30)))
    world.exits("w-0", 1)
    step = world.step(crash_after=0)
    assert step.wake_at == world.now + timedelta(seconds=30)
    world.tick(29)
    world.settle()
    assert world.state.run.number == 0
    world.tick(1)
    world.settle()

    assert (world.state.run.number, world.state.due) == (1, {})


def test_a_delayed_reaction_lapses_when_the_member_runs_again():
    world = started(job(Reaction(Action.RESTART_RUN, LOST, after_seconds=30)))
    world.leave("w-0")
    world.settle()
    assert len(world.state.due) == 1
    world.run()
    world.settle()
    world.tick(60)
    world.settle()

    assert (world.state.due, world.state.run.number) == ({}, 0)


def test_a_body_that_stays_pending_is_restarted_after_its_time():
    world = World(job(Reaction(Action.RESTART_TASK, frozenset({EventType.TASK_PENDING}), after_seconds=60)))
    step = world.settle()
    assert step.wake_at == world.now + timedelta(seconds=60)
    world.run("w-0", "w-1", "w-2", "x-0")
    before = {name: pod.uid for name, pod in world.pods.items()}
    world.tick(60)
    world.settle()

    assert renewed(world, before) == ["w-3"]


def test_containers_that_restarted_too_often_raise_an_event_once():
    budget = RetryBudget(BudgetUnit.CONTAINERS, BudgetScope.ROLE, 2, when_empty=WhenEmpty.EVENT)
    world = started(job(Reaction(Action.RESTART_ROLE, frozenset({EventType.ROLE_EXHAUSTED}))))
    world.edit(lambda job: replace(job, roles=(replace(job.roles[0], budget=budget), job.roles[1])))
    world.exits("w-0", 0)
    pod = world.pods["w-1"]
    container = with_(world.pods["w-0"].containers[0], code=None, restarts=3)
    world.pods["w-1"] = with_(pod, containers=(container,))
    world.settle()

    assert world.state.charged == 1
    assert world.settle().notifications == ()


@pytest.mark.parametrize(
    ("kind", "event"),
    [(SignalKind.STORE_LOST, EventType.STORE_LOST), (SignalKind.ROUND_CLOSED, EventType.ROUND_CLOSED)],
)
def test_a_signal_from_inside_restarts_the_run_once(kind: SignalKind, event: EventType):
    world = started(job(Reaction(Action.RESTART_RUN, frozenset({event}))))
    world.signals.append(Signal(kind, "round-1"))
    world.settle()
    world.run()
    world.settle()

    assert world.state.run.number == 1


def test_a_group_that_is_done_inside_completes_the_job():
    world = started(job(Reaction(Action.COMPLETE, frozenset({EventType.GROUP_DONE}), outcome=SUCCEEDED)))
    world.signals.append(Signal(SignalKind.GROUP_DONE, "round-1"))
    world.settle()

    assert (world.state.run.stage, world.state.run.outcome) == (Stage.DONE, SUCCEEDED)


def test_a_group_in_an_unknown_state_is_an_event_until_it_recovers():
    world = started(job(Reaction(Action.HOLD, frozenset({EventType.GROUP_UNKNOWN}))))
    world.groups[""] = with_(world.groups[""], unknown=True)
    world.settle()

    assert world.state.run.intent is Intent.HOLD


@pytest.mark.parametrize(
    ("action", "intent"),
    [(Action.HOLD, Intent.HOLD), (Action.COMPLETE, Intent.END), (Action.TERMINATE, Intent.END)],
)
def test_a_stronger_reason_replaces_a_restart_under_way(action: Action, intent: Intent):
    world = started(job(Reaction(Action.RESTART_RUN, DEAD)))
    world.exits("w-0", 1)
    world.step()
    commands = {"now": Reaction(action, outcome=FAILED)}
    world.edit(lambda job: replace(job, policies=replace(job.policies, commands=commands)))
    world.commands.append(Command("c1", "now"))
    world.settle()

    assert world.state.run.intent is intent
    assert world.state.run.number == 0
