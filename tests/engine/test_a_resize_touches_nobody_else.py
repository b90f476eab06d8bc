"""Size changes in every stage: who goes, who comes, who counts, and that everybody else stays as they were."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.engine_jobs import fc_role, fc_verdicts, framework, resized, t9, volcano
from kit.engine_world import World, started
from shoal.engine import Create, Delete, NoticeKind, Stage, TaskRef
from shoal.engine.messages import CATALOG
from shoal.engine.policies import VictimOrder
from shoal.engine.state import format_tasks


def four() -> World:
    return started(framework(fc_role("a", 4), rules={"a": (4, 1)}))


def test_failed_tasks_scaled_away_with_the_rule_do_not_count():
    world = four()
    world.leave("a-2", "a-3")
    world.settle()
    assert world.story()["a-3"] == "done 0 -101"
    world.edit(lambda job: resized(job, {"a": (2, 2)}, a=2))
    world.settle()

    assert world.story() == {"a-0": "running 0", "a-1": "running 0"}
    assert world.state.run.stage is Stage.RUNNING
    removed = [n for step in world.steps for n in step.notices if n.kind is NoticeKind.TASK_REMOVED]
    assert sorted(notice.record.index for notice in removed) == [2, 3]


def test_growing_while_shrinking_replaces_each_dropped_task_once_it_is_gone():
    world = four()
    old = {index: world.task("a", index).instance for index in range(4)}
    world.leave("a-2")
    world.settle()
    world.edit(lambda job: resized(job, {"a": (2, 2)}, a=2))
    world.step()
    world.edit(lambda job: resized(job, {"a": (5, 5)}, a=5))
    world.settle(reap=False)
    assert world.story()["a-3'"] == "leaving 0 -230"
    assert {"a-2", "a-4"} <= world.story().keys()
    world.settle()

    assert world.story() == {f"a-{i}": "running 0" if i < 2 else "preparing 0" for i in range(5)}
    assert all(world.task("a", index).instance != old[index] for index in (2, 3))
    assert all(world.task("a", index).instance == old[index] for index in (0, 1))


def test_every_growth_is_told_also_the_one_from_nothing():
    world = started(framework(fc_role("a", 0), rules={"a": (1, -1)}))
    for size in (1, 0, 2, 3):
        world.edit(lambda job, size=size: resized(job, {"a": (1, -1)}, a=size))
        world.settle()

    told = [
        CATALOG.text(s.message)
        for step in world.steps
        for s in step.notifications
        if s.reason in ("ScaledUp", "ScaledDown")
    ]
    assert told == [
        "Scaled up to 1: a-0 added",
        "Scaled down to 0: a-0 removed",
        "Scaled up to 2: a-0 and a-1 added",
        "Scaled up to 3: a-2 added",
    ]


def test_the_first_tasks_of_a_job_are_no_growth():
    assert [s.reason for step in four().steps for s in step.notifications if s.reason == "ScaledUp"] == []


def test_scaling_to_nothing_rests_and_does_not_end():
    world = four()
    world.edit(lambda job: resized(job, {"a": (1, -1)}, a=0))
    world.settle()
    assert (world.story(), world.pods, world.state.run.stage) == ({}, {}, Stage.RUNNING)
    world.edit(lambda job: resized(job, {"a": (1, -1)}, a=2))
    world.settle()

    assert sorted(world.pods) == ["a-0", "a-1"]


def test_scaling_away_the_last_unfinished_task_can_complete_the_job():
    world = started(framework(fc_role("a", 3), rules={"a": (-1, -1)}))
    world.exits("a-0", 0)
    world.exits("a-1", 0)
    world.settle()
    world.edit(lambda job: resized(job, {"a": (-1, -1)}, a=2))
    world.settle()

    assert world.state.run.stage is Stage.DONE
    assert world.state.run.outcome.text == "CompletedTaskCount 2 has reached TotalTaskCount 2"


def test_a_closed_run_keeps_its_size_and_the_next_one_has_the_new():
    world = started(framework(fc_role("a", 2), run=(False, 1)))
    world.exits("a-0", 1)
    world.step()
    world.step()
    world.reap("a-0")
    world.step()
    assert not world.state.run.is_open
    world.edit(lambda job: resized(job, a=4))
    world.step()
    assert len(world.story()) == 2
    world.settle()

    assert (world.state.run.number, len(world.story())) == (1, 4)


def test_roles_come_and_go_without_disturbing_others():
    world = started(framework(fc_role("a", 2)))
    kept = [world.pods["a-0"].uid, world.pods["a-1"].uid]
    world.job = framework(fc_role("a", 2), fc_role("b", 2))
    world.settle()
    assert [world.pods[f"a-{i}"].uid for i in range(2)] == kept
    world.run()
    world.job = framework(fc_role("b", 2))
    world.step()
    assert world.story()["a-0'"] == "closing 0 -230"
    world.settle()

    assert [role.name for role in world.state.roles] == ["b"]
    assert sorted(world.pods) == ["b-0", "b-1"]


def test_a_task_that_is_scaled_away_before_it_was_made_is_looked_for_before_it_is_done():
    world = started(framework(fc_role("a", 1), rules={"a": (-1, -1)}))
    world.edit(lambda job: resized(job, {"a": (-1, -1)}, a=2))
    world.step(crash_after=0)
    world.edit(lambda job: resized(job, {"a": (-1, -1)}, a=1))
    assert world.step().writes == (Delete(TaskRef("a", 1), "", confirm=True),)
    world.settle()

    assert world.story() == {"a-0": "running 0"}


def test_named_victims_leave_gaps_that_are_filled_first():
    job = volcano(victims=VictimOrder.NAMED)
    world = started(replace(job, roles=(replace(job.roles[1], size=4, reactions=()),), minimum=1))
    world.edit(lambda job: replace(job, roles=(replace(job.roles[0], size=3, victims=(1,)),)))
    world.settle()
    assert sorted(world.pods) == ["trainer-0", "trainer-2", "trainer-3"]
    world.edit(lambda job: replace(job, roles=(replace(job.roles[0], size=4),)))
    world.settle()

    assert sorted(world.pods) == [f"trainer-{i}" for i in range(4)]


def test_whoever_does_not_run_yet_goes_first_where_the_dialect_says_so():
    job = volcano(victims=VictimOrder.PENDING_FIRST)
    world = World(replace(job, roles=(replace(job.roles[1], size=3, reactions=()),), minimum=1))
    world.settle()
    world.run("trainer-0", "trainer-2")
    world.settle()
    world.edit(lambda job: replace(job, roles=(replace(job.roles[0], size=2),)))
    world.settle()

    assert sorted(world.pods) == ["trainer-0", "trainer-2"]


def test_a_member_scaled_away_costs_nothing_and_restarts_nobody():
    world = started(volcano())
    world.edit(lambda job: replace(job, roles=(replace(job.roles[0], size=1), job.roles[1]), minimum=3))
    step = world.step()
    assert [type(write).__name__ for write in step.writes][:2] == ["Mark", "Delete"]
    world.exits("pserver-1", 1)
    world.settle()

    assert (world.state.charges, world.state.run.number) == ({}, 0)
    assert sorted(world.pods) == ["pserver-0", "trainer-0", "trainer-1"]


@given(sizes=st.lists(st.integers(0, 6), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_survivors_keep_their_records_and_bodies(sizes: list[int]):
    world = started(framework(fc_role("a", 3), rules={"a": (-1, -1)}))
    for size in sizes:
        before = {task.index: task for task in world.state.role("a").tasks if not task.dropped}
        world.edit(lambda job, size=size: resized(job, {"a": (-1, -1)}, a=size))
        step = world.step()
        after = {task.index: task for task in world.state.role("a").tasks if not task.dropped}
        kept = [index for index in after if index < size and index in before]
        assert [after[index] for index in kept] == [before[index] for index in kept]
        doomed = {write.target.index for write in step.writes if isinstance(write, Delete)}
        assert all(index >= size for index in doomed)
        world.settle()
        world.run()
        world.settle()
        assert sorted(world.pods) == sorted(f"a-{index}" for index in range(size))


def test_a_resize_of_a_weighted_job_adds_only_what_is_missing():
    world = started(t9(3))
    before = {name: pod.uid for name, pod in world.pods.items()}
    world.edit(lambda job: resized(job, worker=4))
    step = world.step()

    assert [str(write.target) for write in step.writes if isinstance(write, Create)] == ["worker-3"]
    world.settle()
    assert {name: pod.uid for name, pod in world.pods.items() if name in before} == before


def test_an_edit_of_the_rule_alone_can_end_the_run():
    world = started(framework(fc_role("a", 4), rules={"a": (3, -1)}))
    for name in ("a-3", "a-1"):
        world.exits(name, 1)
        world.settle()
        world.tick(2)
    rules = fc_verdicts({"a": (2, -1)})
    completion = replace(world.job.policies.completion, rules=rules)
    world.edit(lambda job: replace(job, policies=replace(job.policies, completion=completion)))
    world.settle()

    trigger = world.state.run.outcome.trigger
    assert (trigger.role, trigger.index) == ("a", 1)


@pytest.mark.parametrize(
    ("indexes", "text"),
    [([2], "a-2"), ([2, 3], "a-2 and a-3"), ([0, 1, 2, 3, 7], "a-0 to a-3 and a-7"), ([1, 3, 5], "a-1, a-3 and a-5")],
)
def test_tasks_are_listed_as_people_do(indexes, text):
    assert format_tasks("a", indexes) == text
