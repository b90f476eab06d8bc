"""What is guaranteed to a queue stays free for it, plain pods are no debt of a queue, and a preemption that would not
make enough room does not happen and is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.planner_board import Board, binds, cores, evicted, key, said
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState

SHARINGS = pytest.mark.parametrize("sharing", ["proportion", "capacity"])


@SHARINGS
def test_07_a_queue_that_reserves_all_of_the_free_part_keeps_others_out(sharing: str) -> None:
    """As in Volcano's suite: plain pods hold most of the cluster, and the rest is guaranteed to one queue."""
    board = Board(sharing=sharing)
    board.node("n", cpu=8)
    board.running("plain", 6, ["n"])
    board.queue("reserved", guarantee=cores(cpu=2), deserved=cores(cpu=2))
    board.queue("other")
    board.group("job", 1, queue="other")
    made = board.cycle()
    assert (binds(made), said(made, "job")) == (
        {},
        "waiting: needs 1 cpu; 2 are free, of which 2 are guaranteed to queue reserved",
    )


@SHARINGS
def test_07_a_queue_that_reserves_a_part_leaves_the_rest(sharing: str) -> None:
    board = Board(sharing=sharing)
    board.node("n", cpu=4)
    board.queue("reserved", guarantee=cores(cpu=1), deserved=cores(cpu=1))
    for name in ("a", "b"):
        board.queue(name)
        board.group(f"job-{name}", 2, queue=name)
    assert len(binds(board.cycle())) == 2, "3 of 4 cores are for others, and each gang needs 2"
    board.group("own", 1, queue="reserved")
    assert "own-0" in binds(board.cycle())


def test_07_what_is_guaranteed_below_one_parent_is_kept_from_its_siblings() -> None:
    board = Board(sharing="capacity")
    board.node("n", cpu=16)
    board.queue("dept", capability=cores(cpu=4))
    board.queue("reserved", parent="dept", guarantee=cores(cpu=2), deserved=cores(cpu=2))
    for name in ("a", "b"):
        board.queue(name, parent="dept")
        board.group(f"job-{name}", 2, queue=name)
    assert len(binds(board.cycle())) == 2


def plain_pods(board: Board, count: int) -> None:
    for number in range(count):
        pod = Pod(key(f"plain-{number}"), f"uid-{number}", cores(cpu=1, pods=1))
        board.view.set_pod(replace(pod, node="n", state=PodState.RUNNING))


def test_07_a_queue_is_not_over_its_share_because_of_plain_pods() -> None:
    """Reclaim case 6 of Volcano's suite: every queue runs one job, and a second job of one of them waits."""
    board = Board()
    board.node("n", cpu=16)
    plain_pods(board, 13)
    for name in ("default", "q2", "q3"):
        board.queue(name)
        board.running(f"job-{name}", 1, ["n"], queue=name)
    board.group("more", 1, queue="q3")
    assert evicted(board.cycle()) == []


def test_07_a_job_that_no_node_takes_evicts_nothing() -> None:
    board = Board()
    board.node("n", cpu=3)
    for name in ("default", "q2", "q3"):
        board.queue(name)
    board.running("one", 2, ["n"], min_member=1)
    board.running("two", 1, ["n"], queue="q2")
    board.group("nowhere", 1, queue="q3", node_selector={"disk": "fast"})
    assert evicted(board.cycle()) == []


def test_07_a_job_larger_than_all_that_may_be_reclaimed_evicts_nothing() -> None:
    board = Board()
    board.node("n", cpu=3)
    for name in ("default", "q2", "q3"):
        board.queue(name)
    board.running("one", 2, ["n"], min_member=1)
    board.running("two", 1, ["n"], queue="q2")
    board.group("great", 1, cpu=4, queue="q3")
    assert evicted(board.cycle()) == []


def test_07_several_queues_under_capacity_get_what_they_deserve() -> None:
    """Reclaim case 11 of Volcano's suite: two queues hold all, two others come one job after the other."""
    board = Board(sharing="capacity")
    for number in range(4):
        board.node(f"n{number}", cpu=2)
    for name, deserved in (("q1", 1), ("q2", 1), ("q3", 2), ("q4", 4)):
        board.queue(name, deserved=cores(cpu=deserved))
    for number, name in enumerate(("q1", "q2")):
        nodes = [f"n{2 * number}", f"n{2 * number + 1}"]
        board.running(f"low-{name}", 4, nodes, min_member=1, queue=name)
    for name, queue, cpu in (("j3", "q3", 2), ("j4", "q4", 2), ("j5", "q4", 1), ("j6", "q4", 1)):
        board.group(name, 1, cpu=cpu, queue=queue, priority=10)
        for _ in range(3):
            board.cycle(later=1)
            board.leaves()
            board.starts()
    assert [len(board.on_nodes(name)) for name in ("j3", "j4", "j5", "j6")] == [1, 1, 1, 1]
    assert [len(board.on_nodes(name)) for name in ("low-q1", "low-q2")] == [1, 1]


@pytest.mark.parametrize("more", [{}, {"min_member": 1}], ids=["a gang", "surplus pods"])
def test_07_a_preemption_that_would_not_make_enough_room_is_named(more: dict[str, Any]) -> None:
    board = Board()
    board.nodes(4)
    board.queue("other", reclaimable=False)
    board.running("low", 2, ["n0", "n1"], **more)
    board.running("reference", 2, ["n2", "n3"], queue="other", preemptable=False)
    board.group("high", 4, priority=5)
    made = board.cycle()
    assert evicted(made) == []
    assert said(made, "high").endswith(
        "; evicting all preemptible pods of lower priority in the same queue would not free enough"
    )


def test_07_pods_that_may_not_be_evicted_are_not_said_to_be_too_few() -> None:
    board = Board()
    board.node("n", cpu=2)
    board.running("bare", 1, ["n"], recreated=False)
    board.group("high", 2, priority=5)
    assert "evicting" not in said(board.cycle(), "high")
    board.running("low", 1, ["n"])
    assert said(board.cycle(), "high").endswith(
        "; evicting all preemptible pods of lower priority in the same queue would not free enough"
    )
