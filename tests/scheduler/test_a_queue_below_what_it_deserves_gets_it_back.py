"""By entitlement: what others borrowed counts as free at every door on the way, of the queue and of those above it."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import Board, binds, cores, evicted, said, verdict
from shoal.scheduler.planner.gang_types import PodGroupPhase


def borrowed(parent: dict[str, Any] | None, other: dict[str, Any], **settings: Any) -> Board:
    """Four cores. Queue lender deserves two and has none; queue borrower deserves two and holds four."""
    board = Board(sharing="capacity", **settings)
    board.node("n", cpu=4)
    board.queue("root")
    above = "root"
    if parent is not None:
        board.queue("dept", **parent)
        above = "dept"
    board.queue("borrower", parent=above, deserved=cores(cpu=2), **other)
    board.queue("lender", parent=above, deserved=cores(cpu=2))
    board.running("old", 4, ["n"], min_member=1, min_resources=cores(cpu=1), queue="borrower")
    return board


WAYS = {
    "flat": None,
    "with a parent": {},
    "with a parent that may hold no more": {"capability": cores(cpu=4)},
}


@pytest.mark.parametrize("enqueue", [True, False], ids=["let in by room", "let in at once"])
@pytest.mark.parametrize("parent", WAYS.values(), ids=WAYS)
def test_what_another_queue_borrowed_is_given_back(parent: dict[str, Any] | None, enqueue: bool) -> None:
    board = borrowed(parent, {}, enqueue=enqueue)
    board.group("new", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), queue="lender")
    made = board.cycle()
    assert evicted(made) == ["old-2", "old-3"]
    assert said(made, "new") == "waiting: 2 pods on the chosen nodes must terminate first"
    board.leaves()
    assert binds(board.cycle()) == {"new-0": "n", "new-1": "n"}
    assert board.cycle().evictions == (), "nothing goes to and fro"


KEPT = {
    "more than it deserves itself": (3, {}),
    "from a queue that is not reclaimable": (2, {"reclaimable": False}),
}


@pytest.mark.parametrize(("wants", "other"), KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("parent", WAYS.values(), ids=WAYS)
def test_nobody_is_let_in_for(parent: dict[str, Any] | None, wants: int, other: dict[str, Any]) -> None:
    board = borrowed(parent, other)
    board.group("new", wants, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=wants), queue="lender")
    made = board.cycle()
    assert (verdict(made, "new").phase, made.evictions) == (PodGroupPhase.PENDING, ())


def test_what_is_borrowed_is_promised_once() -> None:
    board = borrowed({"capability": cores(cpu=4)}, {})
    for name in ("first", "second"):
        board.group(name, 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), queue="lender", uid=name)
    made = board.cycle()
    assert [verdict(made, name).phase for name in ("first", "second")] == [PodGroupPhase.INQUEUE, PodGroupPhase.PENDING]


def test_what_is_borrowed_below_another_parent_makes_no_room_below_this_one() -> None:
    """Dept may hold one core and its other queue holds that: what strangers borrowed is no help against that."""
    board = borrowed({"capability": cores(cpu=1)}, {})
    board.queue("borrower", parent="root", deserved=cores(cpu=2))
    board.queue("other", parent="dept", deserved=cores(cpu=1))
    board.node("m", cpu=1)
    board.running("one", 1, ["m"], min_resources=cores(cpu=1), queue="other")
    board.group("new", 1, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=1), queue="lender")
    made = board.cycle()
    assert said(made, "new") == "waiting: needs 1 cpu, and queue dept may hold 1, of which 1 are taken"
    assert made.evictions == ()
