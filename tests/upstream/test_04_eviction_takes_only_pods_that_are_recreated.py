"""Pods that no controller recreates, and pods outside any group, are not evicted unless they declare themselves
preemptable."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import Board, cores, evicted
from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.kube.kinds import PRIORITY_CLASS
from shoal.scheduler.planner.from_objects import pod_from

FRAMEWORK = {"apiVersion": "v1", "kind": "ConfigMap", "name": "f-attempt", "uid": "u", "controller": True}
JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
PREEMPTABLE = "volcano.sh/preemptable"


@pytest.mark.parametrize(
    ("owners", "recreated"),
    [([], False), ([FRAMEWORK], False), ([{**JOB, "controller": False}], False), ([JOB], True)],
    ids=["bare", "of a Framework", "owned, not controlled", "of a Volcano Job"],
)
def test_04_what_is_recreated_is_read_from_the_controller(owners: list[Any], recreated: bool) -> None:
    metadata = {"name": "p", "namespace": NS, "uid": "u", "ownerReferences": owners}
    pod = pod_from({"metadata": metadata, "spec": {"containers": []}})
    assert (pod.recreated, pod.preemptable) == (recreated, None)


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_04_a_pod_may_declare_itself_preemptable(where: str) -> None:
    metadata = {"name": "p", "namespace": NS, "uid": "u", where: {PREEMPTABLE: "true"}}
    assert pod_from({"metadata": metadata, "spec": {"containers": []}}).preemptable is True


async def crowded(it: Scheduled, **pod: Any) -> None:
    """Twelve cores full of pods without a group, and a queue that deserves half of them."""
    for name in "abc":
        await it.node(name, cpu=4)
    for number in range(12):
        await it.pod(f"plain-{number}", **pod)
    await it.queue("new", deserved={"cpu": "6"})
    await it.rest()


@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
@pytest.mark.parametrize("controlled", [False, True], ids=["bare", "of a ReplicaSet"])
async def test_04_reclaim_takes_no_pod_outside_a_group(controlled: bool, sharing: str) -> None:
    async with scheduled(sharing=sharing) as it:
        await crowded(it, controlled=controlled)
        await it.gang("job", 4, queue="new")
        await it.rest(60)
        assert (len(await it.placed()), await it.events("Evicted")) == (12, [])


async def test_04_reclaim_takes_pods_that_declare_themselves_preemptable() -> None:
    async with scheduled() as it:
        await crowded(it, controlled=False, notes={PREEMPTABLE: "true"})
        await it.gang("job", 4, queue="new")
        await it.rest(60)
        assert len(await it.events("Evicted")) == 4
        assert {f"job-{number}" for number in range(4)} <= set(await it.placed())


@pytest.mark.parametrize(
    ("pod", "count"),
    [({"controlled": False}, 0), ({"controlled": True}, 2), ({"controlled": False, "notes": {PREEMPTABLE: "true"}}, 2)],
    ids=["bare", "recreated", "bare and preemptable"],
)
async def test_04_a_higher_priority_takes_only_pods_that_are_recreated(pod: dict[str, Any], count: int) -> None:
    async with scheduled() as it:
        await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
        await it.node("a", cpu=2)
        for number in range(2):
            await it.pod(f"plain-{number}", **pod)
        await it.rest()
        await it.gang("great", 2, priorityClassName="high")
        await it.rest(60)
        assert len(await it.events("Evicted")) == count


def test_04_a_gang_with_a_pod_that_is_not_recreated_is_not_evicted_whole() -> None:
    board = Board()
    board.node("n", cpu=2)
    board.running("framework", 2, ["n"], recreated=False)
    board.group("great", 2, priority=5)
    assert board.cycle().evictions == ()


def test_04_an_elastic_group_offers_its_surplus_itself() -> None:
    board = Board(sharing="capacity")
    board.node("n", cpu=4)
    board.queue("a", deserved=cores(cpu=2))
    board.running("elastic", 4, ["n"], min_member=2, elastic=True, recreated=False)
    board.group("great", 2, queue="a")
    made = board.cycle()
    assert (evicted(made), [len(shrink.evictions) for shrink in made.shrinks]) == ([], [2])
