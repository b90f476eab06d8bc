"""Who waits because a disruption budget keeps those who would give way is told so, and nobody else is."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import NS, Board, cores, said, verdict
from shoal.kube.objects import Key
from shoal.kube.selectors import from_label_selector
from shoal.scheduler.planner.disruption_budgets import DisruptionBudget
from shoal.scheduler.planner.gang_types import PodGroupPhase

KEPT = {"app": "kept"}
FULL = "waiting: needs 2 pods at once, 0 would fit, 2 missing: needs 1 cpu, the most free is 0 of 1 on node n0"
NAMED = f"{FULL}; the disruption budget b of namespace team protects pods that would be evicted"


def full(*, minimum: int = 4, labels: dict[str, str] = KEPT, **settings: Any) -> Board:
    """Four cores, all held by one gang of low priority."""
    board = Board(**settings)
    board.nodes(4)
    board.running("low", 4, [f"n{n}" for n in range(4)], min_member=minimum, labels=labels, elastic=minimum < 4)
    return board


def budget(board: Board, allowed: int, name: str = "b") -> None:
    board.view.budgets.set(Key(NS, name), DisruptionBudget(from_label_selector({"matchLabels": KEPT}), allowed))


CASES: dict[str, tuple[dict[str, Any], int, dict[str, Any], str]] = {
    "a gang that may not go": ({}, 0, {"priority": 10}, NAMED),
    "a gang of which only some may": ({}, 3, {"priority": 10}, NAMED),
    "pods that could be spared": ({"minimum": 1}, 1, {"priority": 10}, NAMED),
    "nobody is weaker": ({}, 0, {}, FULL),
    "nobody is evicted anyway": ({"preempt": False}, 0, {"priority": 10}, FULL),
    "who would not fit either": ({"minimum": 3, "evict_whole_gangs": False}, 0, {"priority": 10}, FULL),
}


@pytest.mark.parametrize(("others", "allowed", "urgent", "sentence"), CASES.values(), ids=CASES)
def test_the_sentence_names_the_budget_where(
    others: dict[str, Any], allowed: int, urgent: dict[str, Any], sentence: str
) -> None:
    board = full(**others)
    budget(board, allowed)
    board.group("urgent", 2, **urgent)
    made = board.cycle()
    assert (made.evictions, made.shrinks, said(made, "urgent")) == ((), (), sentence)


def test_all_who_wait_for_the_same_are_told() -> None:
    board = full()
    budget(board, 0)
    for name in ("first", "second"):
        board.group(name, 2, priority=10, uid=name)
    made = board.cycle()
    assert [said(made, name) for name in ("first", "second")] == [NAMED, f"{NAMED}; 1 job ahead in queue default"]


def test_budgets_in_the_way_of_what_another_queue_borrowed_are_named() -> None:
    board = Board(sharing="capacity")
    board.nodes(4)
    board.queue("borrower", deserved=cores(cpu=2))
    board.queue("lender", deserved=cores(cpu=2))
    board.running("old", 4, [f"n{n}" for n in range(4)], min_member=1, labels=KEPT, queue="borrower")
    budget(board, 1)
    budget(board, 4, "c")  # a pod under two of them stays, whatever they allow
    board.group("new", 2, queue="lender")
    assert said(board.cycle(), "new") == (
        f"{FULL}; the disruption budgets b of namespace team, c of namespace team protect pods that would be evicted"
    )


OUTSIDE = "waiting: needs 2 cpu; admitted groups may request 4 in this cluster and already request 4"
KEPT_OUTSIDE = f"{OUTSIDE}; the disruption budget b of namespace team protects pods that would be evicted"
DOOR: dict[str, tuple[int, dict[str, Any], str]] = {
    "who would give way may not": (0, {"priority": 10}, KEPT_OUTSIDE),
    "too few of them may": (3, {"priority": 10}, KEPT_OUTSIDE),
    "nobody is weaker": (0, {}, OUTSIDE),
}


@pytest.mark.parametrize(("allowed", "urgent", "sentence"), DOOR.values(), ids=DOOR)
def test_who_is_not_let_in_is_told_where(allowed: int, urgent: dict[str, Any], sentence: str) -> None:
    board = full()
    budget(board, allowed)
    board.group("urgent", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), **urgent)
    made = board.cycle()
    assert (verdict(made, "urgent").phase, said(made, "urgent")) == (PodGroupPhase.PENDING, sentence)


def test_who_is_not_let_in_for_what_another_queue_borrowed_is_told_too() -> None:
    board = Board(sharing="capacity")
    board.nodes(4)
    board.queue("root")
    board.queue("borrower", deserved=cores(cpu=2))
    board.queue("lender", deserved=cores(cpu=2))
    board.running("old", 4, [f"n{n}" for n in range(4)], min_member=1, labels=KEPT, queue="borrower")
    budget(board, 1)
    board.group("new", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), queue="lender")
    assert said(board.cycle(), "new") == KEPT_OUTSIDE
