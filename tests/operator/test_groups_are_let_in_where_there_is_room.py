"""Groups enter when their queue is open and there is room for them, whoever else writes at the same time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.fault_injection import Delay, Faults, calls
from shoal.kube.kinds import PRIORITY_CLASS
from shoal.kube.objects import Obj, at_path
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE
from shoal.scheduler.scope import SchedulerScope


@asynccontextmanager
async def door(faults: Faults | None = None, namespace: str | None = None) -> AsyncIterator[Scheduled]:
    """One node of four cpus."""
    async with scheduled(faults, SchedulerScope(namespace=namespace)) as it:
        await it.node("node-1")
        yield it


async def enter(it: Scheduled, name: str, cpu: int, **spec: Any) -> None:
    await it.group(name, cpu, minResources={"cpu": str(cpu), "pods": str(cpu)}, **spec)


async def test_an_order_that_was_refused_is_tried_again() -> None:
    async with door(Faults().fail(calls("patch", QUEUE), times=4)) as it:
        await it.order("CloseQueue", "default")
        await it.rest(10)
        assert (await it.queues(), await it.orders()) == ({"root": "Open", "default": "Closed"}, [])


async def test_an_order_for_a_queue_that_is_not_there_goes() -> None:
    async with door() as it:
        await it.order("CloseQueue", "nowhere")
        assert await it.orders() == []


async def test_queues_that_everybody_needs_are_made_until_they_are_there() -> None:
    async with door(Faults().fail(calls("create", QUEUE), times=2)) as it:
        await it.rest(2)
        assert sorted(await it.queues()) == ["default", "root"]


async def test_a_queue_that_everybody_needs_comes_back() -> None:
    async with door() as it:
        await it.cluster.delete(QUEUE, "default")
        await enter(it, "a", 1)
        assert (await it.phase("a"), sorted(await it.queues())) == ("Inqueue", ["default", "root"])


async def test_pods_of_a_job_of_the_same_name_are_not_members() -> None:
    async with door() as it:
        await enter(it, "pet-new", 2)
        await it.pods("pet-old", 2)
        assert await it.phase("pet-new") == "Inqueue"
        await it.pods("pet-new", 2)
        assert await it.phase("pet-new") == "Running"


async def test_room_for_members_to_come_is_kept_from_those_behind() -> None:
    async with door() as it:
        await enter(it, "first", 3)
        await enter(it, "second", 3)
        shortage = "needs 3 cpu; admitted groups may request 4 in this cluster and already request 3"
        assert (await it.phase("second"), await it.told("second")) == (
            "Pending",
            ("Unschedulable", "QueueQuota", shortage),
        )
        await it.pods("first", 3)
        await it.ends("first-0", "first-1", "first-2")
        assert (await it.phase("first"), await it.phase("second")) == ("Completed", "Inqueue")


async def test_a_verdict_that_was_not_heard_of_yet_stays() -> None:
    def is_verdict(_: int, event: Any) -> bool:
        return bool(at_path(event.object, "status", "phase") == "Unknown")

    async with door(Faults().disturb(Delay(60), is_verdict, POD_GROUP)) as it:
        await it.gang("a", 1)
        await it.cluster.patch(POD_GROUP, "a", NS, patch={"status": {"phase": "Unknown"}})
        await it.rest(70)
        assert await it.phase("a") == "Unknown"


async def test_a_queue_that_is_shut_is_no_lack_of_room() -> None:
    async with door() as it:
        await enter(it, "astray", 1, queue="nowhere")
        await it.order("CloseQueue", "default")
        await enter(it, "late", 1)
        assert [await it.told(name) for name in ("astray", "late")] == [
            ("Unschedulable", "QueueMissing", "queue nowhere does not exist; create it or name another"),
            (
                "Unschedulable",
                "QueueClosed",
                "queue default is closed; the PodGroup is admitted when the queue is opened",
            ),
        ]


async def test_a_priority_class_that_comes_after_its_group_counts() -> None:
    async with scheduled() as it:
        await it.gang("usual", 1)
        await it.rest(10)
        await it.gang("urgent", 1, priorityClassName="high")
        await it.rest(10)
        await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 1000})
        await it.node("a", cpu=1)
        assert await it.placed() == ["urgent-0"]


async def test_one_namespace_is_served_alone() -> None:
    async with door(namespace="elsewhere") as it:
        await enter(it, "a", 1)
        status: Obj | None = (await it.cluster.get(POD_GROUP, "a", NS)).get("status")
        assert (status, sorted(await it.queues())) == (None, ["default", "root"])
