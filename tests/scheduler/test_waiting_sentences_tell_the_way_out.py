"""What a waiting group is told is the cause that keeps it, and what it advises can be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kit.planner_board import HOST, NS, RACK, Board, causes, cores, key, message, verdict
from shoal.kube.messages import Message
from shoal.kube.selectors import from_labels
from shoal.scheduler.planner.gang_types import PodGroupPhase, SubgroupPolicy, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm


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
    assert causes(made, "second") == [message("Quota.Weight", need="2", resource="cpu", limit="2", used="1", queue="a")]


def test_a_capability_below_the_share_by_weight_is_called_by_its_name() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.queue("a", capability=cores(cpu=1))
    board.running("first", 1, ["n"], queue="a")
    board.group("second", 1, queue="a")
    assert causes(board.cycle(), "second") == [
        message("Quota.Queue", need="1", resource="cpu", limit="1", used="1", queue="a")
    ]


def over(queue: str, need: int, limit: int, remedy: Message) -> list[Message]:
    return [message("Quota.OverQueue", need=str(need), resource="cpu", limit=str(limit), queue=queue, remedy=remedy)]


def asks_for_too_much(queue: str, cpu: int, *, let_in: bool, board: Board) -> list[Message]:
    phase = PodGroupPhase.INQUEUE if let_in else PodGroupPhase.PENDING
    board.group("g", 1, cpu=cpu, queue=queue, phase=phase, min_resources=None if let_in else cores(cpu=cpu))
    return causes(board.cycle(), "g")


def board_of(cpu: int, queues: dict[str, dict[str, Any]], **settings: Any) -> Board:
    """One node and these queues."""
    board = Board(**settings)
    board.node("n", cpu=cpu)
    for name, limits in queues.items():
        board.queue(name, **limits)
    return board


LET_IN = pytest.mark.parametrize("let_in", [False, True], ids=["outside its queue", "let into its queue"])
CAPABILITY, NEVER_FITS = message("Remedy.Capability"), message("Remedy.NeverFits")
NEVER: dict[str, tuple[Callable[[], Board], str, int, int, Message]] = {
    "its own capability": (
        partial(board_of, 4, {"small": {"capability": cores(cpu=1)}}),
        "small", 2, 1, CAPABILITY,
    ),
    "that of the queue above": (
        partial(board_of, 8, {"dept": {"capability": cores(cpu=2)}, "team": {"parent": "dept"}}, sharing="capacity"),
        "team", 3, 2, message("Remedy.CapabilityAbove", queue="dept"),
    ),
    "what is guaranteed to others": (
        partial(board_of, 8, {"a": {}, "b": {"guarantee": cores(cpu=6)}}),
        "a", 3, 2, message("Remedy.Guarantees"),
    ),
    "the cluster, not the capability": (
        partial(board_of, 4, {"a": {"capability": cores(cpu=64)}}),
        "a", 6, 4, message("Remedy.MoreNodes"),
    ),
}  # fmt: skip


@LET_IN
@pytest.mark.parametrize(("make", "queue", "cpu", "limit", "remedy"), NEVER.values(), ids=NEVER)
def test_who_asks_for_more_than_its_queue_may_ever_hold_is_told_what_is_too_small(
    make: Callable[[], Board], queue: str, cpu: int, limit: int, remedy: Message, let_in: bool
) -> None:
    assert asks_for_too_much(queue, cpu, let_in=let_in, board=make()) == over(queue, cpu, limit, remedy)


def test_a_share_by_weight_does_not_hide_a_capability_that_is_too_small() -> None:
    board = Board()
    board.node("n", cpu=8)
    board.queue("a", capability=cores(cpu=5))
    board.queue("b")
    board.running("other", 4, ["n"], queue="b")
    board.group("more", 4, queue="b")
    assert asks_for_too_much("a", 6, let_in=True, board=board) == over("a", 6, 5, CAPABILITY)


def sent_back(board: Board, *, cpu: int) -> None:
    """A gang of two that was let in and found no place in its time."""
    board.group("g", 2, cpu=cpu, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2 * cpu))
    board.cycle()
    board.cycle(later=600)


def test_a_group_that_had_its_time_in_the_queue_is_told_what_keeps_it() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    sent_back(board, cpu=3)
    short = message("Resources.InAll", need="6", resource="cpu", free="4", whole="4", most="4", node="n")
    keeps = message("Gang.TooFew", pods=message("Pods", count=2), fits=1, missing=1, cause=short)
    assert causes(board.cycle(), "g") == [keeps, NEVER_FITS, message("Turn.TimedOut", seconds=60)]
    board.cycle(later=60)
    assert causes(board.cycle(later=600), "g") == [keeps, NEVER_FITS, message("Turn.TimedOut", seconds=120)]


def test_nothing_is_said_to_keep_a_group_for_which_there_is_room_by_now() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    sent_back(board, cpu=2)
    board.finishes("old")
    assert causes(board.cycle(), "g") == [message("Turn.TimedOut", seconds=60)]


def one_worker(*, need: str, free: str) -> Message:
    short = message("Resources.Short", need=need, resource="cpu", free=free, whole="4", node="n")
    return message("Gang.TooFewOfUnit", pods=message("Pods.One"), unit="worker", fits=0, missing=1, cause=short)


def test_one_pod_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 0, min_member=2, min_roles={"ps": 1, "worker": 1})
    board.pods("g", range(1), role="ps")
    board.pods("g", range(1), role="worker", cpu=8)
    assert causes(board.cycle(), "g")[0] == one_worker(need="8", free="4")


def test_one_subgroup_is_not_called_subgroups() -> None:
    board = Board()
    policy = SubgroupPolicy("part", size=2, minimum=1, label_keys=("part",))
    board.group("g", 0, min_member=2, subgroups=(policy,))
    for number, part in enumerate("ab"):  # one of each part would fit
        board.node(part, cpu=1, labels={"part": part})
        board.pods("g", range(2 * number, 2 * number + 2), labels={"part": part}, node_selector={"part": part})
    assert causes(board.cycle(), "g")[0] == message("Gang.Subgroup", unit="part")


def test_one_pod_that_makes_way_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=1)
    board.running("low", 1, ["n"])
    board.group("high", 1, priority=5)
    assert causes(board.cycle(), "high") == [message("Resources.LeavingPod")]


def test_one_pod_that_has_its_place_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=1)
    board.running("g", 1, ["n"])
    board.view.set_group(replace(board.view.groups[key("g")].group, phase=PodGroupPhase.INQUEUE, ran=False))
    assert verdict(board.cycle(), "g").message == message("Scheduled.OnePlaced")


def test_nodes_that_are_reserved_for_another_group_are_named_as_that() -> None:
    board = Board(starving_seconds=60.0)
    board.node("n", cpu=8)
    board.running("old", 4, ["n"])
    board.group("big", 6)
    board.cycle(later=60)
    board.group("small", 1)
    assert causes(board.cycle(), "small")[0] == message("Closed.Reservation", nodes=message("Nodes.Only"))


def test_a_pod_beyond_the_minimum_waits_for_the_domain_of_its_gang() -> None:
    board = Board(tiers=(RACK,))
    for rack in ("r1", "r2"):
        board.node(rack, cpu=2, labels={RACK: rack})
    board.running("g", 2, ["r1"], closeness=TopologyConstraint(hard=True, tier=1))
    board.pods("g", [2])
    assert causes(board.cycle(), "g") == [
        message("Topology.Full", pods=message("Pods.OneMore"), tier="rack", domain="r1")
    ]


def test_pods_of_a_gang_that_compete_for_the_same_resources_are_named_with_what_they_lack() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 0, min_member=2, min_roles={"ps": 1, "worker": 1})
    board.pods("g", [0], role="ps", cpu=3)
    board.pods("g", [0], role="worker", cpu=2)
    assert causes(board.cycle(), "g") == [one_worker(need="2", free="1")]


def test_rules_that_leave_no_place_in_the_roomiest_domain_are_named_with_the_nodes_of_that_domain() -> None:
    board = Board(tiers=(RACK,))
    for name, rack in (("a", "r1"), ("b", "r2")):
        board.node(name, cpu=4, labels={RACK: rack, HOST: name})
    rule = AffinityTerm(from_labels({"app": "x"}), HOST, frozenset({NS}))
    board.group("g", 2, closeness=TopologyConstraint(hard=True, tier=1), labels={"app": "x"}, apart=(rule,))
    others = message("Others.Selected", selector="app=x")
    apart = message("Closed.AntiAffinity", others=others, key=HOST, nodes=message("Nodes.One"))
    gang = message("Gang.TooFew", pods=message("Pods", count=2), fits=1, missing=1, cause=apart)
    assert causes(board.cycle(), "g")[0] == message("Topology.Roomiest", tier="rack", domain="r1", cause=gang)
