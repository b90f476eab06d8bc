"""What a waiting group is told is the cause that keeps it, and what it advises can be done."""

from __future__ import annotations

from kit.gangs import Board, cores, said
from shoal.scheduling.groups import Phase


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
