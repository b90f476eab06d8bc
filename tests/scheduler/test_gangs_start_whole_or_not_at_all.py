"""Scenarios 1 to 5, 16 and 23 to 25 of the gang specification, on the planner alone."""

from __future__ import annotations

import random
from dataclasses import replace

from kit.planner_board import RACK, Board, binds, evicted, key, said, verdict
from shoal.kube.selectors import from_labels
from shoal.scheduler.messages import text
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase, TopologyConstraint
from shoal.scheduler.planner.snapshot_types import AffinityTerm, PodState

NEVER = "; the request would not fit even without other pods, so request less or add nodes"


def test_01_three_slots_hold_no_gang_of_four_and_a_fourth_starts_it_at_once() -> None:
    board = Board()
    board.nodes(3)
    board.group("g", 4)
    made = board.cycle()
    assert made.binds == ()
    assert verdict(made, "g").reason == "TooLarge"
    assert said(made, "g") == (
        "waiting: needs 4 pods at once, 3 would fit, 1 missing: "
        "needs 4 cpu, 3 of 3 are free, the most on one node is 1 on node n0" + NEVER
    )
    board.node("n3")
    made = board.cycle()
    assert binds(made) == {"g-0": "n0", "g-1": "n1", "g-2": "n2", "g-3": "n3"}
    assert (verdict(made, "g").phase, said(made, "g")) == (PodGroupPhase.RUNNING, "4 pods placed, 4 in all")


def test_02_the_minimum_comes_first_and_then_as_much_surplus_as_fits() -> None:
    board = Board()
    board.nodes(3)
    board.group("g", 4, min_member=2)
    assert sorted(binds(board.cycle())) == ["g-0", "g-1", "g-2"]


def test_03_of_two_gangs_that_want_the_same_room_one_runs_whole() -> None:
    for seed in range(1000):
        rng = random.Random(seed)
        board = Board()
        board.nodes(4)
        arrivals = [("a", number) for number in range(3)] + [("b", number) for number in range(3)]
        rng.shuffle(arrivals)
        for name in "ab":
            board.group(name, 0, min_member=3)
        for name, number in arrivals:
            board.pods(name, [number])
            board.cycle()
        bound = sorted(len(board.on_nodes(name)) for name in "ab")
        assert bound == [0, 3], f"seed {seed}"


def with_roles(min_member: int) -> Board:
    board = Board()
    board.nodes(4)
    board.group("g", 0, min_member=min_member, min_roles={"ps": 1, "worker": 4})
    board.pods("g", [0], role="ps")
    board.pods("g", range(4), role="worker")
    return board


def test_04_every_role_must_have_its_minimum_unless_the_group_asks_for_less_than_the_roles_together() -> None:
    board = with_roles(5)
    made = board.cycle()
    assert made.binds == ()
    assert said(made, "g") == (
        "waiting: needs 5 pods at once, 4 would fit, 1 missing: "
        "needs 5 cpu, 4 of 4 are free, the most on one node is 1 on node n0" + NEVER
    )
    assert len(with_roles(3).cycle().binds) >= 3


def test_05_too_few_pods_exist_and_no_place_is_looked_for() -> None:
    board = Board()
    board.nodes(8)
    board.group("g", 3, min_member=4)
    made = board.cycle()
    assert made.binds == ()
    found = verdict(made, "g")
    assert (found.reason, found.blocked, text(found.message)) == (
        "NotEnoughTasks",
        "pods",
        "waiting: 3 of the 4 pods the gang needs at once exist",
    )


def test_05_too_few_pods_of_one_role_exist() -> None:
    board = Board()
    board.nodes(8)
    board.group("g", 0, min_member=3, min_roles={"ps": 1, "worker": 2})
    board.pods("g", range(3), role="worker")
    found = verdict(board.cycle(), "g")
    assert (found.reason, text(found.message)) == (
        "NotEnoughPodsOfTask",
        "waiting: 0 of the 1 pods of ps the gang needs at once exist",
    )


def test_16_the_replacement_of_a_running_gang_goes_before_a_fresh_group() -> None:
    board = Board()
    board.nodes(4)
    board.running("old", 4, ["n0", "n1", "n2", "n3"], created=500.0)
    board.removes("old-3")  # with its drained node
    board.group("fresh", 1, created=0.0)
    board.pods("old", [4])
    made = board.cycle()
    assert binds(made) == {"old-4": "n3"}
    assert said(made, "fresh") == "waiting: needs 1 cpu, the most free is 0 of 1 on node n0"


def test_16_the_gang_is_unknown_while_its_replacement_finds_no_place() -> None:
    board = Board()
    board.nodes(3)
    board.running("old", 3, ["n0", "n1", "n2"])
    board.removes("old-2")
    board.view.remove_node("n2")
    board.pods("old", [3])
    assert verdict(board.cycle(), "old").phase is PodGroupPhase.UNKNOWN


def test_23_one_of_two_gangs_with_a_pod_per_host_runs_whole() -> None:
    board = Board()
    for number in range(100):
        board.node(f"n{number:03}", cpu=8, labels={"host": f"n{number:03}"})
    rule = AffinityTerm(from_labels({"app": "x"}), "host", frozenset({"team"}))
    for name in "ab":
        board.group(name, 100, labels={"app": "x"}, apart=(rule,))
    made = board.cycle()
    assert len(binds(made)) == len(set(binds(made).values())) == 100
    assert {name.partition("-")[0] for name in binds(made)} == {"a"}
    assert said(made, "b") == (
        "waiting: needs 100 pods at once, 0 would fit, 100 missing: "
        "required pod anti-affinity to pod with app=x, per host, excludes all 100 nodes"
    )


def test_a_gang_that_others_keep_away_stops_none_that_asks_for_the_same_and_may_go_there() -> None:
    board = Board()
    board.node("n", cpu=8, labels={"host": "n"})
    rule = AffinityTerm(from_labels({"app": "x"}), "host", frozenset({"team"}))
    board.running("alone", 1, ["n"], apart=(rule,))
    board.group("chosen", 1, labels={"app": "x"})
    board.group("other", 1)
    made = board.cycle()
    assert binds(made) == {"other-0": "n"}
    assert said(made, "chosen") == (
        "waiting: required pod anti-affinity of pods there, per host, excludes the only node"
    )


def half_bound(failed: int) -> Board:
    """A gang of eight of which the binds of `failed` did not come through."""
    board = Board()
    board.nodes(8)
    board.group("g", 8)
    board.cycle()
    for number in range(failed):
        pod = board.view.pods[key(f"g-{number}")]
        board.view.set_pod(replace(pod, node="", state=PodState.PENDING))
    group = board.view.groups[key("g")].group
    board.view.set_group(replace(group, phase=PodGroupPhase.INQUEUE, ran=False))
    return board


def test_24_a_member_whose_bind_failed_is_bound_again() -> None:
    board = half_bound(1)
    assert binds(board.cycle(later=5)) == {"g-0": "n0"}


def test_24_after_the_hold_time_the_others_are_undone() -> None:
    board = half_bound(1)
    made = board.cycle(later=30)
    assert made.binds == ()
    assert evicted(made) == [f"g-{number}" for number in range(1, 8)]
    assert {text(eviction.message) for eviction in made.evictions} == {
        "undone: 1 of the gang's pods found no node in time after the others were bound"
    }


def test_25_pods_of_a_newer_job_than_the_known_group_wait_for_it() -> None:
    board = Board()
    board.nodes(6)
    board.running("g", 4, ["n0", "n1", "n2", "n3"])
    board.pods("g", range(4, 8), generation=2)
    assert board.cycle().binds == ()
    group = board.view.groups[key("g")].group
    board.view.set_group(replace(group, min_member=8, generation=2))
    made = board.cycle()
    assert made.binds == ()
    assert "needs 4 pods at once, 2 would fit" in said(made, "g")
    board.node("n6")
    board.node("n7")
    assert sorted(binds(board.cycle())) == ["g-4", "g-5", "g-6", "g-7"]


def test_a_pod_before_its_group_waits_for_it() -> None:
    board = Board()
    board.nodes(2)
    board.pods("g", range(2))
    made = board.cycle()
    assert made.binds == ()
    assert {text(wait.message) for wait in made.waits} == {"waiting: there is no PodGroup g yet"}
    board.view.set_group(PodGroup(key("g"), min_member=2))
    assert len(board.cycle().binds) == 2


def test_gated_pods_are_not_seen() -> None:
    board = Board()
    board.nodes(2)
    board.group("g", 2, gated=True)
    assert board.cycle().binds == ()
    for pod in list(board.view.pods.values()):
        board.view.set_pod(replace(pod, gated=False))
    assert len(board.cycle().binds) == 2


def test_surplus_of_a_gang_that_starts_now_stays_in_its_rack() -> None:
    board = Board(tiers=(RACK,))
    for number, rack in enumerate("aabb"):
        board.node(f"n{number}", cpu=1, labels={RACK: rack})
    board.group("g", 3, min_member=2, closeness=TopologyConstraint(hard=True))
    assert sorted(binds(board.cycle()).values()) == ["n0", "n1"]
