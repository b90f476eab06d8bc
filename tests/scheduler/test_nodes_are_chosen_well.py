"""Scenarios 19 to 21 of the gang specification: scores, topology; and the filters that no score overrules."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import GPU, RACK, SPINE, Board, binds, said
from shoal.kube.messages import Message
from shoal.kube.selectors import from_labels
from shoal.scheduler.planner.gang_types import HyperNode, SubgroupPolicy, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, SpreadConstraint


@pytest.mark.parametrize(("profile", "expected"), [("pack", "busy"), ("auto", "busy"), ("spread", "empty")])
def test_19_a_gpu_pod_is_packed_unless_told_to_spread(profile: str, expected: str) -> None:
    board = Board(profile=profile, accelerator_weight=5)
    board.node("busy", cpu=64, gpu=8)
    board.node("empty", cpu=64, gpu=8)
    board.running("old", 1, ["busy"], cpu=6, gpu=6)
    board.group("g", 1, gpu=2)
    assert binds(board.cycle()) == {"g-0": expected}


def racks(free: dict[str, int], *, per_rack: int = 4, spines: dict[str, str] | None = None) -> Board:
    """Racks of nodes with one core each; what is not free in a rack is taken by somebody."""
    board = Board(tiers=(RACK, SPINE))
    taken = []
    for rack, resources in free.items():
        for number in range(per_rack):
            name = f"{rack}-{number}"
            board.node(name, labels={RACK: rack, SPINE: (spines or {}).get(rack, "s")})
            if number >= resources:
                taken.append(name)
    if taken:
        board.running("others", len(taken), taken)
    return board


def used_racks(board: Board, group: str) -> set[str]:
    return {node.partition("-")[0] for node in board.on_nodes(group).values()}


def test_20_one_rack_holds_the_whole_gang() -> None:
    board = racks({"r1": 3, "r2": 4, "r3": 3})
    board.group("g", 4, closeness=TopologyConstraint(tier=1))
    board.cycle()
    assert used_racks(board, "g") == {"r2"}


def test_20_with_no_rack_large_enough_it_waits_and_the_largest_hole_is_named() -> None:
    board = racks({"r1": 2, "r2": 3})
    board.group("g", 4, closeness=TopologyConstraint(tier=1))
    made = board.cycle()
    assert made.binds == ()
    assert said(made, "g") == "waiting: needs 4 cpu in one rack, the most free is 3 in rack r2"


def test_20_a_soft_wish_spans_racks() -> None:
    board = racks({"r1": 3, "r2": 3})
    board.group("g", 4, closeness=TopologyConstraint(hard=False, tier=1))
    board.cycle()
    assert used_racks(board, "g") == {"r1", "r2"}


def test_20_a_wider_tier_spans_one_spine_and_not_two() -> None:
    spines = {"r1": "s1", "r2": "s2", "r3": "s2"}
    board = racks({"r1": 3, "r2": 2, "r3": 2}, spines=spines)
    board.group("g", 4, closeness=TopologyConstraint(tier=2))
    board.cycle()
    assert used_racks(board, "g") == {"r2", "r3"}
    board = racks({"r1": 3, "r2": 2, "r3": 1}, spines=spines)
    board.group("g", 4, closeness=TopologyConstraint(tier=2))
    assert board.cycle().binds == ()


def test_20_hypernodes_say_what_is_near() -> None:
    board = Board()
    board.nodes(6)
    board.view.set_hypernode(HyperNode("left", 1, frozenset({"n0", "n1", "n2"})))
    board.view.set_hypernode(HyperNode("right", 1, frozenset({"n3", "n4", "n5"})))
    board.group("a", 2, closeness=TopologyConstraint(tier=1))
    board.group("b", 3, closeness=TopologyConstraint(tier=1))
    made = board.cycle()
    assert binds(made) == {"a-0": "n0", "a-1": "n1", "b-0": "n3", "b-1": "n4", "b-2": "n5"}


def test_21_a_replacement_lands_beside_the_rest_of_its_gang_or_waits() -> None:
    board = racks({"r1": 4, "r2": 4})
    board.running("g", 2, ["r1-0", "r1-1"], closeness=TopologyConstraint(tier=1))
    board.running("guest", 2, ["r1-2", "r1-3"])
    board.removes("g-1")
    board.group("thief", 1, node_selector={RACK: "r1"}, priority=5)
    board.cycle()
    board.pods("g", [2])
    made = board.cycle()
    assert made.binds == ()
    assert (
        said(made, "g")
        == "waiting: needs 1 more pod in rack r1, where the gang already runs, but too few resources are free there"
    )
    board.finishes("guest")
    assert binds(board.cycle()) == {"g-2": "r1-2"}


def test_subgroups_keep_to_narrower_domains_than_their_gang() -> None:
    board = racks({"r1": 2, "r2": 3, "r3": 2}, spines={"r1": "s1", "r2": "s2", "r3": "s2"})
    policy = SubgroupPolicy("part", size=2, minimum=2, label_keys=("part",), closeness=TopologyConstraint(tier=1))
    board.group("g", 0, min_member=4, subgroups=(policy,), closeness=TopologyConstraint(tier=2))
    for part in "xy":
        board.pods("g", [0, 1], role=part, labels={"part": part})
    board.cycle()
    parts = [{board.on_nodes("g")[f"g-{part}-{n}"].partition("-")[0] for n in (0, 1)} for part in "xy"]
    assert sorted(parts, key=sorted) == [{"r2"}, {"r3"}]


def test_a_gang_keeps_its_ports_apart() -> None:
    board = Board()
    board.nodes(2, cpu=8)
    board.group("g", 3, ports=frozenset({"TCP/80"}))
    assert board.cycle().binds == ()
    board.node("n2", cpu=8)
    assert sorted(binds(board.cycle()).values()) == ["n0", "n1", "n2"]


def zone(name: str, *, apart: bool = False, together: bool = False, skew: int = 0) -> dict[str, Any]:
    rule = AffinityTerm(from_labels({"app": name}), "zone", frozenset({"team"}))
    found: dict[str, Any] = {"labels": {"app": name}}
    if apart:
        found["apart"] = (rule,)
    if together:
        found["together"] = (rule,)
    if skew:
        found["spreads"] = (SpreadConstraint(rule, skew),)
    return found


def zoned(count: int) -> Board:
    board = Board()
    for number in range(count):
        board.node(f"n{number}", cpu=8, labels={"zone": "ab"[number % 2]})
    return board


def test_pods_that_belong_together_share_a_domain() -> None:
    board = zoned(4)
    board.group("g", 4, **zone("x", together=True))
    assert len({"ab"[int(node[1]) % 2] for node in binds(board.cycle()).values()}) == 1


def test_pods_are_spread_over_domains() -> None:
    board = zoned(3)
    board.group("g", 4, **zone("x", skew=1))
    domains = sorted("ab"[int(node[1]) % 2] for node in binds(board.cycle()).values())
    assert domains == ["a", "a", "b", "b"]


def test_a_pod_without_rules_keeps_away_from_one_that_has_them() -> None:
    board = zoned(2)
    board.group("first", 1, **zone("x", apart=True))
    board.cycle()
    board.group("second", 1, labels={"app": "x"})
    assert board.on_nodes("first") == {"first-0": "n0"}
    assert binds(board.cycle()) == {"second-0": "n1"}


def test_volumes_and_gpu_types_narrow_the_choice() -> None:
    board = Board()
    board.node("a", gpu=8, cpu=64, labels={"zone": "a", "gpu": "H200"})
    board.node("b", gpu=8, cpu=64, labels={"zone": "b", "gpu": "H200"})
    board.node("c", gpu=8, cpu=64, labels={"zone": "b", "gpu": "T4"})
    in_zone = ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]},)
    kinds = ({"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["H200", "B200"]}]},)
    board.group("g", 1, gpu=1, volume_terms=(in_zone,), node_terms=kinds)
    assert binds(board.cycle()) == {"g-0": "b"}


def test_a_missing_claim_is_named_and_not_hidden_behind_the_gang() -> None:
    board = Board()
    board.nodes(4)
    board.group("g", 2, blocked=Message("Claim.Unbound", {"claim": "data"}))
    assert said(board.cycle(), "g") == "waiting: the claim data has no volume yet"


def test_preferences_weigh_and_do_not_bar() -> None:
    board = Board()
    board.node("a", cpu=8, taints=({"key": "old", "effect": "PreferNoSchedule"},))
    board.node("b", cpu=8)
    board.node("c", cpu=8, labels={"disk": "ssd"})
    board.group("plain", 1)
    ssd = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    board.group("picky", 1, preferred_nodes=((10, ssd),))
    assert binds(board.cycle()) == {"plain-0": "b", "picky-0": "c"}


def test_shares_of_a_device_fill_devices_before_they_open_new_ones() -> None:
    board = Board()
    board.node("n", cpu=64, gpu=2)
    for name, milli in (("a", 600), ("b", 500), ("c", 400)):
        board.group(name, 1, created=board.now)
        pod = board.view.pods[next(iter(board.view.groups[next(reversed(board.view.groups))].waiting))]
        asked = {**pod.requests, GPU: milli}
        board.view.set_pod(type(pod)(pod.key, pod.uid, asked, group=pod.group, gpu_milli=milli))
    assert {bind.pod.name: bind.devices for bind in board.cycle().binds} == {"a-0": (0,), "b-0": (1,), "c-0": (0,)}
    board.group("whole", 1, gpu=1)
    assert board.cycle().binds == ()


def near(tier: int, *, hard: bool = True) -> list[str]:
    """Where a gang of four goes on three pairs of nodes, two of which share a spine; none where it waits."""
    board = Board()
    board.nodes(6)
    for number, name in enumerate(("a", "b", "c")):
        board.view.set_hypernode(HyperNode(name, 1, frozenset({f"n{2 * number}", f"n{2 * number + 1}"})))
    board.view.set_hypernode(HyperNode("spine", 2, frozenset({"n2", "n3", "n4", "n5"})))
    board.group("g", 4, closeness=TopologyConstraint(hard=hard, tier=tier))
    return sorted(binds(board.cycle()).values())


@pytest.mark.parametrize(
    ("tier", "hard", "nodes"),
    [(1, True, []), (2, True, ["n2", "n3", "n4", "n5"]), (1, False, ["n2", "n3", "n4", "n5"])],
    ids=["no pair holds four", "a spine does", "a soft wish finds the nearest that do"],
)
def test_20_a_gang_goes_as_far_apart_as_it_may(tier: int, hard: bool, nodes: list[str]) -> None:
    assert near(tier, hard=hard) == nodes


def test_a_pod_that_asks_for_nothing_fills_up_what_is_full() -> None:
    board = Board()
    board.nodes(1)
    board.running("full", 1, ["n0"])
    board.group("waits", 1)
    board.group("light", 1, cpu=0)
    assert binds(board.cycle()) == {"light-0": "n0"}


def test_a_kind_of_accelerator_is_named_where_it_is_missing() -> None:
    board = Board()
    board.node("a", gpu=8, cpu=64, labels={"gpu": "T4"})
    board.group("g", 1, gpu=1, node_selector={"gpu": "H200"})
    made = board.cycle()
    assert (made.binds, said(made, "g")) == (
        (),
        "waiting: 1 node does not match the pod's node selector; "
        "a smaller request would not fit on any node either, so label a node or change the node selector",
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("profile", ["pack", "spread"])
@pytest.mark.parametrize("gpu_milli", [0, 500])
def test_an_absurd_request_finds_no_node_and_keeps_nobody_else_from_one(profile: str, gpu_milli: int) -> None:
    board = Board(profile=profile)
    board.node("n", cpu=4, gpu=2)
    board.node("bare", cpu=0)
    absurd = 1 << 50  # cores: more thousandths than the planner's numbers have room for, were they multiplied
    board.group("absurd", 1, cpu=absurd)
    board.group("usual", 1, cpu=1, gpu_milli=gpu_milli)
    made = board.cycle()
    assert binds(made) == {"usual-0": "n"}
    assert said(made, "absurd") == (
        f"waiting: needs {absurd} cpu, the most free is 3 of 4 on node n; the request would not fit even without "
        "other pods, so request less or add nodes"
    )
