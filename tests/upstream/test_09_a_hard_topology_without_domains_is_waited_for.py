"""A gang with a hard network topology waits where no node is in a domain of the tier, and names that."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import NS, RACK, Board, binds, said
from shoal.scheduler.cache.hypernode_domains import resolved
from shoal.scheduler.planner.from_objects import group_from
from shoal.scheduler.planner.gang_types import HyperNode, SubgroupPolicy, TopologyConstraint

NO_TOPOLOGY = "needs 2 pods in one topology domain, but the cluster has no topology: create HyperNodes or set tiers"


NO_DOMAINS = pytest.mark.parametrize(
    ("tiers", "sentence"),
    [((), NO_TOPOLOGY), ((RACK,), "needs 2 pods in one rack, but no node is in any rack")],
    ids=["no tiers", "no node with the label"],
)


@NO_DOMAINS
def test_09_it_waits_with_that_reason_and_starts_when_the_domain_is_there(
    tiers: tuple[str, ...], sentence: str
) -> None:
    board = Board(tiers=tiers)
    board.nodes(2)
    board.group("near", 2, closeness=TopologyConstraint(hard=True, tier=1))
    made = board.cycle()
    assert (binds(made), said(made, "near").split(";")[0]) == ({}, f"waiting: {sentence}")
    board.view.set_hypernode(HyperNode("s0", 1, frozenset({"n0", "n1"})))
    assert len(binds(board.cycle())) == 2


@NO_DOMAINS
@pytest.mark.parametrize("subgroups", [0, 1], ids=["those of the minimum", "one"])
def test_09_a_hard_topology_of_subgroups_is_named_too(tiers: tuple[str, ...], sentence: str, subgroups: int) -> None:
    board = Board(tiers=tiers)
    board.nodes(2, cpu=2)
    near = TopologyConstraint(hard=True, tier=1)
    pairs = SubgroupPolicy("pair", 2, subgroups, label_keys=("pair",), closeness=near)
    board.group("near", min_member=4, subgroups=(pairs,))
    for pair in range(2):
        board.pods("near", (2 * pair, 2 * pair + 1), labels={"pair": str(pair)})
    made = board.cycle()
    assert (binds(made), said(made, "near").split(";")[0]) == ({}, f"waiting: {sentence}")
    board.view.set_hypernode(HyperNode("s0", 1, frozenset({"n0", "n1"})))
    assert len(binds(board.cycle())) == 4


@NO_DOMAINS
def test_09_a_job_that_needs_nothing_at_once_hears_of_its_topology(tiers: tuple[str, ...], sentence: str) -> None:
    board = Board(tiers=tiers)
    board.nodes(2)
    board.group("near", 2, min_member=0, closeness=TopologyConstraint(hard=True, tier=1))
    made = board.cycle()
    assert (binds(made), said(made, "near").split(";")[0]) == ({}, f"waiting: {sentence.replace('2 pods', '1 pod')}")


def test_09_a_topology_as_wide_as_the_cluster_is_not_named() -> None:
    board = Board(tiers=(RACK,))
    for number in range(2):
        board.node(f"n{number}", labels={RACK: f"r{number}"})
    board.group("near", 3, closeness=TopologyConstraint(hard=True, tier=2))
    assert said(board.cycle(), "near").startswith("waiting: needs 3 pods at once, 2 would fit, 1 missing: needs 3 cpu")


def test_09_a_soft_topology_starts_anywhere() -> None:
    board = Board()
    board.nodes(2)
    board.group("near", 2, closeness=TopologyConstraint(hard=False, tier=1))
    assert len(binds(board.cycle())) == 2


def named(board: Board, name: str, **more: Any) -> None:
    wanted = {"mode": "hard", "highestTierName": name}
    group = {"metadata": {"name": "near", "namespace": NS}, "spec": {"minMember": 2, "networkTopology": wanted}}
    board.group("near", 2, closeness=group_from(group).closeness, **more)


def racks(board: Board, tier_name: str) -> None:
    """Two racks of one node each below a zone of both."""
    for number in range(2):
        board.view.set_hypernode(HyperNode(f"r{number}", 1, frozenset({f"n{number}"}), tier_name))
    board.view.set_hypernode(HyperNode("z", 2, frozenset({"n0", "n1"}), "zone"))


def test_09_the_highest_tier_may_be_named_instead_of_numbered() -> None:
    board = Board()
    board.nodes(2)
    racks(board, "rack")
    named(board, "rack")
    made = board.cycle()
    assert (binds(made), said(made, "near").split(";")[0]) == (
        {},
        "waiting: needs 2 cpu in one rack, the most free is 1 in rack r0",
    )
    board.finishes("near")
    named(board, "zone")
    assert binds(board.cycle()) == {"near-0": "n0", "near-1": "n1"}


def test_09_a_tier_name_that_no_tier_has_is_named_and_waited_for() -> None:
    board = Board()
    board.nodes(2, cpu=2)
    racks(board, "row")
    named(board, "rack")
    made = board.cycle()
    assert (binds(made), said(made, "near")) == (
        {},
        "waiting: needs 2 pods in one topology domain, but no tier is named rack: "
        "set tierName of HyperNodes to it or name another tier",
    )
    racks(board, "rack")
    assert len(binds(board.cycle())) == 2


def test_09_label_tiers_are_named_by_their_label() -> None:
    board = Board(tiers=(RACK,))
    board.node("a", cpu=2, labels={RACK: "r1"})
    named(board, "rack")
    assert len(binds(board.cycle())) == 2


def test_09_the_tier_name_of_a_hypernode_object_is_read() -> None:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "a"}}}]
    found = resolved({"r1": {"spec": {"tier": 1, "tierName": "rack", "members": members}}}, {"a": {}})
    assert found == {"r1": HyperNode("r1", 1, frozenset({"a"}), "rack")}
