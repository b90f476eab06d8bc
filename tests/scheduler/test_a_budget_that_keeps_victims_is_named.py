"""Who waits because a disruption budget keeps those who would give way is told so, and nobody else is."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import NS, Board, causes, cores, message, verdict
from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.kube.selectors import from_label_selector
from shoal.scheduler.planner.disruption_budgets import DisruptionBudget
from shoal.scheduler.planner.gang_types import PodGroupPhase

KEPT = {"app": "kept"}
SHORT = message("Resources.Short", need="1", resource="cpu", free="0", whole="1", node="n0")
FULL = message("Gang.TooFew", pods=message("Pods", count=2), fits=0, missing=2, cause=SHORT)
B, C = (message("Budget.Name", budget=name, namespace=NS) for name in "bc")
NAMED = [FULL, message("Budget.Blocks", budget=B)]


def full(*, minimum: int = 4, labels: dict[str, str] = KEPT, **settings: Any) -> Board:
    """Four cores, all held by one gang of low priority."""
    board = Board(**settings)
    board.nodes(4)
    board.running("low", 4, [f"n{n}" for n in range(4)], min_member=minimum, labels=labels, elastic=minimum < 4)
    return board


def budget(board: Board, allowed: int, name: str = "b") -> None:
    board.view.budgets.set(Key(NS, name), DisruptionBudget(from_label_selector({"matchLabels": KEPT}), allowed))


CASES: dict[str, tuple[dict[str, Any], int, dict[str, Any], list[Message]]] = {
    "a gang that may not go": ({}, 0, {"priority": 10}, NAMED),
    "a gang of which only some may": ({}, 3, {"priority": 10}, NAMED),
    "pods that could be spared": ({"minimum": 1}, 1, {"priority": 10}, NAMED),
    "nobody is weaker": ({}, 0, {}, [FULL]),
    "nobody is evicted anyway": ({"preempt": False}, 0, {"priority": 10}, [FULL]),
    "who would not fit either": ({"minimum": 3, "evict_whole_gangs": False}, 0, {"priority": 10}, [FULL]),
}


@pytest.mark.parametrize(("others", "allowed", "urgent", "expected"), CASES.values(), ids=CASES)
def test_the_sentence_names_the_budget_where(
    others: dict[str, Any], allowed: int, urgent: dict[str, Any], expected: list[Message]
) -> None:
    board = full(**others)
    budget(board, allowed)
    board.group("urgent", 2, **urgent)
    made = board.cycle()
    assert (made.evictions, made.shrinks, causes(made, "urgent")) == ((), (), expected)


def test_all_who_wait_for_the_same_are_told() -> None:
    board = full()
    budget(board, 0)
    for name in ("first", "second"):
        board.group(name, 2, priority=10, uid=name)
    made = board.cycle()
    behind = message("Turn.JobAhead", queue="default")
    assert [causes(made, name) for name in ("first", "second")] == [NAMED, [*NAMED, behind]]


def test_budgets_in_the_way_of_what_another_queue_borrowed_are_named() -> None:
    board = Board(sharing="capacity")
    board.nodes(4)
    board.queue("borrower", deserved=cores(cpu=2))
    board.queue("lender", deserved=cores(cpu=2))
    board.running("old", 4, [f"n{n}" for n in range(4)], min_member=1, labels=KEPT, queue="borrower")
    budget(board, 1)
    budget(board, 4, "c")  # a pod under two of them stays, whatever they allow
    board.group("new", 2, queue="lender")
    assert causes(board.cycle(), "new") == [FULL, message("Budget.Block", budgets=[B, C])]


OUTSIDE = message("Quota.Cluster", need="2", resource="cpu", limit="4", used="4")
KEPT_OUTSIDE = [OUTSIDE, message("Budget.Blocks", budget=B)]
DOOR: dict[str, tuple[int, dict[str, Any], list[Message]]] = {
    "who would give way may not": (0, {"priority": 10}, KEPT_OUTSIDE),
    "too few of them may": (3, {"priority": 10}, KEPT_OUTSIDE),
    "nobody is weaker": (0, {}, [OUTSIDE]),
}


@pytest.mark.parametrize(("allowed", "urgent", "expected"), DOOR.values(), ids=DOOR)
def test_who_is_not_let_in_is_told_where(allowed: int, urgent: dict[str, Any], expected: list[Message]) -> None:
    board = full()
    budget(board, allowed)
    board.group("urgent", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), **urgent)
    made = board.cycle()
    assert (verdict(made, "urgent").phase, causes(made, "urgent")) == (PodGroupPhase.PENDING, expected)


def test_who_is_not_let_in_for_what_another_queue_borrowed_is_told_too() -> None:
    board = Board(sharing="capacity")
    board.nodes(4)
    board.queue("root")
    board.queue("borrower", deserved=cores(cpu=2))
    board.queue("lender", deserved=cores(cpu=2))
    board.running("old", 4, [f"n{n}" for n in range(4)], min_member=1, labels=KEPT, queue="borrower")
    budget(board, 1)
    board.group("new", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), queue="lender")
    assert causes(board.cycle(), "new") == KEPT_OUTSIDE
