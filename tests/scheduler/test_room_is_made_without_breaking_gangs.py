"""Scenarios 11 to 14 of the gang specification: reclaim, preemption, who gives way and who never does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.planner_board import Board, binds, cores, evicted, key, said, shrunk
from shoal.kube.objects import Key
from shoal.scheduler.messages import text
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState


def lent(*, minimum: int, reclaimable: bool = True, **more: Any) -> Board:
    """Queue a deserves 10 of 20 cores and uses 16; b deserves the other 10 and wants 8 at once."""
    board = Board(sharing="capacity", **more)
    board.nodes(20)
    board.queue("a", deserved=cores(cpu=10), reclaimable=reclaimable)
    board.queue("b", deserved=cores(cpu=10))
    board.running("old", 16, [f"n{n}" for n in range(16)], min_member=minimum, queue="a")
    board.group("new", 8, queue="b")
    return board


def test_11_just_enough_surplus_of_the_borrower_goes_and_the_whole_gang_starts() -> None:
    board = lent(minimum=10)
    made = board.cycle()
    assert evicted(made) == ["old-12", "old-13", "old-14", "old-15"]
    assert text(made.evictions[0].message) == (
        "evicted: old was reclaimed for new in queue b, "
        "because the queue of the evicted pods exceeds its deserved share"
    )
    assert said(made, "new") == "waiting: 4 pods on the chosen nodes must terminate first"
    assert board.cycle().evictions == (), "room is made once"
    board.leaves()
    assert len(binds(board.cycle())) == 8


def test_11_a_queue_that_is_not_reclaimable_keeps_what_it_borrowed() -> None:
    made = lent(minimum=10, reclaimable=False).cycle()
    assert (made.binds, made.evictions, made.shrinks) == ((), (), ())


def test_12_a_gang_at_its_minimum_goes_whole() -> None:
    board = lent(minimum=16)
    assert len(evicted(board.cycle())) == 16


def test_12_or_not_at_all() -> None:
    board = lent(minimum=16, evict_whole_gangs=False)
    assert board.cycle().evictions == ()


@pytest.mark.parametrize(("is_seen", "gone"), [(True, ["old-0", "old-1"]), (False, [])])
def test_a_gang_whose_group_is_not_seen_here_is_left_alone(is_seen: bool, gone: list[str]) -> None:
    board = Board()
    board.nodes(2)
    board.running("old", 2, ["n0", "n1"])
    if not is_seen:
        board.view.remove_group(key("old"))
    board.group("new", 1, priority=10)
    assert evicted(board.cycle()) == gone


def test_an_elastic_job_shrinks_before_anybody_is_evicted() -> None:
    board = lent(minimum=10)
    group = board.view.groups[key("old")].group
    board.view.set_group(replace(group, elastic=True))
    made = board.cycle()
    assert (evicted(made), shrunk(made)) == ([], ["old-12", "old-13", "old-14", "old-15"])
    assert text(made.shrinks[0].message) == (
        "shrunk by 4: old was reclaimed for new in queue b, "
        "because the queue of the evicted pods exceeds its deserved share"
    )


def full(**more: Any) -> Board:
    """Six cores: a low gang of two with two surplus pods, and an equal one of two."""
    board = Board(**more)
    board.nodes(6)
    board.running("low", 4, ["n0", "n1", "n2", "n3"], min_member=2, priority=1)
    board.running("equal", 2, ["n4", "n5"], priority=5)
    return board


def test_13_surplus_of_the_low_goes_first() -> None:
    board = full()
    board.group("high", 2, priority=5)
    assert evicted(board.cycle()) == ["low-2", "low-3"]


def test_13_then_the_whole_low_gang() -> None:
    board = full()
    board.group("high", 3, priority=5)
    assert evicted(board.cycle()) == ["low-0", "low-1", "low-2", "low-3"]


def test_13_and_equals_never() -> None:
    board = full()
    board.group("high", 5, priority=5)
    assert board.cycle().evictions == ()


SPARED = [
    pytest.param({"preemptable": False}, id="a pod that is not preemptable"),
    pytest.param({"protected": True}, id="a disruption budget"),
    pytest.param({"priority": 2_000_000_000}, id="a critical pod"),
    pytest.param({"key": Key("kube-system", "dns")}, id="kube-system"),
]


@pytest.mark.parametrize("field", SPARED)
def test_13_some_pods_are_never_evicted(field: dict[str, Any]) -> None:
    board = Board()
    board.nodes(1)
    pod = Pod(key("dns"), "uid", cores(cpu=1, pods=1), node="n0", state=PodState.RUNNING)
    board.view.set_pod(replace(pod, **field))
    gang = next(iter(board.view.groups.values()))
    gang.group = replace(gang.group, priority=-1)
    board.group("high", 1, priority=10)
    assert board.cycle().evictions == ()


def test_14_where_the_whole_gang_would_not_fit_nobody_is_evicted() -> None:
    board = full()
    board.group("high", 7, priority=9)
    made = board.cycle()
    assert (made.evictions, made.shrinks, made.nominations) == ((), (), ())


def test_a_pod_that_never_preempts_waits() -> None:
    board = full()
    board.group("high", 2, priority=9, never_preempts=True)
    assert board.cycle().evictions == ()


def test_the_least_work_is_lost() -> None:
    board = Board()
    board.nodes(3)
    board.running("long", 1, ["n0"], since=0.0)
    board.running("saved", 1, ["n1"], since=0.0, checkpoint=995.0)
    board.running("short", 1, ["n2"], since=900.0)
    board.group("high", 1, priority=1)
    assert evicted(board.cycle()) == ["saved-0"]


def test_nobody_else_takes_the_room_while_the_victims_leave() -> None:
    board = full()
    board.group("high", 2, priority=5)
    made = board.cycle()
    assert {nomination.pod.name: nomination.node for nomination in made.nominations} == {"high-0": "n2", "high-1": "n3"}
    board.group("quick", 1, priority=0)
    board.view.remove_pod(key("low-2"))
    assert board.cycle().binds == ()
    board.leaves()
    assert binds(board.cycle()) == {"high-0": "n2", "high-1": "n3"}


def test_a_guest_leaves_the_kept_node_when_its_owner_can_start() -> None:
    board = Board()
    board.node("n", cpu=2)
    board.running("guest", 1, ["n"], cpu=1, preemptible_guest=True, created=0.0)
    board.group("head", 1, cpu=2, created=0.0)
    made = board.cycle(later=1800)
    assert made.reservations == ((key("head"), ("n",)),)
    assert evicted(made) == ["guest-0"]
    board.leaves()
    assert binds(board.cycle()) == {"head-0": "n"}


def test_the_nearest_relatives_give_back_first() -> None:
    board = Board(sharing="capacity")
    board.nodes(4)
    board.queue("dept")
    board.queue("dev", parent="dept", deserved=cores(cpu=1))
    board.queue("ops", parent="dept", deserved=cores(cpu=1))
    board.queue("far", deserved=cores(cpu=1))
    board.running("strangers", 2, ["n0", "n1"], min_member=1, queue="far", since=999.0)
    board.running("cousins", 2, ["n2", "n3"], min_member=1, queue="ops", since=0.0)
    board.group("new", 1, queue="dev")
    assert evicted(board.cycle()) == ["cousins-1"]


def test_what_is_left_of_a_gang_without_its_chief_goes_as_one() -> None:
    """Enough pods are left for its minimum, but none of a role that needs one: it is broken, and has no surplus."""
    board = Board()
    board.nodes(3)
    board.running("low", 3, ["n0", "n1", "n2"], min_member=2, min_roles={"chief": 1}, role="worker")
    board.group("high", 1, priority=1)
    assert evicted(board.cycle()) == ["low-worker-0", "low-worker-1", "low-worker-2"]


@pytest.mark.parametrize(
    ("settings", "priority", "gone"),
    [
        pytest.param({}, 1, ["low-0", "low-1", "low-2", "low-3"], id="whole-gangs-give-way"),
        pytest.param({"evict_whole_gangs": False}, 1, [], id="gangs-stay-whole"),
        pytest.param({"preempt": False}, 1, [], id="nobody-is-preempted"),
        pytest.param({}, 0, [], id="equals"),
    ],
)
def test_a_group_is_let_in_where_others_give_way_to_it(
    settings: dict[str, bool], priority: int, gone: list[str]
) -> None:
    board = Board(**settings)
    board.nodes(4)
    board.running("low", 4, ["n0", "n1", "n2", "n3"], min_resources=cores(cpu=4))
    board.group("high", 4, priority=priority, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=4))
    assert evicted(board.cycle()) == gone


@pytest.mark.parametrize("sharing", ["capacity", "proportion"])
@pytest.mark.parametrize(
    ("cpus", "more", "gone"),
    [
        pytest.param(8, {}, 8, id="within-its-part"),
        pytest.param(12, {}, 0, id="more-than-its-part"),
        pytest.param(8, {"reclaimable": False}, 0, id="lent-for-good"),
    ],
)
def test_a_group_is_let_in_where_its_queue_may_take_back_what_it_lent(
    sharing: str, cpus: int, more: dict[str, bool], gone: int
) -> None:
    board = Board(sharing=sharing)
    board.nodes(20)
    board.queue("a", deserved=cores(cpu=10), **more)
    board.queue("b", deserved=cores(cpu=10))
    nodes = [f"n{n}" for n in range(20)]
    board.running("old", 20, nodes, min_member=4, queue="a", min_resources=cores(cpu=4))
    board.group("new", cpus, queue="b", phase=PodGroupPhase.PENDING, min_resources=cores(cpu=cpus))
    assert len(evicted(board.cycle())) == gone


def test_no_more_groups_are_let_in_than_others_give_way_to() -> None:
    board = Board()
    board.nodes(4)
    board.running("low", 4, ["n0", "n1", "n2", "n3"], min_member=2, min_resources=cores(cpu=2))
    for name in ("first", "second", "third"):
        board.group(name, 2, priority=1, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=2))
    made = board.cycle()
    assert {verdict.group.name: verdict.phase for verdict in made.groups if verdict.group.name != "low"} == {
        "first": PodGroupPhase.INQUEUE,
        "second": PodGroupPhase.INQUEUE,
        "third": PodGroupPhase.PENDING,
    }


def test_no_room_is_made_for_a_group_that_is_not_let_in() -> None:
    board = Board()
    board.nodes(2)
    board.running("low", 2, ["n0", "n1"], min_member=1)
    board.group("high", 1, priority=1, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=3))
    assert board.cycle().evictions == ()
