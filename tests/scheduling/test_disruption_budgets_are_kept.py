"""Whoever a disruption budget keeps is nobody's victim, and one plan takes no more of a budget than there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.gangs import NS, Board, key
from shoal.kube.objects import Key
from shoal.kube.selectors import from_label_selector
from shoal.scheduling.budgets import Budget
from shoal.scheduling.planning import Plan
from shoal.scheduling.snapshot import State

KEPT = {"app": "kept"}


def budget(it: Board, allowed: int, selector: dict[str, Any] | None = None, *, name: str = "b") -> None:
    chosen = from_label_selector({"matchLabels": KEPT} if selector is None else selector)
    it.view.budgets.set(Key(NS, name), Budget(chosen, allowed))


def crowd(**more: Any) -> Board:
    """Four cores, held by four pods of low priority, each a gang of its own."""
    it = Board()
    it.nodes(4)
    for number in range(4):
        it.running(f"low{number}", 1, [f"n{number}"], since=it.now - number, **more)
    return it


def evicted(made: Plan) -> list[str]:
    return sorted(eviction.pod.name for eviction in made.evictions)


CASES = {
    "nothing left": (0, {"labels": KEPT}, []),
    "one left for one": (1, {"labels": KEPT}, ["low0-0"]),
    "without labels nobody is spared": (0, {}, ["low0-0"]),
    "other labels": (0, {"labels": {"app": "other"}}, ["low0-0"]),
}


@pytest.mark.parametrize(("allowed", "pods", "victims"), CASES.values(), ids=CASES)
def test_pods_under_a_budget_go_only_where_it_allows(allowed: int, pods: dict[str, Any], victims: list[str]) -> None:
    it = crowd(**pods)
    budget(it, allowed)
    it.group("high", 1, priority=10)
    assert evicted(it.cycle()) == victims


def test_a_gang_that_needs_more_victims_than_the_budget_allows_touches_nobody() -> None:
    it = crowd(labels=KEPT)
    budget(it, 1)
    it.group("high", 2, priority=10)
    assert evicted(it.cycle()) == []


def test_another_victim_is_found_where_a_budget_is_used_up() -> None:
    it = crowd(labels=KEPT)
    it.nodes(5)
    it.running("free", 1, ["n4"], since=it.now - 100)  # more work would be lost than with any other
    budget(it, 1)
    it.group("high", 2, priority=10)
    assert evicted(it.cycle()) == ["free-0", "low0-0"]


def test_one_plan_counts_a_budget_down_over_all_groups() -> None:
    it = crowd(labels=KEPT)
    budget(it, 1)
    it.group("high", 1, priority=10)
    it.group("higher", 1, priority=20)
    assert evicted(it.cycle()) == ["low0-0"]
    assert it.view.budgets.get(Key(NS, "b")) == Budget(from_label_selector({"matchLabels": KEPT}), 0)
    assert evicted(it.cycle()) == []


def test_a_whole_gang_goes_only_where_all_of_it_may() -> None:
    it = Board()
    it.nodes(2)
    it.running("low", 2, ["n0", "n1"], labels=KEPT)
    budget(it, 1)
    it.group("high", 1, priority=10)
    assert evicted(it.cycle()) == []
    budget(it, 2)
    assert evicted(it.cycle()) == ["low-0", "low-1"]


def test_surplus_pods_go_as_far_as_the_budget_reaches() -> None:
    it = Board()
    it.nodes(4)
    it.running("low", 4, [f"n{number}" for number in range(4)], labels=KEPT, min_member=1)
    budget(it, 2)
    it.group("high", 2, priority=10)
    assert evicted(it.cycle()) == ["low-2", "low-3"]


def test_a_pod_under_two_budgets_stays() -> None:
    it = crowd(labels=KEPT)
    budget(it, 4)
    budget(it, 4, {}, name="everybody")
    it.group("high", 1, priority=10)
    assert evicted(it.cycle()) == []


def test_a_budget_for_everybody_spares_pods_without_labels_too_and_only_in_its_namespace() -> None:
    it = crowd()
    budget(it, 0, {})
    it.group("high", 1, priority=10)
    assert evicted(it.cycle()) == []
    it.view.budgets.remove(Key(NS, "b"))
    it.view.budgets.set(Key("elsewhere", "b"), Budget(from_label_selector({}), 0))
    assert evicted(it.cycle()) == ["low0-0"]


def test_what_never_ran_is_undone_except_for_a_pod_the_server_keeps() -> None:
    it = Board(hold_seconds=30)
    it.nodes(2)
    it.group("half", 3)
    for number in range(2):
        pod = it.view.pods[key(f"half-{number}")]
        bound = replace(pod, node=f"n{number}", state=State.RUNNING, since=it.now, protected=number == 0)
        it.view.set_pod(bound)
    assert evicted(it.cycle(later=60)) == ["half-1"]
