"""A gang that has waited too long is admitted and starts, although small jobs never stop coming."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import Board, cores, key
from shoal.scheduler.planner.gang_types import PodGroupPhase

RESERVE_AFTER = 10.0


class Stream:
    """Jobs as their controllers make them: a PodGroup first, its pods once it is admitted."""

    def __init__(self, **settings: Any) -> None:
        self.board = Board(starving_seconds=RESERVE_AFTER, **settings)
        self.waiting: dict[str, tuple[int, int]] = {}
        self.ends: dict[str, float] = {}

    def submit(self, name: str, pods: int, *, cpu: int = 1, **more: Any) -> None:
        self.board.group(
            name, min_member=pods, min_resources=cores(cpu=pods * cpu), phase=PodGroupPhase.PENDING, **more
        )
        self.waiting[name] = (pods, cpu)

    def second(self) -> None:
        board = self.board
        board.cycle(later=1)
        for name, (pods, cpu) in list(self.waiting.items()):
            if board.view.groups[key(name)].group.phase is PodGroupPhase.INQUEUE:
                board.pods(name, range(pods), cpu=cpu)
                del self.waiting[name]
        board.cycle()
        board.starts()
        for name in [each for each, end in self.ends.items() if end <= board.now]:
            board.finishes(name)
            del self.ends[name]
        for group in {each.group.name for each in board.view.pods.values() if each.node} - self.ends.keys():
            self.ends[group] = board.now + 4


def started_after(stream: Stream, big: str, *, queue: str) -> int:
    """Seconds until the big gang runs. Small jobs of several seconds come at three per second, without an end."""
    for second in range(-8, 60):
        if second == 0:
            stream.submit(big, 8)
        for number in range(3):
            stream.submit(f"small-{second}-{number}", 1, queue=queue)
        stream.second()
        if stream.board.on_nodes(big):
            return second
    return 60


@pytest.mark.parametrize("queue", ["default", "other"])
@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_08_a_gang_of_8_of_12_cores_starts(sharing: str, queue: str) -> None:
    stream = Stream(sharing=sharing, overcommit=1.0)
    stream.board.nodes(3, cpu=4)
    stream.board.queue("other")
    assert started_after(stream, "big", queue=queue) <= RESERVE_AFTER + 6


def test_08_a_gang_that_fills_the_capability_of_its_queue_starts() -> None:
    stream = Stream()
    stream.board.nodes(3, cpu=40)
    stream.board.queue("default", capability=cores(cpu=10))
    assert started_after(stream, "big", queue="default") <= RESERVE_AFTER + 6


def test_08_admission_is_looked_at_again_when_a_group_has_waited_too_long() -> None:
    board = Board(starving_seconds=RESERVE_AFTER)
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    board.group("big", min_member=4, min_resources=cores(cpu=4), phase=PodGroupPhase.PENDING)
    assert board.cycle().wake_at == board.now + RESERVE_AFTER
    board.cycle(later=RESERVE_AFTER)
    assert board.view.groups[key("big")].group.phase is PodGroupPhase.INQUEUE


def test_08_a_group_that_can_never_be_admitted_wakes_nothing() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.group("giant", min_member=9, min_resources=cores(cpu=9), phase=PodGroupPhase.PENDING)
    assert board.cycle().wake_at is None


def test_08_one_group_per_queue_is_admitted_beyond_the_limits() -> None:
    board = Board(starving_seconds=RESERVE_AFTER)
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    for name in ("one", "two"):
        board.group(name, min_member=4, min_resources=cores(cpu=4), phase=PodGroupPhase.PENDING)
    board.cycle(later=2 * RESERVE_AFTER)
    phases = [board.view.groups[key(name)].group.phase for name in ("one", "two")]
    assert phases == [PodGroupPhase.INQUEUE, PodGroupPhase.PENDING]


def test_08_a_group_that_asks_for_more_than_the_cluster_has_holds_back_no_others() -> None:
    board = Board(starving_seconds=RESERVE_AFTER)
    board.node("n", cpu=4)
    board.group("giant", min_member=9, min_resources=cores(cpu=9), phase=PodGroupPhase.PENDING)
    board.cycle(later=100 * RESERVE_AFTER)
    assert board.view.groups[key("giant")].group.phase is PodGroupPhase.PENDING


def test_08_gangs_that_never_fit_keep_no_gang_behind_them_from_its_reservation() -> None:
    """Either pod of them would fit on the empty node, and both together do not."""
    board = Board(starving_seconds=RESERVE_AFTER)
    board.node("n", cpu=4)
    for number in range(6):
        board.group(f"never-{number}", min_member=2, created=0.0)
        board.pods(f"never-{number}", [0], cpu=3)
        board.pods(f"never-{number}", [1], cpu=2)
    for number in range(4):
        board.running(f"small-{number}", 1, ["n"])
    board.group("big", 3)
    for number in range(4, 50):
        board.group(f"small-{number}", 1)
        board.cycle(later=2)
        if board.on_nodes("big"):
            break
        board.starts()
        board.finishes(next(name for name in board.view.groups if board.on_nodes(name.name)).name)
    assert len(board.on_nodes("big")) == 3
