"""Pods without a PodGroup occupy nodes and count against no queue, as in Volcano: allocate.go, reclaim.go and
hypernode of its end-to-end suite fill the nodes with such pods, and the group under test is admitted nevertheless."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kit.planner_board import Board, binds, cores, evicted, key, said, verdict
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState


def plain(board: Board, count: int, node: str = "n", **more: Any) -> None:
    for number in range(count):
        pod = Pod(key(f"plain-{number}"), f"uid-{number}", cores(cpu=1, pods=1), **more)
        board.view.set_pod(replace(pod, node=node, state=PodState.RUNNING) if node else pod)


def test_22_a_group_is_admitted_beside_pods_without_a_group_and_waits_for_a_node() -> None:
    """allocate.go:113 and 209, hypernode cases 1.3, 2.2, 5.6 and 7.2: its pods exist and are Pending."""
    board = Board()
    board.node("n", cpu=16)
    plain(board, 16)
    board.group("job", 1, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=1))
    made = board.cycle()
    assert verdict(made, "job").phase is PodGroupPhase.INQUEUE
    assert said(made, "job") == "waiting: needs 1 cpu, the most free is 0 of 16 on node n"


def test_22_the_whole_cluster_admits_no_more_than_it_may_beside_pods_without_a_group() -> None:
    board = Board(overcommit=1.2)
    board.node("n", cpu=10)
    plain(board, 10)
    board.group("a", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2))
    board.group("b", 1, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=1))
    made = board.cycle()
    assert verdict(made, "a").phase is PodGroupPhase.INQUEUE
    words = "waiting: needs 1 cpu; admitted groups may request 12 in this cluster and already request 12"
    assert said(made, "b") == words


def test_22_what_is_guaranteed_is_a_part_of_the_whole_cluster() -> None:
    """reclaim.go after guarantee.go, which leaves a queue with a guarantee behind: the rest is for all queues."""
    board = Board()
    board.node("n", cpu=16)
    plain(board, 13)
    board.queue("reserved", guarantee=cores(cpu=2))
    for name in ("q1", "q2", "q3"):
        board.queue(name)
        board.group(f"job-{name}", 1, queue=name)
    assert len(binds(board.cycle())) == 3


def test_22_the_ceiling_of_queue_default_is_not_for_pods_that_name_no_queue() -> None:
    board = Board()
    board.node("n", cpu=8)
    board.queue("default", capability=cores(cpu=2))
    plain(board, 4, node="")
    board.group("job", 2)
    board.group("refused", 1)
    assert sorted(binds(board.cycle())) == ["job-0", "job-1", "plain-0", "plain-1", "plain-2", "plain-3"]


def test_22_nodes_are_reserved_for_a_pod_without_a_group_whatever_queue_default_may_hold() -> None:
    board = Board(starving_seconds=60.0)
    board.node("n", cpu=8)
    board.queue("default", capability=cores(cpu=2))
    pod = Pod(key("big"), "uid-big", cores(cpu=6, pods=1))
    board.view.set_pod(replace(pod, key=key("first"), uid="uid-first", node="n", state=PodState.RUNNING))
    board.view.set_pod(pod)
    assert [nodes for _, nodes in board.cycle(later=100).reservations] == [("n",)]


def test_22_the_ceiling_of_a_queue_is_for_pods_that_name_it() -> None:
    board = Board()
    board.node("n", cpu=8)
    board.queue("small", capability=cores(cpu=2))
    plain(board, 4, node="", queue="small")
    assert len(binds(board.cycle())) == 2


def test_22_queues_divide_what_pods_without_a_group_leave() -> None:
    """No queue can reclaim eight of the cores, so two queues of equal weight deserve two of the other four each."""
    board = Board()
    board.node("n", cpu=12)
    plain(board, 8)
    for name in ("a", "b"):
        board.queue(name)
    board.running("first", 4, ["n"], queue="a", min_member=1)
    board.group("second", 2, queue="b")
    assert len(evicted(board.cycle())) == 2


def test_22_pods_without_a_group_evict_nothing_of_other_queues() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.queue("a")
    board.running("job", 4, ["n"], queue="a", min_member=1)
    plain(board, 1, node="")
    assert evicted(board.cycle()) == []


def test_22_pods_without_a_group_give_way_to_higher_priorities_of_queue_default() -> None:
    board = Board()
    board.node("n", cpu=4)
    plain(board, 4)
    board.group("high", 2, priority=5)
    assert len(evicted(board.cycle())) == 2
