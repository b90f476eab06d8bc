"""What a waiting group is told is the cause that keeps it, and what it advises can be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kit.planner_board import HOST, NS, RACK, Board, cores, key, said
from shoal.kube.selectors import from_labels
from shoal.scheduler.planner.gang_types import PodGroupPhase, SubgroupPolicy, TopologyConstraint
from shoal.scheduler.planner.snapshot_types import AffinityTerm


def test_a_share_by_weight_is_not_called_a_limit() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.queue("a")
    board.queue("b")
    board.running("first", 1, ["n"], queue="a")
    board.group("second", 2, queue="a")
    board.running("other", 2, ["n"], queue="b")
    board.group("more", 2, queue="b")
    made = board.cycle()
    assert made.binds == ()
    assert said(made, "second") == (
        "waiting: needs 2 cpu; by weight queue a has a share of 2 now, of which 1 are used; "
        "the share grows when other queues need less, or with more weight"
    )


def test_a_capability_below_the_share_by_weight_is_called_by_its_name() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.queue("a", capability=cores(cpu=1))
    board.running("first", 1, ["n"], queue="a")
    board.group("second", 1, queue="a")
    assert said(board.cycle(), "second") == "waiting: needs 1 cpu, and queue a may hold 1 and already counts 1"


def asks_for_too_much(queue: str, cpu: int, *, let_in: bool, board: Board) -> str:
    phase = PodGroupPhase.INQUEUE if let_in else PodGroupPhase.PENDING
    board.group("g", 1, cpu=cpu, queue=queue, phase=phase, min_resources=None if let_in else cores(cpu=cpu))
    return said(board.cycle(), "g")


def board_of(cpu: int, queues: dict[str, dict[str, Any]], **settings: Any) -> Board:
    """One node and these queues."""
    board = Board(**settings)
    board.node("n", cpu=cpu)
    for name, limits in queues.items():
        board.queue(name, **limits)
    return board


LET_IN = pytest.mark.parametrize("let_in", [False, True], ids=["outside its queue", "let into its queue"])
NEVER: dict[str, tuple[Callable[[], Board], str, int, str]] = {
    "its own capability": (
        partial(board_of, 4, {"small": {"capability": cores(cpu=1)}}),
        "small", 2,
        "waiting: needs 2 cpu, and queue small may hold 1 in all, "
        "so raise its capability, request less, or name another queue",
    ),
    "that of the queue above": (
        partial(board_of, 8, {"dept": {"capability": cores(cpu=2)}, "team": {"parent": "dept"}}, sharing="capacity"),
        "team", 3,
        "waiting: needs 3 cpu, and queue team may hold 2 in all, "
        "so raise the capability of queue dept above it, request less, or name another queue",
    ),
    "what is guaranteed to others": (
        partial(board_of, 8, {"a": {}, "b": {"guarantee": cores(cpu=6)}}),
        "a", 3,
        "waiting: needs 3 cpu, and queue a may hold 2 in all, "
        "so lower the guarantees of other queues, request less, or name another queue",
    ),
    "the cluster, not the capability": (
        partial(board_of, 4, {"a": {"capability": cores(cpu=64)}}),
        "a", 6,
        "waiting: needs 6 cpu, and queue a may hold 4 in all, so request less or add nodes",
    ),
}  # fmt: skip


@LET_IN
@pytest.mark.parametrize(("make", "queue", "cpu", "sentence"), NEVER.values(), ids=NEVER)
def test_who_asks_for_more_than_its_queue_may_ever_hold_is_told_what_is_too_small(
    make: Callable[[], Board], queue: str, cpu: int, sentence: str, let_in: bool
) -> None:
    assert asks_for_too_much(queue, cpu, let_in=let_in, board=make()) == sentence


def test_a_share_by_weight_does_not_hide_a_capability_that_is_too_small() -> None:
    board = Board()
    board.node("n", cpu=8)
    board.queue("a", capability=cores(cpu=5))
    board.queue("b")
    board.running("other", 4, ["n"], queue="b")
    board.group("more", 4, queue="b")
    assert asks_for_too_much("a", 6, let_in=True, board=board) == (
        "waiting: needs 6 cpu, and queue a may hold 5 in all, "
        "so raise its capability, request less, or name another queue"
    )


def sent_back(board: Board, *, cpu: int) -> None:
    """A gang of two that was let in and found no place in its time."""
    board.group("g", 2, cpu=cpu, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2 * cpu))
    board.cycle()
    board.cycle(later=600)


def test_a_group_that_had_its_time_in_the_queue_is_told_what_keeps_it() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    sent_back(board, cpu=3)
    keeps = (
        "waiting: needs 2 pods at once, 1 would fit, 1 missing: needs 6 cpu, 4 of 4 are free, the most on one node is "
        "4 on node n; the request would not fit even without other pods, so request less or add nodes"
    )
    had = "the PodGroup was admitted, but none of its pods could be placed in time; it is not admitted again for"
    assert said(board.cycle(), "g") == f"{keeps}; {had} 60 seconds"
    board.cycle(later=60)
    assert said(board.cycle(later=600), "g") == f"{keeps}; {had} 120 seconds"


def test_nothing_is_said_to_keep_a_group_for_which_there_is_room_by_now() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    sent_back(board, cpu=2)
    board.finishes("old")
    assert said(board.cycle(), "g") == (
        "waiting: the PodGroup was admitted, but none of its pods could be placed in time; "
        "it is not admitted again for 60 seconds"
    )


def test_one_pod_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 0, min_member=2, min_roles={"ps": 1, "worker": 1})
    board.pods("g", range(1), role="ps")
    board.pods("g", range(1), role="worker", cpu=8)
    assert said(board.cycle(), "g").startswith(
        "waiting: needs 1 pod of worker at once, 0 would fit, 1 missing: needs 8 cpu, the most free is 4 of 4 on node n"
    )


def test_one_subgroup_is_not_called_subgroups() -> None:
    board = Board()
    policy = SubgroupPolicy("part", size=2, minimum=1, label_keys=("part",))
    board.group("g", 0, min_member=2, subgroups=(policy,))
    for number, part in enumerate("ab"):  # one of each part would fit
        board.node(part, cpu=1, labels={"part": part})
        board.pods("g", range(2 * number, 2 * number + 2), labels={"part": part}, node_selector={"part": part})
    assert said(board.cycle(), "g").startswith("waiting: needs 1 whole subgroup of part, and none fits")


def test_one_pod_that_makes_way_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=1)
    board.running("low", 1, ["n"])
    board.group("high", 1, priority=5)
    assert said(board.cycle(), "high") == "waiting: 1 pod on the chosen nodes must terminate first"


def test_one_pod_that_has_its_place_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=1)
    board.running("g", 1, ["n"])
    board.view.set_group(replace(board.view.groups[key("g")].group, phase=PodGroupPhase.INQUEUE, ran=False))
    assert said(board.cycle(), "g") == "1 pod is placed"


def test_nodes_that_are_reserved_for_another_group_are_named_as_that() -> None:
    board = Board(starving_seconds=60.0)
    board.node("n", cpu=8)
    board.running("old", 4, ["n"])
    board.group("big", 6)
    board.cycle(later=60)
    board.group("small", 1)
    assert said(board.cycle(), "small").startswith("waiting: a group that has waited longer reserves the only node")


def test_a_pod_beyond_the_minimum_waits_for_the_domain_of_its_gang() -> None:
    board = Board(tiers=(RACK,))
    for rack in ("r1", "r2"):
        board.node(rack, cpu=2, labels={RACK: rack})
    board.running("g", 2, ["r1"], closeness=TopologyConstraint(hard=True, tier=1))
    board.pods("g", [2])
    assert (
        said(board.cycle(), "g")
        == "waiting: needs 1 more pod in rack r1, where the other pods of the gang run, and too little is free there"
    )


def test_pods_of_a_gang_that_compete_for_the_same_resources_are_named_with_what_they_lack() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 0, min_member=2, min_roles={"ps": 1, "worker": 1})
    board.pods("g", [0], role="ps", cpu=3)
    board.pods("g", [0], role="worker", cpu=2)
    assert said(board.cycle(), "g") == (
        "waiting: needs 1 pod of worker at once, 0 would fit, 1 missing: needs 2 cpu, the most free is 1 of 4 on node n"
    )


def test_rules_that_leave_no_place_in_the_roomiest_domain_are_named_with_the_nodes_of_that_domain() -> None:
    board = Board(tiers=(RACK,))
    for name, rack in (("a", "r1"), ("b", "r2")):
        board.node(name, cpu=4, labels={RACK: rack, HOST: name})
    rule = AffinityTerm(from_labels({"app": "x"}), HOST, frozenset({NS}))
    board.group("g", 2, closeness=TopologyConstraint(hard=True, tier=1), labels={"app": "x"}, apart=(rule,))
    assert said(board.cycle(), "g").split(";")[0] == (
        "waiting: in rack r1, which has the most free, needs 2 pods at once, 1 would fit, 1 missing: "
        "required pod anti-affinity to pod with app=x, per kubernetes.io/hostname, excludes 1 node"
    )
