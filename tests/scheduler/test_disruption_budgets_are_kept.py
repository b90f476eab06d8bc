"""Whoever a disruption budget keeps is nobody's victim, and one plan takes no more of a budget than there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.planner_board import NS, Board, cores, key
from shoal.kube.objects import Key
from shoal.kube.selectors import from_label_selector
from shoal.scheduler.planner.disruption_budgets import DisruptionBudget
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.planner.node_and_pod_types import PodState
from shoal.scheduler.planner.plan_types import Plan

KEPT = {"app": "kept"}


def budget(it: Board, allowed: int, selector: dict[str, Any] | None = None, *, name: str = "b") -> None:
    chosen = from_label_selector({"matchLabels": KEPT} if selector is None else selector)
    it.view.budgets.set(Key(NS, name), DisruptionBudget(chosen, allowed))


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
    assert it.view.budgets.get(Key(NS, "b")) == DisruptionBudget(from_label_selector({"matchLabels": KEPT}), 0)
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
    it.view.budgets.set(Key("elsewhere", "b"), DisruptionBudget(from_label_selector({}), 0))
    assert evicted(it.cycle()) == ["low0-0"]


def test_what_never_ran_is_undone_except_for_a_pod_the_server_keeps() -> None:
    it = Board(hold_seconds=30)
    it.nodes(2)
    it.group("half", 3)
    for number in range(2):
        pod = it.view.pods[key(f"half-{number}")]
        bound = replace(pod, node=f"n{number}", state=PodState.RUNNING, since=it.now, protected=number == 0)
        it.view.set_pod(bound)
    assert evicted(it.cycle(later=60)) == ["half-1"]


LET_IN = {
    "nobody is kept": (None, {}, {"least": 3}, ["great"]),
    "a budget that allows nothing": (0, {}, {"least": 3}, ["small"]),
    "a budget that allows too few for the gang": (2, {}, {"least": 3}, ["small"]),
    "a budget that allows the whole gang": (3, {}, {"least": 3}, ["great"]),
    "a budget that allows all that can be spared": (1, {}, {"least": 2, "great": 2}, ["great"]),
    "a budget that allows fewer than are needed": (1, {}, {"least": 1, "great": 3}, ["small"]),
    "pods that may not be preempted": (None, {"preemptable": False}, {"least": 3}, ["small"]),
    "pods that the server just kept": (None, {"protected": True}, {"least": 3}, ["small"]),
}


@pytest.mark.parametrize(("allowed", "pods", "sizes", "let_in"), LET_IN.values(), ids=LET_IN)
def test_what_is_kept_counts_as_free_for_nobody(
    allowed: int | None, pods: dict[str, Any], sizes: dict[str, int], let_in: list[str]
) -> None:
    """Three of four cores are held by pods of low priority; a great group wants them, a small one the fourth."""
    it = Board()
    it.nodes(4)
    least = sizes["least"]
    it.running("little", 3, ["n0", "n1", "n2"], min_member=least, min_resources=cores(cpu=least), labels=KEPT)
    for number in range(3):
        it.view.set_pod(replace(it.view.pods[key(f"little-{number}")], **pods))
    if allowed is not None:
        budget(it, allowed)
    for name, asked, priority in (("great", sizes.get("great", 4), 10), ("small", 1, 0)):
        it.group(name, min_member=asked, min_resources=cores(cpu=asked), priority=priority, phase=PodGroupPhase.PENDING)
    phases = {verdict.group.name: verdict.phase for verdict in it.cycle().groups}
    assert [name for name in ("great", "small") if phases[name] is PodGroupPhase.INQUEUE] == let_in


@pytest.mark.parametrize(
    ("allowed", "phase"), [(2, PodGroupPhase.INQUEUE), (1, PodGroupPhase.PENDING), (0, PodGroupPhase.PENDING)]
)
def test_what_another_queue_borrowed_is_not_free_where_a_budget_keeps_it(allowed: int, phase: PodGroupPhase) -> None:
    it = Board(sharing="capacity")
    it.node("n", cpu=4)
    for name in ("borrower", "lender"):
        it.queue(name, deserved=cores(cpu=2))
    it.running("old", 4, ["n"], min_member=1, min_resources=cores(cpu=1), queue="borrower", labels=KEPT)
    budget(it, allowed)
    it.group("new", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), queue="lender")
    made = it.cycle()
    assert {verdict.group.name: verdict.phase for verdict in made.groups}["new"] is phase
    assert len(evicted(made)) == (2 if phase is PodGroupPhase.INQUEUE else 0)


def test_where_gangs_are_not_evicted_whole_only_what_can_be_spared_is_free() -> None:
    it = Board(evict_whole_gangs=False)
    it.nodes(4)
    it.running("little", 4, ["n0", "n1", "n2", "n3"], min_member=2)
    for number, asked in enumerate((3, 2)):
        it.group(
            f"new{number}", min_member=asked, min_resources=cores(cpu=asked), priority=10, phase=PodGroupPhase.PENDING
        )
    phases = {verdict.group.name: verdict.phase for verdict in it.cycle().groups}
    assert (phases["new0"], phases["new1"]) == (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE)
