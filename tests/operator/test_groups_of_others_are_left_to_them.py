"""Beside another scheduler, and in one namespace: what is not ours is neither placed, nor let in, nor told about."""

from __future__ import annotations

from typing import Any

import pytest

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.fault_injection import Faults, calls
from shoal.kube.kinds import NAMESPACE, POD, PRIORITY_CLASS, SERVICE_ACCOUNT
from shoal.kube.objects import Obj
from shoal.scheduler.api.pod_groups import COMMAND, GROUP_NAME, POD_GROUP, QUEUE
from shoal.scheduler.scope import SchedulerScope

BESIDE = SchedulerScope(schedulers=frozenset({"shoal"}), all_groups=False)
THEIRS: Obj = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "says Volcano"}


async def their_gang(it: Scheduled, name: str, count: int, status: Obj, **spec: Any) -> Obj:
    await it.group(name, count, **spec)
    await it.cluster.patch(POD_GROUP, name, NS, patch={"status": status})
    await it.pods(name, count, schedulerName="volcano")
    await it.rest(5)
    return await it.cluster.get(POD_GROUP, name, NS)


@pytest.mark.parametrize("status", [{"phase": "Pending"}, {"phase": "Inqueue", "conditions": [THEIRS]}])
async def test_a_group_whose_pods_ask_for_volcano_keeps_what_volcano_says(status: Obj) -> None:
    async with scheduled(scope=BESIDE) as it:
        await it.node("a")
        found = await their_gang(it, "theirs", 1, status)
        assert (found["status"], it.written) == (status, [])


async def test_a_group_that_one_of_our_pods_names_is_ours() -> None:
    async with scheduled(scope=BESIDE) as it:
        await it.node("a")
        await it.group("ours", 2)
        assert await it.phase("ours") == ""
        await it.pods("ours", 2, schedulerName="shoal")
        assert (await it.placed(), await it.phase("ours")) == (["ours-0", "ours-1"], "Running")


async def test_their_running_gang_is_not_mistaken_for_pods_to_spare() -> None:
    async with scheduled(scope=BESIDE) as it:
        await it.node("a", cpu=2)
        await it.group("theirs", 2, notes={"volcano.sh/preemptable": "false"})
        await it.pods("theirs", 2, schedulerName="volcano", nodeName="a")
        high = {"metadata": {"name": "high"}, "value": 1000}
        await it.cluster.create(PRIORITY_CLASS, high)
        await it.group("ours", 1, priorityClassName="high")
        await it.pod("x", notes={GROUP_NAME: "ours"}, schedulerName="shoal", priorityClassName="high", priority=1000)
        await it.rest(5)
        assert await it.placed() == ["theirs-0", "theirs-1"]


async def test_a_gang_that_another_scheduler_places_pod_by_pod_is_never_unknown() -> None:
    async with scheduled(scope=SchedulerScope(schedulers=frozenset({"shoal"}))) as it:
        await it.node("a")
        await it.group("theirs", 2)
        await it.pods("theirs", 1, schedulerName="default-scheduler", nodeName="a")
        assert await it.phase("theirs") == "Inqueue"
        await it.pods("theirs", 1, first=1, schedulerName="default-scheduler")
        await it.rest(5)
        assert await it.phase("theirs") == "Inqueue"
        await it.cluster.delete(POD, "theirs-1", NS)
        await it.pods("theirs", 1, first=2, schedulerName="default-scheduler", nodeName="a")
        await it.rest(5)
        assert await it.phase("theirs") == "Running"


async def test_a_group_of_the_same_name_begins_anew() -> None:
    async with scheduled(Faults().fail(calls("bind", POD, "gang-1"), times=None), BESIDE) as it:
        await it.node("a")
        await their_gang(it, "gang", 2, {"phase": "Pending"})
        for kind, name in ((POD, "gang-0"), (POD, "gang-1"), (POD_GROUP, "gang")):
            await it.cluster.delete(kind, name, NS)
        await it.group("gang", 2)
        await it.pods("gang", 2, schedulerName="shoal")
        assert await it.placed() == ["gang-0"]
        await it.rest(40)
        assert await it.places() == {"gang-1": ""}  # half bound for too long, and it never ran


async def test_queues_and_orders_to_them_are_left_to_volcano() -> None:
    async with scheduled(scope=BESIDE) as it:
        await it.queue("team")
        target = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "name": "team"}
        order = {"metadata": {"name": "close"}, "action": "CloseQueue", "target": target}
        await it.cluster.create(COMMAND, order, NS)
        await it.rest(5)
        assert (await it.orders(), it.written) == (["close"], [])


async def test_pods_and_orders_of_other_namespaces_are_left_alone() -> None:
    async with scheduled(scope=SchedulerScope(namespace=NS)) as it:
        await it.cluster.create(NAMESPACE, {"metadata": {"name": "b"}})
        await it.cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, "b")
        await it.node("a")
        await it.queue("team")
        spec = {"containers": [{"name": "main", "image": "x"}]}
        for name, notes in (("lone", {}), ("member", {GROUP_NAME: "nobody"})):
            await it.cluster.create(POD, {"metadata": {"name": name, "annotations": notes}, "spec": spec}, "b")
        await it.pod("ours")
        await it.order("CloseQueue", "team")
        await it.rest(10)
        theirs = [await it.cluster.get(POD, name, "b") for name in ("lone", "member")]
        assert [(pod["spec"].get("nodeName"), pod["status"].get("conditions")) for pod in theirs] == [(None, None)] * 2
        assert (await it.places(), len(await it.orders())) == ({"ours": "a"}, 1)
