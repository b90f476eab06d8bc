"""Commands: the effect and the uid share one ledger; the command object goes afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.engine_jobs import volcano
from kit.engine_world import World, started
from shoal.engine import Action, Command, CommandRef, Delete, EventType, Intent, Stage
from shoal.engine.policies import Reaction


def commanded(word: str, *, crash_after: int | None = None, **target: object) -> World:
    world = started(volcano())
    world.commands.append(Command("c1", word, **target))
    world.step(crash_after=crash_after)
    return world


@pytest.mark.parametrize("crash_after", [None, 0, 1, 3])
def test_a_restart_command_counts_once_however_the_pass_ends(crash_after: int | None):
    world = commanded("RestartJob", crash_after=crash_after)
    world.settle()

    assert (world.state.charged, world.state.run.number, world.commands, world.state.handled) == (1, 1, [], ())


def test_a_held_job_keeps_what_finished_and_a_release_costs_nothing():
    world = started(volcano())
    world.exits("trainer-0", 0)
    world.settle()
    world.commands.append(Command("c1", "AbortJob"))
    world.settle()
    assert (world.state.run.intent, world.state.run.stage) == (Intent.HOLD, Stage.OVER)
    assert sorted(world.pods) == ["trainer-0"]

    world.commands.append(Command("c2", "ResumeJob"))
    world.settle()
    assert sorted(world.pods) == ["pserver-0", "pserver-1", "trainer-0", "trainer-1"]
    assert (world.state.charged, world.state.run.number) == (0, 2)
    assert world.story()["trainer-0"] == "done 0 0"


def test_who_failed_before_a_hold_is_tried_again_after_it():
    world = started(volcano(reactions=(Reaction(Action.HOLD, frozenset({EventType.TASK_FAILED})),)))
    before = {name: pod.uid for name, pod in world.pods.items()}
    world.exits("trainer-0", 0)
    world.exits("trainer-1", 7)
    world.settle()
    assert (world.state.is_held, sorted(world.pods)) == (True, ["trainer-0", "trainer-1"])

    world.commands.append(Command("c1", "ResumeJob"))
    world.settle()
    fresh = sorted(name for name, pod in world.pods.items() if pod.uid != before[name])
    assert fresh == ["pserver-0", "pserver-1", "trainer-1"]
    assert (world.story()["trainer-0"], world.state.charged) == ("done 0 0", 0)


@pytest.mark.parametrize(("word", "ok"), [("TerminateJob", False), ("CompleteJob", True)])
def test_a_held_job_can_still_be_ended(word: str, ok: bool):
    world = commanded("AbortJob")
    world.settle()
    world.commands.append(Command("c2", word))
    world.settle()

    assert (world.state.run.stage, world.state.run.outcome.is_ok) == (Stage.DONE, ok)


def test_a_word_nobody_knows_is_answered_and_removed():
    world = commanded("Fly")
    step = world.steps[-1]
    assert [each.reason for each in step.notifications] == ["CommandUnknown"]
    assert step.writes == (Delete(CommandRef("c1"), "c1"),)


def test_an_ended_job_removes_commands_and_does_nothing_about_them():
    world = commanded("CompleteJob")
    world.settle()
    ended = world.state
    world.commands.append(Command("c2", "RestartJob"))
    world.settle()

    assert (world.state, world.commands) == (ended, [])


def test_a_command_may_name_the_member_it_restarts():
    world = started(volcano())
    commands = {"restart": Reaction(Action.RESTART_TASK)}
    world.edit(lambda job: replace(job, policies=replace(job.policies, commands=commands)))
    before = {name: pod.uid for name, pod in world.pods.items()}
    world.commands.append(Command("c1", "restart", role="trainer", index=1))
    world.settle()

    assert [name for name, pod in world.pods.items() if pod.uid != before[name]] == ["trainer-1"]
