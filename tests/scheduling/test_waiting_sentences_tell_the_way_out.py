"""What a waiting group is told is the cause that keeps it, and what it advises can be done."""

from __future__ import annotations

from dataclasses import replace

from kit.gangs import Board, cores, key, said
from shoal.scheduling.groups import Phase, Subgroups


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
    assert said(made, "second") == (
        "waiting: needs 2 cpu; by weight queue a has a share of 2 now, of which 1 are taken; "
        "it gets more when other queues need less, or with more weight"
    )


def test_a_capability_below_the_share_by_weight_is_called_by_its_name() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.queue("a", capability=cores(cpu=1))
    board.running("first", 1, ["n"], queue="a")
    board.group("second", 1, queue="a")
    assert said(board.cycle(), "second") == "waiting: needs 1 cpu, and queue a may hold 1 and already counts 1"


def sent_back(board: Board, *, cpu: int) -> None:
    """A gang of two that was let in and found no place in its time."""
    board.group("g", 2, cpu=cpu, phase=Phase.PENDING, min_resources=cores(cpu=2 * cpu))
    board.cycle()
    board.cycle(later=600)


def test_a_group_that_had_its_time_in_the_queue_is_told_what_keeps_it() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    sent_back(board, cpu=3)
    keeps = (
        "waiting: needs 2 pods at once, 1 would fit, 1 missing: needs 6 cpu, 4 of 4 are free, the most on one node is "
        "4 on node n; even with nobody else there it would not fit, so make it smaller or add nodes"
    )
    had = "it had its time in the queue without one pod finding a place, and stays out of it for"
    assert said(board.cycle(), "g") == f"{keeps}; {had} 60 seconds"
    board.cycle(later=60)
    assert said(board.cycle(later=600), "g") == f"{keeps}; {had} 120 seconds"


def test_nothing_is_said_to_keep_a_group_for_which_there_is_room_by_now() -> None:
    board = Board(enqueue=False)
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    sent_back(board, cpu=2)
    board.finishes("old")
    assert said(board.cycle(), "g") == (
        "waiting: it had its time in the queue without one pod finding a place, and stays out of it for 60 seconds"
    )


def test_one_pod_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 0, min_member=2, min_roles={"ps": 1, "worker": 1})
    board.pods("g", range(1), role="ps")
    board.pods("g", range(1), role="worker", cpu=8)
    assert said(board.cycle(), "g").startswith(
        "waiting: needs 1 pod of worker at once, 0 would fit, 1 missing: needs 8 cpu, the most free is 4 of 4 on node n"
    )


def test_one_subgroup_is_not_called_subgroups() -> None:
    board = Board()
    policy = Subgroups("part", size=2, minimum=1, label_keys=("part",))
    board.group("g", 0, min_member=2, subgroups=(policy,))
    for number, part in enumerate("ab"):  # one of each part would fit
        board.node(part, cpu=1, labels={"part": part})
        board.pods("g", range(2 * number, 2 * number + 2), labels={"part": part}, node_selector={"part": part})
    assert said(board.cycle(), "g").startswith("waiting: needs 1 whole subgroup of part, and none fits")


def test_one_pod_that_makes_way_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=1)
    board.running("low", 1, ["n"])
    board.group("high", 1, priority=5)
    assert said(board.cycle(), "high") == "waiting: its place is being freed; it starts when 1 pod has left"


def test_one_pod_that_has_its_place_is_not_called_pods() -> None:
    board = Board()
    board.node("n", cpu=1)
    board.running("g", 1, ["n"])
    board.view.set_group(replace(board.view.groups[key("g")].group, phase=Phase.INQUEUE, ran=False))
    assert said(board.cycle(), "g") == "1 pod has its place"
