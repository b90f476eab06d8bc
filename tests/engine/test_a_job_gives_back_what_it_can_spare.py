"""A job above its minimum lets members go when its scheduler asks: as a gift, which nothing answers and nobody pays."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from kit.engine_jobs import elastic, volcano
from kit.engine_world import LOST_LEDGER, World, started
from shoal.dialects import state_annotation
from shoal.engine import (
    Action,
    Create,
    Created,
    Delete,
    EventType,
    Job,
    Mark,
    Notification,
    Role,
    SettledReason,
    Stage,
    TaskRef,
    compact_state,
)
from shoal.engine.messages import stated
from shoal.engine.policies import GroupGate, GroupPlan, Memory, Reaction, ReclaimLimits, Retry
from shoal.kube.messages import Message

WHY = "preempted by urgent of higher priority in queue default"


def bodies(world: World) -> dict[str, str]:
    return {name: pod.uid for name, pod in sorted(world.pods.items())}


def written(world: World, kind: type) -> list[str]:
    return [str(write.target) for write in world.steps[-1].writes if isinstance(write, kind)]


def test_members_go_gracefully_and_their_tasks_get_fresh_bodies() -> None:
    world = started(elastic())
    before = bodies(world)
    world.ask("worker-3", "worker-2", reclaim_reason=WHY)
    step = world.step()

    parameters = {"job": "vc", "count": 2, "tasks": "worker-2 and worker-3", "cause": stated(WHY)}
    assert step.notifications == (Notification("", Message("GaveBack", parameters)),)
    assert world.state.settled == {
        before[f"worker-{index}"]: SettledReason("worker", index, "given") for index in (3, 2)
    }
    assert (written(world, Mark), written(world, Delete)) == (["worker-2", "worker-3"], ["worker-3", "worker-2"])
    assert written(world, Create) == []  # their names are not free yet

    world.settle()
    after = bodies(world)
    assert [name for name in after if after[name] == before[name]] == ["worker-0", "worker-1"]
    assert sorted(after) == sorted(before)
    assert (world.state.run.number, world.state.run.stage, dict(world.state.charges)) == (0, Stage.RUNNING, {})
    assert world.state.settled == {}


def test_nothing_answers_how_they_end() -> None:
    world = started(elastic())
    world.ask("worker-3")
    world.step()
    world.exits("worker-3", 143)
    world.settle()
    assert (world.state.run.is_open, world.state.run.number, world.state.charged) == (True, 0, 0)
    assert world.story()["worker-3"] == "preparing 1"


@pytest.mark.parametrize(
    ("job", "asked", "gone"),
    [
        pytest.param(elastic(), "worker-0 worker-1 worker-2 worker-3", "worker-2 worker-3", id="the-minimum-stays"),
        pytest.param(elastic(), "worker-0", "worker-0", id="exactly-who-is-asked-for"),
        pytest.param(elastic(least=4), "worker-3", "", id="nobody-can-be-spared"),
        pytest.param(volcano(), "trainer-1", "", id="not-elastic"),
        pytest.param(
            elastic(2, Role("ps", 2, retry=Retry.from_letters("ddddf")), least=3, of_role={"worker": 1, "ps": 2}),
            "worker-0 worker-1 ps-0 ps-1",
            "worker-1",
            id="a-role-keeps-its-own-minimum",
        ),
        pytest.param(
            elastic(2, Role("ps", 2, retry=Retry.from_letters("ddddf"))),
            "worker-0 worker-1 ps-0 ps-1",
            "ps-0 ps-1",
            id="the-last-role-goes-first",
        ),
    ],
)
def test_nobody_goes_who_is_needed(job: Job, asked: str, gone: str) -> None:
    world = started(job)
    before = bodies(world)
    world.ask(*asked.split())
    world.settle()
    after = bodies(world)
    assert [name for name in before if after[name] != before[name]] == gone.split()


def test_several_groups_together_keep_what_the_job_needs() -> None:
    job = elastic(2, Role("ps", 2, retry=Retry.from_letters("ddddf")), least=1)
    gate = next(gate for gate in job.policies.gates if isinstance(gate, GroupGate))
    plans = tuple(GroupPlan(name, "one", frozenset({name}), ReclaimLimits(1)) for name in ("worker", "ps"))
    policies = dataclasses.replace(job.policies, gates=(dataclasses.replace(gate, groups=plans),))
    world = started(dataclasses.replace(job, policies=policies, minimum=3))
    before = bodies(world)
    world.ask(*before)
    world.settle()
    assert [name for name, uid in bodies(world).items() if uid != before[name]] == ["worker-1"]


def test_asking_twice_or_for_who_has_gone_asks_for_nothing() -> None:
    world = started(elastic())
    world.ask("worker-3", "worker-2")
    world.settle()
    world.run()
    world.settle()
    before, passes = bodies(world), len(world.steps)
    world.step()  # the note is still there
    assert (bodies(world), [step.writes for step in world.steps[passes:]]) == (before, [()])


def test_members_that_wait_for_a_place_do_not_count_as_staying() -> None:
    world = started(elastic())
    world.ask("worker-3", "worker-2")
    world.settle()
    before = bodies(world)
    world.ask("worker-1", "worker-2")  # the one is needed until the others run, the other holds no place
    world.settle()
    assert bodies(world) == before
    world.run("worker-2")
    world.settle()
    assert [name for name, uid in bodies(world).items() if uid != before[name]] == ["worker-2"]


def test_who_has_succeeded_counts_as_staying() -> None:
    world = started(elastic())
    world.exits("worker-0", 0)
    world.settle()
    before = bodies(world)
    world.ask("worker-1", "worker-2", "worker-3")
    world.settle()
    assert [name for name, uid in bodies(world).items() if uid != before[name]] == ["worker-2", "worker-3"]


@pytest.mark.parametrize("crash", [LOST_LEDGER, 0, 1, 2, 3, 4])
def test_a_crash_at_any_write_changes_nothing(crash: int) -> None:
    world = started(elastic())
    before = bodies(world)
    world.ask("worker-3", "worker-2")
    world.step(crash_after=crash)
    if crash != LOST_LEDGER:
        world.ask()  # withdrawn meanwhile: what is decided is done all the same
    world.settle()
    after = bodies(world)
    assert [name for name in after if after[name] == before[name]] == ["worker-0", "worker-1"]
    assert (world.state.run.number, world.state.charged) == (0, 0)


@pytest.mark.parametrize("has_gone", [False, True])
def test_a_birth_that_is_told_again_gives_nobody_its_task_back(has_gone: bool) -> None:
    world = started(elastic())
    reclaimed = world.pods["worker-3"].uid
    world.ask("worker-3")
    world.step(crash_after=0)  # the ledger is stored, and whoever wrote it does not know
    if has_gone:
        world.leave("worker-3")
        world.reap("worker-3")
    world.write_results = [Created(TaskRef("worker", 3), reclaimed)]
    world.step()
    assert (world.task("worker", 3).uid, world.task("worker", 3).stage) == (None, Stage.WAITING)
    world.settle()
    assert (world.state.run.number, world.state.charged, world.pods["worker-3"].uid == reclaimed) == (0, 0, False)


def test_waiting_after_a_gift_is_no_trouble_and_waiting_otherwise_is() -> None:
    impatient = Reaction(Action.RESTART_RUN, frozenset({EventType.TASK_PENDING}), after_seconds=60)
    world = started(elastic(reactions=(impatient,)))
    world.ask("worker-3")
    world.settle()
    world.tick(600)
    step = world.settle()
    assert (world.state.run.number, world.state.charged, step.wake_at) == (0, 0, None)

    world.run()
    world.settle()
    world.leave("worker-3")
    world.settle()
    assert world.settle().wake_at == world.now + timedelta(seconds=60)
    world.tick(61)
    world.step()
    assert world.state.charged == 1


def test_the_ledger_remembers_who_gave_way() -> None:
    world = started(elastic())
    world.ask("worker-3", "worker-1")
    world.settle()
    text = state_annotation.encode(world.job, world.state)
    stored = state_annotation.restore(
        {"metadata": {"uid": "job-uid", "annotations": {state_annotation.ANNOTATION: text}}}
    )
    assert stored == compact_state(world.state, Memory.ROSTER)
    assert stored is not None
    reclaimed = [index for index in range(4) if (task := stored.task(TaskRef("worker", index))) and task.reclaimed]
    assert reclaimed == [1, 3]


def test_a_job_that_goes_gives_nobody_back() -> None:
    world = started(elastic())
    world.ask("worker-3")
    world.leave("worker-0")  # and so it restarts as a whole, which is all there is to say
    world.step()
    world.ask("worker-2")
    step = world.step()
    assert step.notifications == ()
