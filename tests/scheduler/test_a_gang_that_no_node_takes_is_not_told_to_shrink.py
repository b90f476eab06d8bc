"""Where labels, taints or the state of nodes keep a gang out, its size is not what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import Board, said, verdict
from shoal.scheduler.messages import text
from shoal.scheduler.planner.gang_types import PodGroupPhase

SMALLER = "a smaller request would find no node either, so"
NEVER = "the request would not fit even without other pods, so request less or add nodes"
LABELS = "label a node or change the node selector"
TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}
ELSEWHERE: tuple[dict[str, Any], ...] = ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["west"]}]},)

NODES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "selector": ({}, {"node_selector": {"gpu": "H200"}}, "does not match the pod's node selector", LABELS),
    "affinity": (
        {},
        {"node_terms": ELSEWHERE},
        "does not match the pod's node affinity",
        "label a node or change the node affinity",
    ),
    "taint": (
        {"taints": (TAINT,)},
        {},
        "has the taint team=vision:NoSchedule, which the pod does not tolerate",
        "tolerate a taint or remove it",
    ),
    "volumes": (
        {},
        {"volume_terms": (ELSEWHERE,)},
        "does not reach the pod's volumes",
        "use volumes that a node reaches",
    ),
    "cordon": ({"unschedulable": True}, {}, "is cordoned", "uncordon a node"),
    "not ready": ({"ready": False}, {}, "is not ready", "bring a node back"),
}


@pytest.mark.parametrize("case", NODES)
def test_the_way_out_is_the_one_past_what_keeps_nodes_closed(case: str) -> None:
    node, pods, why, way = NODES[case]
    board = Board()
    board.node("n", cpu=4, **node)
    board.group("g", 2, **pods)
    found = verdict(board.cycle(), "g")
    assert (text(found.message), found.reason, found.too_large) == (
        f"waiting: needs 2 pods at once, 0 would fit, 2 missing: 1 node {why}; {SMALLER} {way}",
        "NotEnoughResources",
        False,
    )


def test_a_gang_outside_its_queue_for_a_while_is_told_the_same() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    board.group("g", 1, phase=PodGroupPhase.PENDING, min_resources={"cpu": 1000}, node_selector={"gpu": "H200"})
    board.cycle()
    board.cycle(later=600)
    assert said(board.cycle(), "g").startswith(
        f"waiting: 1 node does not match the pod's node selector; {SMALLER} {LABELS}; the PodGroup was admitted"
    )


def test_nodes_that_are_closed_for_several_reasons_have_several_ways_in() -> None:
    board = Board()
    board.node("a", cpu=4)
    board.node("b", cpu=4, taints=(TAINT,))
    board.group("g", 1, node_selector={"gpu": "H200"})
    assert said(board.cycle(), "g").endswith(f"; {SMALLER} {LABELS}, or tolerate a taint or remove it")


def test_a_cluster_without_nodes_needs_some() -> None:
    board = Board()
    board.group("g", 2)
    assert said(board.cycle(), "g").endswith(f": the cluster has no node yet; {SMALLER} add nodes")


def test_a_gang_that_labels_and_size_keep_out_is_told_of_both() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 1, cpu=8, node_selector={"gpu": "H200"})
    found = verdict(board.cycle(), "g")
    assert (text(found.message), found.reason) == (
        f"waiting: 1 node does not match the pod's node selector; {NEVER}; {SMALLER} {LABELS}",
        "TooLarge",
    )


@pytest.mark.parametrize("roles", [{}, {"ps": 1, "worker": 1}], ids=["in all", "by role"])
def test_the_pod_that_no_node_takes_is_told_of_before_one_that_waits_for_others(roles: dict[str, int]) -> None:
    board = Board(preempt=False)
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    board.group("g", 0, min_member=2, min_roles=roles)
    board.pods("g", range(1), role="ps")
    board.pods("g", range(1), role="worker", node_selector={"gpu": "H200"})
    assert said(board.cycle(), "g").endswith(
        f"missing: 1 node does not match the pod's node selector; {SMALLER} {LABELS}"
    )


def test_one_node_that_takes_it_makes_it_a_matter_of_size() -> None:
    board = Board()
    board.node("a", cpu=4)
    board.node("b", cpu=2, labels={"gpu": "H200"})
    board.group("g", 1, cpu=3, node_selector={"gpu": "H200"})
    assert said(board.cycle(), "g").endswith(f"1 node does not match the pod's node selector; {NEVER}")
