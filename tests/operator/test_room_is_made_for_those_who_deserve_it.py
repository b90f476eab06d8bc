"""Preemption, reclaim and shrinking: pods are marked, told why and gone, and the room is for whom it was made."""

from __future__ import annotations

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.client import DeleteOptions
from shoal.cluster.fault_injection import Faults, calls
from shoal.kube.conditions import condition_of
from shoal.kube.kinds import POD, PRIORITY_CLASS
from shoal.kube.objects import uid_of
from shoal.scheduler.api.pod_groups import ELASTIC, RECLAIM, RECLAIM_REASON


async def priority(it: Scheduled, name: str, value: int) -> None:
    await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})


async def full_of_little(it: Scheduled, **more: object) -> None:
    """Two nodes, and a gang of no importance on both."""
    await priority(it, "high", 100)
    for name in ("a", "b"):
        await it.node(name, cpu=2)
    await it.gang("little", 4, **more)  # type: ignore[arg-type]


async def test_13_surplus_goes_before_gangs_and_the_room_is_kept_for_whom_it_was_made() -> None:
    async with scheduled() as it:
        await full_of_little(it, least=2)
        it.pods_leave = False
        await it.gang("great", 2, priorityClassName="high")
        leaving = [pod for pod in (await it.cluster.list(POD, NS)).items if "deletionTimestamp" in pod["metadata"]]
        assert sorted(pod["metadata"]["name"] for pod in leaving) == ["little-2", "little-3"]
        marks = [condition_of(pod, "DisruptionTarget") or {} for pod in leaving]
        assert [(mark["reason"], mark["message"]) for mark in marks] == 2 * [
            ("PreemptionByScheduler", "little was preempted by great of higher priority in queue default")
        ]
        assert await it.told("great") == (
            "Unschedulable",
            "NotEnoughResources",
            "2 pods on the chosen nodes must terminate first",
        )
        await it.pods("greedy", 2)  # nobody takes what is kept
        it.pods_leave = True
        for pod in leaving:
            await it._leave(pod)
        await it.rest()
        assert await it.placed() == ["great-0", "great-1", "little-0", "little-1"]


async def test_14_where_evicting_everybody_would_not_do_nobody_is_evicted() -> None:
    async with scheduled() as it:
        await full_of_little(it)
        await it.gang("giant", 5, priorityClassName="high")
        assert len(await it.placed()) == 4
        assert await it.events("Evicted") == []


async def test_an_elastic_job_is_asked_for_pods_by_name() -> None:
    async with scheduled() as it:
        await full_of_little(it, least=2, notes={ELASTIC: "true"})
        await it.gang("great", 2, priorityClassName="high")
        uids = {number: uid_of(await it.cluster.get(POD, f"little-{number}", NS)) for number in (2, 3)}
        assert await it.group_notes("little") == {
            ELASTIC: "true",
            RECLAIM: f"little-3={uids[3]},little-2={uids[2]}",
            RECLAIM_REASON: "preempted by great of higher priority in queue default",
        }
        assert await it.events("Shrink") == [
            ("little", "shrunk by 2: little was preempted by great of higher priority in queue default")
        ]
        assert len(await it.placed()) == 4  # nobody was killed
        await it.cluster.delete(POD, "little-3", NS)
        await it.rest(1)  # who goes in the same moment is taken off together
        assert (await it.group_notes("little"))[RECLAIM] == f"little-2={uids[2]}"
        await it.cluster.delete(POD, "little-2", NS)
        await it.rest(1)
        assert await it.group_notes("little") == {ELASTIC: "true"}
        assert await it.placed() == ["great-0", "great-1", "little-0", "little-1"]


async def test_a_pod_that_takes_long_to_go_is_given_back_and_not_evicted() -> None:
    async with scheduled() as it:
        await full_of_little(it, least=2, notes={ELASTIC: "true"})
        it.pods_leave = False
        await it.gang("great", 2, priorityClassName="high")
        for number in (2, 3):
            await it.cluster.delete(POD, f"little-{number}", NS, DeleteOptions(grace_seconds=300))
        await it.rest(1)
        assert await it.group_notes("little") == {ELASTIC: "true"}
        await it.rest(60)
        marks = [condition_of(pod, "DisruptionTarget") for pod in (await it.cluster.list(POD, NS)).items]
        assert (marks, await it.events("Evicted")) == ([None] * len(marks), [])


async def test_what_an_elastic_job_does_not_give_back_in_time_is_evicted() -> None:
    async with scheduled() as it:
        await full_of_little(it, least=2, notes={ELASTIC: "true"})
        await it.gang("great", 2, priorityClassName="high")
        await it.rest(29)
        assert await it.events("Evicted") == []
        await it.rest(2)
        assert await it.placed() == ["great-0", "great-1", "little-0", "little-1"]
        assert await it.group_notes("little") == {ELASTIC: "true"}


async def test_a_scheduler_that_stopped_asks_and_evicts_no_more_and_the_next_begins_anew() -> None:
    async with scheduled() as it:
        await full_of_little(it, least=2, notes={ELASTIC: "true"})
        await it.gang("great", 2, priorityClassName="high")
        await it.stop()
        for number in range(2):
            await it.cluster.delete(POD, f"great-{number}", NS)
        await it.rest(31)
        assert (len(await it.placed()), await it.events("Evicted")) == (4, [])
        await it.start()
        assert await it.group_notes("little") == {ELASTIC: "true"}
        await it.rest(31)
        assert (len(await it.placed()), await it.events("Evicted")) == (4, [])


async def test_an_eviction_that_is_refused_is_decided_again() -> None:
    async with scheduled(Faults().fail(calls("delete", POD), times=2)) as it:
        await full_of_little(it, least=2)
        await it.gang("great", 2, priorityClassName="high")
        await it.rest(10)
        assert await it.placed() == ["great-0", "great-1", "little-0", "little-1"]


async def test_11_a_queue_takes_back_what_it_lent() -> None:
    async with scheduled(sharing="capacity") as it:
        await it.node("a", cpu=4)
        for name in ("lender", "borrower"):
            await it.queue(name, deserved={"cpu": "2"})
        await it.gang("borrowed", 4, least=1, queue="borrower")
        assert len(await it.placed()) == 4
        await it.gang("own", 2, queue="lender")
        assert await it.placed() == ["borrowed-0", "borrowed-1", "own-0", "own-1"]
