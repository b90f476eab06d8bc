"""Too large is what only more or larger nodes would help: not who waits for others, for a quota or for a sick node."""

from __future__ import annotations

import pytest

from kit.planner_board import Board, cores, verdict
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.planner.plan_types import GroupResult, Plan


def told(found: GroupResult) -> tuple[str, bool]:
    return found.reason, found.too_large


def test_a_gang_that_waits_for_others_to_end_is_not_too_large() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.running("old", 2, ["n"])
    board.group("g", 4)
    board.group("h", 5)
    made = board.cycle()
    assert [told(verdict(made, name)) for name in "gh"] == [("NotEnoughResources", False), ("TooLarge", True)]


@pytest.mark.parametrize("sick", [{"ready": False}, {"unschedulable": True}], ids=["not ready", "cordoned"])
def test_a_gang_that_waits_for_a_node_to_return_is_not_too_large(sick: dict[str, bool]) -> None:
    board = Board()
    board.node("a", cpu=2)
    board.node("b", cpu=2, **sick)
    board.group("g", 4)
    board.group("let-in-later", 4, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=4))
    made = board.cycle()
    assert [told(verdict(made, name)) for name in ("g", "let-in-later")] == [
        ("NotEnoughResources", False), ("QueueQuota", False),
    ]  # fmt: skip


def test_a_gang_that_is_not_let_in_may_be_too_large_before_it_has_pods() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.queue("small", capability=cores(cpu=1))
    board.group("g", 0, min_member=5, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=5))
    board.group("quota", 0, min_member=2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2), queue="small")
    made = board.cycle()
    assert [told(verdict(made, name)) for name in ("g", "quota")] == [("TooLarge", True), ("QueueQuota", False)]


@pytest.mark.parametrize(
    "phase", [PodGroupPhase.PENDING, PodGroupPhase.INQUEUE], ids=["outside its queue", "let into its queue"]
)
def test_a_gang_whose_queue_would_be_allowed_more_than_all_nodes_have_is_too_large(phase: PodGroupPhase) -> None:
    board = Board()
    board.node("n", cpu=4)
    board.queue("wide", capability=cores(cpu=64))
    board.queue("narrow", capability=cores(cpu=5))
    for queue in ("wide", "narrow"):
        board.group(f"in-{queue}", 6, queue=queue, phase=phase, min_resources=cores(cpu=6))
    made = board.cycle()
    assert [told(verdict(made, name)) for name in ("in-wide", "in-narrow")] == [
        ("TooLarge", True), ("QueueQuota", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "phase", [PodGroupPhase.PENDING, PodGroupPhase.INQUEUE], ids=["outside its queue", "let into its queue"]
)
def test_a_gang_whose_queue_waits_for_a_node_to_return_is_not_too_large(phase: PodGroupPhase) -> None:
    board = Board()
    board.node("a", cpu=4)
    board.node("b", cpu=4, ready=False)
    board.queue("wide", capability=cores(cpu=64))
    board.group("g", 6, queue="wide", phase=phase, min_resources=cores(cpu=6))
    assert told(verdict(board.cycle(), "g")) == ("QueueQuota", False)


def test_what_an_elastic_gang_lacks_beyond_its_minimum_does_not_count() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("g", 8, min_member=2)
    board.cycle()
    board.starts()
    made: Plan = board.cycle()
    assert [told(each) for each in made.groups] == [("Scheduled", False)]


def test_nothing_is_too_large_for_a_cluster_whose_nodes_have_not_come_yet() -> None:
    board = Board()
    board.group("g", 4)
    board.group("let-in-later", 0, min_member=4, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=4))
    assert [each.too_large for each in board.cycle().groups] == [False, False]
