"""A gated gang keeps no resources from others and evicts nothing, and it starts when its gates are removed."""

from __future__ import annotations

from dataclasses import replace

from kit.planner_board import Board, binds, cores, evicted, key, said
from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.kube.kinds import POD, PRIORITY_CLASS
from shoal.scheduler.planner.gang_types import PodGroupPhase

GATES = [{"name": "example.com/g1"}]


def ungated(board: Board, group: str) -> None:
    for pod in list(board.view.groups[key(group)].gated.values()):
        board.view.set_pod(replace(pod, gated=False))


def test_05_a_gated_gang_holds_no_admitted_resources() -> None:
    board = Board(overcommit=1.0)
    board.node("n", cpu=4)
    board.group("gated", 4, gated=True, min_resources=cores(cpu=4), inqueue_since=board.now)
    for name in ("one", "two"):
        board.group(name, 2, min_resources=cores(cpu=2), phase=PodGroupPhase.PENDING)
    assert sorted(binds(board.cycle())) == ["one-0", "one-1", "two-0", "two-1"]


def test_05_a_gang_with_some_gated_pods_holds_what_the_others_ask_for() -> None:
    board = Board(overcommit=1.0)
    board.node("n", cpu=4)
    board.group("half", 2, min_member=4, min_resources=cores(cpu=4), inqueue_since=board.now)
    board.pods("half", [2, 3], gated=True)
    for name in ("one", "two"):
        board.group(name, 2, min_resources=cores(cpu=2), phase=PodGroupPhase.PENDING)
    made = board.cycle()
    assert sorted(binds(made)) == ["one-0", "one-1"]
    assert said(made, "half") == (
        "waiting: 2 of the 4 pods the gang needs at once have no scheduling gates; 2 pods have gates"
    )


def test_05_the_gates_of_one_task_are_named() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("job", min_member=2, min_roles={"ps": 1, "worker": 1})
    board.pods("job", range(2), role="worker")
    board.pods("job", [0], role="ps", gated=True)
    gated = "waiting: 0 of the 1 pods of ps the gang needs at once have no scheduling gates; 1 pod has gates"
    assert said(board.cycle(), "job") == gated


def test_05_a_gated_gang_preempts_when_its_gates_are_removed_and_not_before() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.running("low", 4, ["n"], min_member=1)
    board.group("high", 2, priority=5, gated=True)
    assert evicted(board.cycle()) == []
    ungated(board, "high")
    assert evicted(board.cycle()) == ["low-2", "low-3"]


def test_05_removed_gates_free_the_place_in_the_queue_that_others_have_used() -> None:
    board = Board(overcommit=1.0)
    board.node("n", cpu=4)
    board.group("gated", 4, gated=True, min_resources=cores(cpu=4), inqueue_since=board.now)
    board.group("one", 4, min_resources=cores(cpu=4), phase=PodGroupPhase.PENDING)
    board.cycle()
    ungated(board, "gated")
    assert binds(board.cycle()) == {}
    board.finishes("one")
    assert len(binds(board.cycle())) == 4


async def remove_gates(it: Scheduled, *names: str) -> None:
    for name in names:
        await it.cluster.patch(POD, name, NS, patch={"spec": {"schedulingGates": None}})
    await it.rest()


async def test_05_a_job_whose_gates_are_removed_starts() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=2)
        await it.group("job", 2, minResources={"cpu": "2"})
        await it.pods("job", 2, schedulingGates=GATES)
        await it.rest(700)  # longer than a group may stay in the queue without a place
        assert await it.placed() == []
        await remove_gates(it, "job-0")
        assert await it.placed() == []
        await remove_gates(it, "job-1")
        assert await it.placed() == ["job-0", "job-1"]


async def test_05_a_job_whose_gates_are_removed_has_its_time_in_the_queue_from_then_on() -> None:
    async with scheduled() as it:
        await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
        await it.node("a", cpu=2)
        await it.group("job", 2, minResources={"cpu": "2"})
        await it.pods("job", 2, schedulingGates=GATES)
        await it.gang("other", 2)
        await it.rest(700)
        await remove_gates(it, "job-0", "job-1")
        assert await it.phase("job") == "Inqueue"
        await it.ends("other-0", "other-1")
        assert set(await it.placed()) >= {"job-0", "job-1"}


async def test_05_the_group_of_a_gated_job_has_an_unschedulable_event() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=2)
        await it.group("job", 2)
        await it.pods("job", 2, schedulingGates=GATES)
        await it.rest(5)
        gated = "0 of the 2 pods the gang needs at once have no scheduling gates; 2 pods have gates"
        assert await it.events("Unschedulable") == [("job", f"waiting: {gated}")]
        assert await it.told("job") == ("Unschedulable", "NotEnoughTasks", gated)
        assert await it.phase("job") == "Inqueue"
