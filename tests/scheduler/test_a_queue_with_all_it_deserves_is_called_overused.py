"""The figure of a queue that holds its share in everything, however the share came about."""

from __future__ import annotations

import pytest

from kit.planner_board import Board, cores
from shoal.scheduler.planner.fair_share import FairShares

HELD = {
    "by entitlement, all of it": ("capacity", {"cpu": 2}, 2, True),
    "by entitlement, and more": ("capacity", {"cpu": 2}, 4, True),
    "by entitlement, less": ("capacity", {"cpu": 2}, 1, False),
    "by entitlement, one of two resources": ("capacity", {"cpu": 2, "memory": 1}, 4, False),
    "entitled to nothing": ("capacity", {}, 4, False),
    "by weight, all of it": ("proportion", {}, 4, True),
}


@pytest.mark.parametrize(("sharing", "deserved", "pods", "is_overused"), HELD.values(), ids=HELD)
def test_holding(sharing: str, deserved: dict[str, int], pods: int, is_overused: bool) -> None:
    board = Board(sharing=sharing)
    board.node("n", cpu=4)
    board.queue("q", deserved=cores(**deserved))
    board.running("g", pods, ["n"], queue="q")
    assert FairShares(board.view).is_overused("q") is is_overused
