"""A gang with a hard topology that gets its room by reclaim starts within one domain; victims leave one by one."""

from __future__ import annotations

import pytest

from kit.planner_board import Board, cores
from shoal.scheduler.planner.gang_types import HyperNode, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import PodState

DOMAINS = {"s0": {"n0", "n1"}, "s1": {"n2", "n3"}}


@pytest.mark.parametrize("elastic", [False, True], ids=["evicted", "asked for pods"])
@pytest.mark.parametrize("least", [2, 6])
@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_01_the_gang_is_in_one_domain(sharing: str, least: int, elastic: bool) -> None:
    board = Board(sharing=sharing)
    board.nodes(4, cpu=4)
    for name, nodes in DOMAINS.items():
        board.view.set_hypernode(HyperNode(name, 1, frozenset(nodes)))
    board.view.set_hypernode(HyperNode("s2", 2, frozenset().union(*DOMAINS.values())))
    for name in ("a", "b"):
        board.queue(name, deserved=cores(cpu=8))
    board.running("low", 16, ["n0", "n1", "n2", "n3"], min_member=1, queue="a", elastic=elastic)
    board.group("near", 6, min_member=least, queue="b", closeness=TopologyConstraint(hard=True, tier=1))
    for _ in range(20):
        board.cycle(later=1)
        board.starts()
        leaving = [pod for pod in board.view.pods.values() if pod.state is PodState.RELEASING]
        for pod in leaving[:1]:
            board.view.remove_pod(pod.key)
    nodes = set(board.on_nodes("near").values())
    assert len(board.on_nodes("near")) >= least
    assert any(nodes <= domain for domain in DOMAINS.values())
