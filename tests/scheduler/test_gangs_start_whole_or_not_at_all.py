"""Scenarios 1 to 5, 16 and 23 to 25 of the gang specification, on the planner alone."""

from __future__ import annotations

import random
from dataclasses import replace

from kit.planner_board import RACK, Board, binds, causes, evicted, key, message, verdict
from shoal.kube.messages import Message
from shoal.kube.selectors import from_labels
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, PodState

NEVER = message("Remedy.NeverFits")
FULL = message("Resources.Short", need="1", resource="cpu", free="0", whole="1", node="n0")


def too_few(count: int, *, fits: int, cause: Message) -> Message:
    return message("Gang.TooFew", pods=message("Pods", count=count), fits=fits, missing=count - fits, cause=cause)


def short(need: int, *, free: int, node: str = "n0", whole: int | None = None) -> Message:
    """Of a gang, on nodes with one core free at most."""
    amounts = {"need": str(need), "free": str(free), "whole": str(whole or free), "most": "1"}
    return message("Resources.InAll", resource="cpu", node=node, **amounts)


def test_01_three_slots_hold_no_gang_of_four_and_a_fourth_starts_it_at_once() -> None:
    board = Board()
    board.nodes(3)
    board.group("g", 4)
    made = board.cycle()
    assert made.binds == ()
    assert verdict(made, "g").reason == "TooLarge"
    assert causes(made, "g") == [too_few(4, fits=3, cause=short(4, free=3)), NEVER]
    board.node("n3")
    made = board.cycle()
    assert binds(made) == {"g-0": "n0", "g-1": "n1", "g-2": "n2", "g-3": "n3"}
    assert verdict(made, "g").phase == PodGroupPhase.RUNNING
    assert verdict(made, "g").message == message("Scheduled", placed=4, total=4)


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
    assert causes(made, "g") == [too_few(5, fits=4, cause=short(5, free=4)), NEVER]
    assert len(with_roles(3).cycle().binds) >= 3


def test_05_too_few_pods_exist_and_no_place_is_looked_for() -> None:
    board = Board()
    board.nodes(8)
    board.group("g", 3, min_member=4)
    made = board.cycle()
    assert made.binds == ()
    found = verdict(made, "g")
    assert (found.reason, found.blocked) == ("NotEnoughTasks", "pods")
    assert causes(made, "g") == [message("Members.Missing", members=message("Members.Count", exist=3, least=4))]


def test_05_too_few_pods_of_one_role_exist() -> None:
    board = Board()
    board.nodes(8)
    board.group("g", 0, min_member=3, min_roles={"ps": 1, "worker": 2})
    board.pods("g", range(3), role="worker")
    made = board.cycle()
    members = message("Members.CountOfRole", exist=0, least=1, role="ps")
    assert verdict(made, "g").reason == "NotEnoughPodsOfTask"
    assert causes(made, "g") == [message("Members.Missing", members=members)]


def test_16_the_replacement_of_a_running_gang_goes_before_a_fresh_group() -> None:
    board = Board()
    board.nodes(4)
    board.running("old", 4, ["n0", "n1", "n2", "n3"], created=500.0)
    board.removes("old-3")  # with its drained node
    board.group("fresh", 1, created=0.0)
    board.pods("old", [4])
    made = board.cycle()
    assert binds(made) == {"old-4": "n3"}
    assert causes(made, "fresh") == [FULL]


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
    others, nodes = message("Others.Selected", selector="app=x"), message("Nodes.All", count=100)
    apart = message("Closed.AntiAffinity", others=others, key="host", nodes=nodes)
    assert causes(made, "b") == [too_few(100, fits=0, cause=apart)]


def test_a_gang_that_others_keep_away_stops_none_that_asks_for_the_same_and_may_go_there() -> None:
    board = Board()
    board.node("n", cpu=8, labels={"host": "n"})
    rule = AffinityTerm(from_labels({"app": "x"}), "host", frozenset({"team"}))
    board.running("alone", 1, ["n"], apart=(rule,))
    board.group("chosen", 1, labels={"app": "x"})
    board.group("other", 1)
    made = board.cycle()
    assert binds(made) == {"other-0": "n"}
    assert causes(made, "chosen") == [message("Closed.AntiAffinityOfOthers", key="host", nodes=message("Nodes.Only"))]


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
    assert [eviction.message for eviction in made.evictions] == len(made.evictions) * [message("Undone", count=1)]


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
    assert causes(made, "g") == [too_few(4, fits=2, cause=short(4, free=2, whole=6, node="n4"))]
    board.node("n6")
    board.node("n7")
    assert sorted(binds(board.cycle())) == ["g-4", "g-5", "g-6", "g-7"]


def test_a_pod_before_its_group_waits_for_it() -> None:
    board = Board()
    board.nodes(2)
    board.pods("g", range(2))
    made = board.cycle()
    assert made.binds == ()
    assert [wait.message.parameters["cause"] for wait in made.waits] == 2 * [message("Group.Missing", group="g")]
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
