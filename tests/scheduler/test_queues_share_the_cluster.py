"""Scenarios 6 to 10, 15, 17, 18, 22, 26 and 27 of the gang specification: admission, shares, order, queue states."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.planner_board import Board, binds, causes, cores, key, message, verdict
from shoal.scheduler.planner.fair_share import FairShares
from shoal.scheduler.planner.gang_types import PodGroupPhase, Queue
from shoal.scheduler.planner.plan_builder import pod_waits


def pending(board: Board, name: str, cpu: int, **more: object) -> None:
    """A group that asks to be let in and has no pods yet."""
    board.group(name, 0, min_member=1, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=cpu), **more)  # type: ignore[arg-type]


def phases(board: Board, *names: str, later: float = 0.0) -> list[PodGroupPhase]:
    made = board.cycle(later=later)
    known = {found.group.name: found.phase for found in made.groups}
    return [known.get(name, board.view.groups[key(name)].group.phase) for name in names]


def test_06_a_group_above_its_queues_capability_stays_out_and_the_queue_is_named() -> None:
    board = Board()
    board.node("n", cpu=100)
    board.queue("small", capability=cores(cpu=4))
    pending(board, "g", 8, queue="small")
    made = board.cycle()
    found = verdict(made, "g")
    assert (found.phase, found.blocked) == (PodGroupPhase.PENDING, "quota")
    remedy = message("Remedy.Capability")
    assert causes(made, "g") == [
        message("Quota.OverQueue", need="8", resource="cpu", limit="4", queue="small", remedy=remedy)
    ]


def test_07_overcommit_lets_two_of_three_queues_in() -> None:
    board = Board()
    board.node("n", cpu=10)
    for name in "abc":
        board.queue(name)
        pending(board, f"g{name}", 6, queue=name)
    made = board.cycle()
    assert [verdict(made, f"g{name}").phase for name in "abc"] == [
        PodGroupPhase.INQUEUE,
        PodGroupPhase.INQUEUE,
        PodGroupPhase.PENDING,
    ]
    assert causes(made, "gc") == [message("Quota.Cluster", need="6", resource="cpu", limit="12", used="12")]


def test_07_in_one_queue_the_ceiling_is_the_cluster() -> None:
    board = Board()
    board.node("n", cpu=10)
    for number in range(3):
        pending(board, f"g{number}", 6)
    assert phases(board, "g0", "g1", "g2") == [PodGroupPhase.INQUEUE, PodGroupPhase.PENDING, PodGroupPhase.PENDING]


def deserved(board: Board, *names: str) -> list[float]:
    shares = FairShares(board.view)
    return [round(shares.standings[name].deserved["cpu"] / 1000, 3) for name in names]


WEIGHTS = [
    pytest.param({"a": 40, "b": 40}, {"a": 1, "b": 3}, {}, 40, [10.0, 30.0], id="08 both hungry"),
    pytest.param({"a": 40, "b": 12}, {"a": 1, "b": 3}, {}, 40, [28.0, 12.0], id="08 one asks for less"),
    pytest.param({"a": 20, "b": 20}, {"a": 1, "b": 1}, {"a": 5}, 20, [5.0, 15.0], id="09 capability"),
]


@pytest.mark.parametrize(("wants", "weights", "capability", "total", "expected"), WEIGHTS)
def test_08_09_shares_follow_weights_demand_and_capability(
    wants: dict[str, int], weights: dict[str, int], capability: dict[str, int], total: int, expected: list[float]
) -> None:
    board = Board()
    board.node("n", cpu=total)
    for name, cpu in wants.items():
        limit = cores(cpu=capability[name]) if name in capability else {}
        board.queue(name, weight=weights[name], capability=limit)
        board.group(f"g{name}", cpu, min_member=1, queue=name)
    assert deserved(board, "a", "b") == expected
    made = board.cycle()
    bound = [sum(pod.startswith(f"g{name}") for pod in binds(made)) for name in "ab"]
    assert bound == expected


def test_10_what_is_guaranteed_to_an_idle_queue_is_never_lent() -> None:
    board = Board()
    board.node("n", cpu=10)
    board.queue("a", guarantee=cores(cpu=4), deserved=cores(cpu=4))
    board.queue("b")
    board.group("gb", 10, min_member=1, queue="b")
    made = board.cycle()
    assert len(binds(made)) == 6
    assert verdict(made, "gb").message == message("Scheduled", placed=6, total=6)


def test_15_the_next_slot_goes_to_the_lower_dominant_share() -> None:
    """Nine cores and 18 of memory; a asks for 1 and 4, b for 3 and 1.

    Shares after each step: a 4/18, b 3/9, a 8/18, b 6/9, a 12/18: the classic division of dominant resources.
    """
    board = Board()
    board.node("n", cpu=9, memory=18)
    board.group("a", 5, min_member=1, cpu=1, memory=4)
    board.group("b", 5, min_member=1, cpu=3, memory=1)
    assert [bind.pod.name for bind in board.cycle().binds] != []
    assert sorted(board.on_nodes("a")) == ["a-0", "a-1", "a-2"]
    assert sorted(board.on_nodes("b")) == ["b-0", "b-1"]


def line(fifo: bool) -> Board:
    board = Board()
    board.node("n", cpu=100)
    board.queue("q", fifo=fifo)
    board.running("old", 1, ["n"], cpu=50, queue="q", created=0.0)
    board.group("head", 1, cpu=100, queue="q", created=1.0)
    board.group("tail", 1, cpu=10, queue="q", created=2.0)
    return board


def test_17_strictly_in_order_the_later_group_waits_behind_the_head() -> None:
    made = line(fifo=True).cycle()
    assert made.binds == ()
    behind = message("Turn.Behind", group="head", queue="q")
    assert causes(made, "tail") == [behind, message("Turn.JobAhead", queue="q")]


def test_17_otherwise_the_later_group_passes() -> None:
    assert binds(line(fifo=False).cycle()) == {"tail-0": "n"}


def test_17_a_head_that_waited_too_long_gets_a_node_to_itself() -> None:
    board = line(fifo=False)
    board.finishes("tail")
    made = board.cycle(later=1800)
    assert made.reservations == ((key("head"), ("n",)),)
    board.group("small", 1, cpu=10, queue="q")
    assert board.cycle().binds == (), "the node is kept"
    board.finishes("old")
    assert binds(board.cycle()) == {"head-0": "n"}


def test_17_guests_and_those_that_end_in_time_may_use_the_kept_node() -> None:
    board = line(fifo=False)
    board.finishes("tail")
    old = board.view.groups[key("old")].group
    board.view.set_group(replace(old, estimate_seconds=4000.0))
    board.cycle(later=1800)
    board.group("long", 1, cpu=10, queue="q", estimate_seconds=9000.0)
    board.group("short", 1, cpu=10, queue="q", estimate_seconds=100.0)
    board.group("guest", 1, cpu=10, queue="q", preemptible_guest=True)
    assert binds(board.cycle()) == {"short-0": "n", "guest-0": "n"}


def test_18_a_promised_waiting_time_beats_overcommit() -> None:
    board = Board()
    board.node("n", cpu=10)
    board.queue("other")
    pending(board, "first", 10)
    pending(board, "late", 6, queue="other", sla_seconds=60.0)
    assert phases(board, "first", "late") == [PodGroupPhase.INQUEUE, PodGroupPhase.PENDING]
    assert phases(board, "late", later=61) == [PodGroupPhase.INQUEUE]


def test_22_a_closed_queue_places_nothing_and_keeps_what_runs() -> None:
    board = Board()
    board.nodes(4)
    board.queue("q")
    board.running("old", 1, ["n0"], queue="q")
    board.group("new", 2, queue="q")
    board.view.set_queue(Queue("q", open=False))
    made = board.cycle()
    assert (made.binds, made.evictions) == ((), ())
    assert causes(made, "new") == [message("Turn.QueueClosedToPods", queue="q")]
    board.view.set_queue(Queue("q"))
    assert sorted(binds(board.cycle())) == ["new-0", "new-1"]


def test_22_nothing_is_let_into_a_closed_or_missing_queue() -> None:
    board = Board()
    board.node("n", cpu=10)
    board.queue("shut", open=False)
    pending(board, "a", 1, queue="shut")
    pending(board, "b", 1, queue="nowhere")
    made = board.cycle()
    assert causes(made, "a") == [message("Turn.QueueClosed", queue="shut")]
    assert causes(made, "b") == [message("Queue.Missing", queue="nowhere")]


def test_26_an_admitted_group_without_a_place_goes_back_and_lets_the_next_in() -> None:
    board = Board()
    board.nodes(2, cpu=4)
    pending(board, "impossible", 8)
    pending(board, "next", 8)
    assert phases(board, "impossible", "next") == [PodGroupPhase.INQUEUE, PodGroupPhase.PENDING]
    board.pods("impossible", [0], cpu=8)
    assert phases(board, "impossible", "next", later=600) == [PodGroupPhase.PENDING, PodGroupPhase.INQUEUE]
    found = verdict(board.cycle(), "impossible")
    assert (found.reason, found.timeouts, found.not_before) == ("InqueueTimeout", 1, board.now + 60)


def test_26_two_that_never_find_a_place_do_not_keep_a_third_out_by_turns() -> None:
    board = Board()
    board.nodes(2, cpu=4)
    for name, promised in (("one", 60.0), ("other", 650.0)):
        pending(board, name, 8, sla_seconds=promised)
        board.pods(name, [0], cpu=8)
    for _ in range(12):  # until each waits outside for as long as the other may be inside
        board.cycle(later=600)
    pending(board, "third", 8)
    assert PodGroupPhase.INQUEUE in [phases(board, "third", later=600)[0] for _ in range(3)]


def test_27_only_pods_that_more_nodes_would_help_are_called_unschedulable() -> None:
    board = Board()
    board.nodes(2)
    board.queue("small", capability=cores(cpu=1))
    board.group("by-quota", 2, queue="small")
    board.group("by-capacity", 3)
    made = board.cycle()
    reasons = {wait.pod.name: wait.reason for wait in pod_waits(made, board.view)}
    assert reasons == {f"by-quota-{n}": "Queued" for n in range(2)} | {
        f"by-capacity-{n}": "Unschedulable" for n in range(3)
    }
    assert verdict(made, "by-quota").blocked == "quota"


def test_a_child_queue_is_bounded_by_its_parents() -> None:
    board = Board(sharing="capacity")
    board.node("n", cpu=20)
    board.queue("dept", capability=cores(cpu=6))
    board.queue("dev", parent="dept")
    board.queue("ops", parent="dept", guarantee=cores(cpu=2), deserved=cores(cpu=2))
    board.group("g", 10, min_member=1, queue="dev")
    assert len(board.cycle().binds) == 4


def test_a_queue_that_says_what_it_deserves_where_weights_decide_is_warned() -> None:
    board = Board()
    board.node("n", cpu=10)
    board.queue("q", deserved=cores(cpu=2))
    board.queue("rich", guarantee=cores(cpu=20))
    assert list(board.cycle().warnings) == [
        message("Queue.DeservedUnused", queue="q"),
        message("Queue.GuaranteesOverCluster", resource="cpu"),
    ]


def test_what_still_runs_on_a_cordoned_node_keeps_nobody_out_of_the_others() -> None:
    board = Board()
    board.nodes(2, cpu=4)
    board.running("runs", 4, ["n0"])
    board.node("n0", cpu=4, unschedulable=True)
    board.group("next", min_member=4, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=4))
    assert [verdict.phase for verdict in board.cycle().groups] == [PodGroupPhase.INQUEUE]
    board.node("n1", cpu=3)
    board.group("last", min_member=4, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=4))
    assert [verdict.phase for verdict in board.cycle().groups] == [PodGroupPhase.PENDING, PodGroupPhase.INQUEUE]


def test_18_whoever_was_promised_an_earlier_start_goes_first() -> None:
    board = Board()
    board.nodes(1)
    board.group("none", 1, created=0.0)
    board.group("late", 1, created=1.0, sla_seconds=5000.0)
    board.group("soon", 1, created=2.0, sla_seconds=4000.0)
    assert binds(board.cycle()) == {"soon-0": "n0"}


def test_a_queue_of_higher_priority_is_served_first() -> None:
    board = Board(sharing="capacity")
    board.nodes(1)
    board.queue("a", deserved=cores(cpu=1))
    board.queue("b", priority=1)
    board.group("first", 1, queue="a", created=0.0)
    board.group("urgent", 1, queue="b")
    assert list(binds(board.cycle())) == ["urgent-0"]
