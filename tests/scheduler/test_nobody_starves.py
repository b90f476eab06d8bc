"""Whoever waits long enough starts, however many smaller ones come and go, and nothing goes to and fro for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.planner_board import HOST, RACK, Board, cores, evicted, key, said
from shoal.kube.selectors import parse_labels
from shoal.scheduler.planner.gang_types import TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm
from shoal.scheduler.planner.preemption import SEARCHED_AGAIN_SECONDS

PATIENCE = 1800
STEP = 600


def crowd(board: Board, *, queue: str) -> int:
    """Two small groups run already, others keep coming, each ends after two rounds; the round when `big` starts."""
    for number in range(2, 22):
        board.group(f"small-{number}", 1, queue=queue)
        board.cycle(later=STEP)
        board.starts()
        board.finishes(f"small-{number - 2}")
        if board.on_nodes("big"):
            return number
    raise AssertionError(said(board.cycle(), "big"))


@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_a_gang_that_fills_its_queues_ceiling_starts_among_small_ones(sharing: str) -> None:
    board = Board(sharing=sharing)
    board.nodes(1, cpu=100)
    board.queue("q", capability=cores(cpu=4))
    for number in range(2):
        board.group(f"small-{number}", 1, queue="q")
    board.cycle()
    board.group("big", 4, queue="q")
    assert crowd(board, queue="q") <= 6


def test_a_gang_that_fills_the_parents_ceiling_starts_among_its_cousins() -> None:
    board = Board(sharing="capacity")
    board.nodes(1, cpu=100)
    board.queue("dept", capability=cores(cpu=4))
    board.queue("dev", parent="dept")
    board.queue("ops", parent="dept")
    for number in range(2):
        board.group(f"small-{number}", 1, queue="ops")
    board.cycle()
    board.group("big", 4, queue="dev")
    assert crowd(board, queue="ops") <= 6


@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_a_gang_that_fills_the_cluster_starts_among_small_ones_of_another_queue(sharing: str) -> None:
    board = Board(sharing=sharing)
    board.nodes(4)
    board.queue("busy")
    for number in range(2):
        board.group(f"small-{number}", 1, queue="busy")
    board.cycle()
    board.group("big", 4)
    assert crowd(board, queue="busy") <= 7


def apart(name: str) -> Any:
    return (AffinityTerm(parse_labels(f"app={name}"), HOST, frozenset({"team"})),)


def test_nodes_are_kept_only_where_the_whole_gang_would_start() -> None:
    """Three pods that keep each other away need three nodes, although two have the cores; and four never start."""
    board = Board()
    for number in range(3):
        board.node(f"n{number}", cpu=4, labels={HOST: f"n{number}"})
    board.running("old", 3, ["n0", "n1", "n2"], cpu=4)
    board.group("never", 4, created=0.0, labels={"app": "never"}, apart=apart("never"))
    board.group("big", 3, created=1.0, labels={"app": "big"}, apart=apart("big"))
    made = board.cycle(later=PATIENCE)
    assert made.reservations == ((key("big"), ("n0", "n1", "n2")),)


def test_nodes_that_can_take_nobody_any_more_are_not_kept() -> None:
    board = Board()
    board.nodes(2, cpu=2)
    board.running("old", 2, ["n0", "n1"], cpu=2)
    board.group("big", 1, cpu=2, created=0.0)
    assert board.cycle(later=PATIENCE).reservations == ((key("big"), ("n0",)),)
    board.node("n0", cpu=2, unschedulable=True)
    assert board.cycle().reservations == ((key("big"), ("n1",)),)


def test_pods_that_never_go_leave_no_room_to_wait_for() -> None:
    board = Board()
    board.nodes(2, cpu=2)
    board.running("dns", 1, ["n0"], cpu=1, priority=2_000_000_000)
    for pod in list(board.view.groups[key("dns")].placed.values()):
        board.view.set_pod(replace(pod, priority=2_000_000_000))
    board.running("old", 1, ["n1"], cpu=2)
    board.group("big", 1, cpu=2, created=0.0)
    assert board.cycle(later=PATIENCE).reservations == ((key("big"), ("n1",)),)


def test_guests_do_not_drive_each_other_out() -> None:
    board = Board()
    board.node("n", cpu=2)
    board.running("first", 1, ["n"], cpu=2, preemptible_guest=True, created=0.0)
    board.group("second", 1, cpu=2, preemptible_guest=True, created=0.0)
    made = board.cycle(later=PATIENCE)
    assert (made.reservations, made.evictions) == (((key("second"), ("n",)),), ())


def test_two_queues_each_short_of_something_else_take_nothing_from_each_other_for_ever() -> None:
    """Each deserves half of both; a holds too much memory, b too many cores, and both want some of both."""
    board = Board(sharing="capacity")
    board.node("n", cpu=8, memory=8)
    for name in "ab":
        board.queue(name, deserved=cores(cpu=4, memory=4))
    board.running("fat", 1, ["n"], cpu=1, memory=5, queue="a")
    board.running("quick", 1, ["n"], cpu=6, memory=2, queue="b")
    board.group("more-a", 1, cpu=2, memory=1, queue="a")
    board.group("more-b", 1, cpu=1, memory=2, queue="b")
    assert evicted(board.cycle()) == []


def test_a_queue_below_its_share_of_everything_takes_back_what_it_wants() -> None:
    board = Board(sharing="capacity")
    board.node("n", cpu=8, memory=8)
    for name in "ab":
        board.queue(name, deserved=cores(cpu=4, memory=4))
    board.running("cores", 3, ["n"], cpu=2, memory=1, min_member=1, queue="b")
    board.group("new", 1, cpu=3, memory=1, queue="a")
    assert evicted(board.cycle()) == ["cores-2"]


def test_the_rules_of_those_who_leave_keep_nobody_from_the_room_they_leave() -> None:
    board = Board()
    board.node("n", cpu=4, labels={HOST: "n"})
    board.running("low", 1, ["n"], labels={"app": "web"}, apart=apart("web"))
    board.group("high", 1, priority=1, labels={"app": "web"}, apart=apart("web"))
    made = board.cycle()
    assert (evicted(made), [n.pod.name for n in made.nominations]) == (["low-0"], ["high-0"])
    board.group("quick", 1, labels={"app": "web"}, apart=apart("web"))
    assert board.cycle().evictions == (), "room is made once"
    board.leaves()
    assert [bind.pod.name for bind in board.cycle().binds] == ["high-0"]


def test_a_gang_that_lost_a_pod_is_completed_on_nodes_kept_for_others() -> None:
    """Otherwise it would hold its nodes for ever, and those who wait for them would wait for it."""
    board = Board()
    board.nodes(2, cpu=2)
    board.running("torn", 2, ["n0", "n1"], cpu=2)
    board.group("big", 2, cpu=2, created=0.0)
    assert board.cycle(later=PATIENCE).reservations == ((key("big"), ("n0", "n1")),)
    board.removes("torn-1")
    board.pods("torn", [1], cpu=2)
    made = board.cycle()
    assert [(bind.pod.name, bind.node) for bind in made.binds] == [("torn-1", "n1")]


def test_a_guest_drives_nobody_out() -> None:
    board = Board(sharing="capacity")
    board.node("n", cpu=2)
    board.queue("a", deserved=cores(cpu=2))
    board.running("old", 1, ["n"], cpu=2)
    board.group("guest", 1, cpu=2, queue="a", preemptible_guest=True)
    assert board.cycle().evictions == ()
    board.group("owner", 1, cpu=2, queue="a")
    assert evicted(board.cycle()) == ["old-0"]


def test_a_gang_that_lost_a_pod_is_completed_although_others_claim_the_ceiling_above_it() -> None:
    """They wait for what it holds, and it ends only if it is completed."""
    board = Board(sharing="capacity")
    board.node("n", cpu=100)
    board.queue("dept", capability=cores(cpu=4))
    board.queue("dev", parent="dept")
    board.queue("ops", parent="dept", priority=1)
    board.running("broken", 2, ["n"], queue="dev")
    board.removes("broken-1")
    board.group("claims", 4, queue="ops")
    board.pods("broken", [2])
    assert {bind.pod.name: bind.node for bind in board.cycle(later=PATIENCE).binds} == {"broken-2": "n"}


def test_whoever_stands_behind_many_who_cannot_be_helped_is_looked_at_in_time() -> None:
    """Room could be made for all of them by the count of cores, but no rack holds three: twenty searches in vain."""
    board = Board(tiers=(RACK,))
    for number in range(6):
        board.node(f"n{number}", labels={RACK: f"r{number // 2}"})
    board.running("low", 6, [f"n{number}" for number in range(6)], min_member=1)
    for number in range(20):
        board.group(f"vain-{number:02}", 3, priority=10 + number, closeness=TopologyConstraint())
    board.group("behind", 1, priority=5)
    for _ in range(20):
        made = board.cycle(later=1)
        if made.evictions:
            break
        assert made.wake_at == board.now + SEARCHED_AGAIN_SECONDS, "and soon, even if nothing happens"
    assert evicted(made) == ["low-5"]
