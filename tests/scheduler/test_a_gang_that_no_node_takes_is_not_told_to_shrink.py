"""Where labels, taints or the state of nodes keep a gang out, its size is not what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import Board, causes, message, verdict
from shoal.kube.messages import Message
from shoal.scheduler.planner.gang_types import PodGroupPhase

NO_LABEL, NEVER = message("Barred.NodeSelector.One"), message("Remedy.NeverFits")


def instead(*remedies: str) -> Message:
    """That a smaller gang would not fit either, and what helps."""
    return message("Remedy.NoNodeTakesIt", ways=[message(f"Remedy.{remedy}") for remedy in remedies])


def of_two(cause: Message) -> Message:
    return message("Gang.TooFew", pods=message("Pods", count=2), fits=0, missing=2, cause=cause)


TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}
ELSEWHERE: tuple[dict[str, Any], ...] = ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["west"]}]},)

NODES: dict[str, tuple[dict[str, Any], dict[str, Any], Message, str]] = {
    "selector": ({}, {"node_selector": {"gpu": "H200"}}, NO_LABEL, "NodeSelector"),
    "affinity": ({}, {"node_terms": ELSEWHERE}, message("Barred.NodeAffinity.One"), "NodeAffinity"),
    "taint": ({"taints": (TAINT,)}, {}, message("Barred.Taint.One", taint="team=vision:NoSchedule"), "Taint"),
    "volumes": ({}, {"volume_terms": (ELSEWHERE,)}, message("Barred.Volumes.One"), "Volumes"),
    "cordon": ({"unschedulable": True}, {}, message("Barred.Cordoned.One"), "Cordoned"),
    "not ready": ({"ready": False}, {}, message("Barred.NotReady.One"), "NotReady"),
}


@pytest.mark.parametrize("case", NODES)
def test_the_way_out_is_the_one_past_what_keeps_nodes_closed(case: str) -> None:
    node, pods, why, way = NODES[case]
    board = Board()
    board.node("n", cpu=4, **node)
    board.group("g", 2, **pods)
    made = board.cycle()
    found = verdict(made, "g")
    assert causes(made, "g") == [of_two(why), instead(way)]
    assert (found.reason, found.too_large) == ("NotEnoughResources", False)


def test_a_gang_outside_its_queue_for_a_while_is_told_the_same() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    board.group("g", 1, phase=PodGroupPhase.PENDING, min_resources={"cpu": 1000}, node_selector={"gpu": "H200"})
    board.cycle()
    board.cycle(later=600)
    assert causes(board.cycle(), "g") == [NO_LABEL, instead("NodeSelector"), message("Turn.TimedOut", seconds=60)]


def test_nodes_that_are_closed_for_several_reasons_have_several_ways_in() -> None:
    board = Board()
    board.node("a", cpu=4)
    board.node("b", cpu=4, taints=(TAINT,))
    board.group("g", 1, node_selector={"gpu": "H200"})
    assert causes(board.cycle(), "g")[-1] == instead("NodeSelector", "Taint")


def test_a_cluster_without_nodes_needs_some() -> None:
    board = Board()
    board.group("g", 2)
    assert causes(board.cycle(), "g") == [of_two(message("Resources.NoNode")), instead("AddNodes")]


def test_a_gang_that_labels_and_size_keep_out_is_told_of_both() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 1, cpu=8, node_selector={"gpu": "H200"})
    made = board.cycle()
    assert causes(made, "g") == [NO_LABEL, NEVER, instead("NodeSelector")]
    assert verdict(made, "g").reason == "TooLarge"


@pytest.mark.parametrize("roles", [{}, {"ps": 1, "worker": 1}], ids=["in all", "by role"])
def test_the_pod_that_no_node_takes_is_told_of_before_one_that_waits_for_others(roles: dict[str, int]) -> None:
    board = Board(preempt=False)
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    board.group("g", 0, min_member=2, min_roles=roles)
    board.pods("g", range(1), role="ps")
    board.pods("g", range(1), role="worker", node_selector={"gpu": "H200"})
    first, *others = causes(board.cycle(), "g")
    assert (first.parameters["cause"], others) == (NO_LABEL, [instead("NodeSelector")])


def test_one_node_that_takes_it_makes_it_a_matter_of_size() -> None:
    board = Board()
    board.node("a", cpu=4)
    board.node("b", cpu=2, labels={"gpu": "H200"})
    board.group("g", 1, cpu=3, node_selector={"gpu": "H200"})
    nodes, remedy = causes(board.cycle(), "g")
    assert (nodes.parameters["parts"][-1], remedy) == (NO_LABEL, NEVER)
