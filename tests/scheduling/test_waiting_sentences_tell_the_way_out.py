"""What a waiting group is told is the cause that keeps it, and what it advises can be done."""

from __future__ import annotations

from kit.gangs import Board, cores, said


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
