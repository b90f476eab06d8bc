"""A gang with a hard network topology waits where no node is in a domain of the tier, and names that."""

from __future__ import annotations

import pytest

from kit.gangs import RACK, Board, binds, said
from shoal.scheduling.groups import Closeness, HyperNode

NO_TOPOLOGY = "needs 2 pods near each other, and no topology of the cluster is known: create HyperNodes or set tiers"


@pytest.mark.parametrize(
    ("tiers", "sentence"),
    [((), NO_TOPOLOGY), ((RACK,), "needs 2 pods in one rack, and no node is in any rack")],
    ids=["no tiers", "no node with the label"],
)
def test_09_it_waits_with_that_reason_and_starts_when_the_domain_is_there(
    tiers: tuple[str, ...], sentence: str
) -> None:
    board = Board(tiers=tiers)
    board.nodes(2)
    board.group("near", 2, closeness=Closeness(hard=True, tier=1))
    made = board.cycle()
    assert (binds(made), said(made, "near").split(";")[0]) == ({}, f"waiting: {sentence}")
    board.view.set_hypernode(HyperNode("s0", 1, frozenset({"n0", "n1"})))
    assert len(binds(board.cycle())) == 2


def test_09_a_soft_topology_starts_anywhere() -> None:
    board = Board()
    board.nodes(2)
    board.group("near", 2, closeness=Closeness(hard=False, tier=1))
    assert len(binds(board.cycle())) == 2
