"""Of equally tight domains the fullest is filled first, and subgroups of a policy with a topology are placed whole:
the hypernode cases 1.2, 3.1, 5.2, 9.1 and 9.5 of Volcano's end-to-end suite.

Eight nodes of 8 cpu, two to a domain of tier 1 and four to one of tier 2, each with a little in use, as in its cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kit.planner_board import RACK, SPINE, Board, binds, cores, key
from shoal.kube.selectors import from_label_selector
from shoal.scheduler.planner.gang_types import SubgroupPolicy, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState

EVERYWHERE = from_label_selector({})
PAIRS = SubgroupPolicy("pair", size=2, selector=EVERYWHERE, label_keys=("pair",), closeness=TopologyConstraint(tier=1))


def cluster(used: Mapping[int, int]) -> Board:
    board = Board(tiers=(RACK, SPINE))
    for number in range(8):
        board.node(f"n{number}", cpu=8, labels={RACK: f"s{number // 2}", SPINE: f"t{number // 4}"})
        amount = cores(cpu=used.get(number, 0))["cpu"] + 100
        pod = Pod(key(f"plain-{number}"), f"uid-{number}", {"cpu": amount, "pods": 1000})
        board.view.set_pod(replace(pod, node=f"n{number}", state=PodState.RUNNING))
    return board


def pairs_of(board: Board, count: int, *, cpu: int) -> None:
    for number in range(count):
        board.pods("job", [number], cpu=cpu, labels={"pair": f"p{number // 2}"})


def test_22_of_equally_tight_domains_the_fullest_is_filled() -> None:
    """Case 1.2."""
    board = cluster({2: 4, 3: 4, 4: 1})
    board.group("job", 2, cpu=4, closeness=TopologyConstraint(tier=1))
    assert set(binds(board.cycle()).values()) == {"n4", "n5"}


def test_22_a_soft_topology_fills_the_fullest_domain_of_the_next_tier() -> None:
    """Case 3.1."""
    board = cluster({0: 6, 2: 6, 4: 6, 6: 6, 1: 4, 3: 4, 5: 5, 7: 4})
    board.group("job", 2, cpu=2, closeness=TopologyConstraint(hard=False))
    assert set(binds(board.cycle()).values()) == {"n5", "n7"}


@pytest.mark.parametrize(("used", "tier"), [({2: 1, 3: 1}, 1), ({6: 1, 7: 1}, 2)], ids=["case 9.1", "case 9.5"])
def test_22_subgroups_fill_the_fullest_domain(used: Mapping[int, int], tier: int) -> None:
    board = cluster(used)
    policy = replace(PAIRS, minimum=2)
    board.group("job", 0, min_member=4, subgroups=(policy,), closeness=TopologyConstraint(tier=tier))
    pairs_of(board, 4, cpu=3)
    assert set(binds(board.cycle()).values()) == {f"n{number}" for number in used}


def test_22_subgroups_are_placed_whole_where_the_policy_states_no_number() -> None:
    """Case 5.2: three pods fit in each of two domains, and two go to each."""
    board = cluster({0: 3, 2: 3, 4: 6, 5: 6, 6: 6, 7: 6})
    board.group("job", 0, min_member=4, subgroups=(PAIRS,), closeness=TopologyConstraint(tier=2))
    pairs_of(board, 4, cpu=3)
    assert Counter(int(node[1]) // 2 for node in binds(board.cycle()).values()) == {0: 2, 1: 2}


def test_22_a_policy_without_a_number_asks_for_no_more_subgroups_than_the_minimum() -> None:
    """One pair is the minimum, and there is room for one only."""
    board = cluster({0: 1, 1: 4} | dict.fromkeys(range(2, 8), 7))
    board.group("job", 0, min_member=2, subgroups=(PAIRS,))
    pairs_of(board, 4, cpu=3)
    assert {"job-0", "job-1"} <= binds(board.cycle()).keys()


def test_22_a_policy_without_a_number_leaves_other_roles_their_part_of_the_minimum() -> None:
    """Two workers in a pair and two others are the minimum; two pairs and both others would be more than fit."""
    board = cluster({0: 1, 1: 1} | dict.fromkeys(range(2, 8), 7))
    policy = replace(PAIRS, selector=from_label_selector({"matchLabels": {"role": "worker"}}))
    roles = {"worker": 2, "other": 2}
    board.group("job", 0, min_member=4, min_roles=roles, subgroups=(policy,))
    for number in range(4):
        labels = {"pair": f"p{number // 2}", "role": "worker"}
        board.pods("job", [number], cpu=3, role="worker", labels=labels)
    board.pods("job", range(2), cpu=3, role="other")
    assert Counter(name.split("-")[1] for name in binds(board.cycle())) == roles
