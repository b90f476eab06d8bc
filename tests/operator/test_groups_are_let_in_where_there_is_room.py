"""Groups enter when their queue is open and there is room for them, whoever else writes at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kit.founded import founded
from kit.virtual_time import rested, settled
from shoal.cluster.faults import Delay, Faults, calls
from shoal.cluster.port import PatchType
from shoal.cluster.reflecting import Reflector
from shoal.cluster.simulated import SimulatedCluster
from shoal.dialects.gangs import COMMAND, GROUP_NAME, POD_GROUP, QUEUE
from shoal.dialects.volcano import DIALECT
from shoal.kube.kinds import NODE, POD, SERVICE_ACCOUNT
from shoal.kube.objects import Obj, at_path, name_of
from shoal.operator.gangs import GangsLoop
from shoal.operator.trimming import slim_pod


class Door:
    """A cluster with one node of four cpus, and the loop that lets groups in."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster.embedded
        self._clock = cluster.clock

    async def group(self, name: str, cpu: int, **spec: Any) -> None:
        wanted = {"minMember": cpu, "minResources": {"cpu": str(cpu), "pods": str(cpu)}, **spec}
        metadata = {"name": name, "labels": {"volcano.sh/job-name": "pet"}}
        await self.cluster.create(POD_GROUP, {"metadata": metadata, "spec": wanted}, "default")
        await self.rest()

    async def pod(self, name: str, group: str, *, node: str = "node-1", phase: str = "Running") -> None:
        """A member with one cpu, at a place."""
        labels, notes = {"volcano.sh/job-name": "pet"}, {GROUP_NAME: group}
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        spec = {"containers": [container], "nodeName": node}
        metadata = {"name": name, "labels": labels, "annotations": notes}
        await self.cluster.create(POD, {"metadata": metadata, "spec": spec}, "default")
        await self.becomes(name, phase)

    async def becomes(self, name: str, phase: str) -> None:
        status = {"status": {"phase": phase}}
        await self.cluster.patch(
            POD, name, "default", patch=status, patch_type=PatchType.STRATEGIC, subresource="status"
        )
        await self.rest()

    async def order(self, action: str, queue: str) -> None:
        target = {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": queue}
        made = {"metadata": {"name": action.lower()}, "action": action, "target": target}
        await self.cluster.create(COMMAND, made, "default")

    async def phase(self, group: str) -> str:
        return str(at_path(await self.cluster.get(POD_GROUP, group, "default"), "status", "phase"))

    async def complaint(self, group: str) -> tuple[str, str]:
        (told,) = at_path(await self.cluster.get(POD_GROUP, group, "default"), "status", "conditions")
        return told["reason"], told["message"]

    async def queues(self) -> dict[str, str]:
        found = (await self.cluster.list(QUEUE)).items
        return {name_of(queue): at_path(queue, "status", "state", default="") for queue in found}

    async def orders(self) -> list[str]:
        return [name_of(order) for order in (await self.cluster.list(COMMAND)).items]

    async def rest(self, seconds: float = 0) -> None:
        await rested(self._clock, seconds, settled)


@asynccontextmanager
async def door(faults: Faults | None = None, namespace: str | None = None) -> AsyncIterator[Door]:
    cluster = founded(0, DIALECT)
    program, clock = cluster.another(faults), cluster.clock
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, "default")
    await cluster.create(NODE, {"metadata": {"name": "node-1"}, "status": {"allocatable": room, "conditions": [ready]}})
    nodes = Reflector(program, NODE, clock=clock)
    pods = Reflector(program, POD, trim=lambda event: slim_pod(event.object), clock=clock)
    gangs = GangsLoop(program, nodes, pods, namespace=namespace, clock=clock)
    tasks = [asyncio.create_task(part.run()) for part in (nodes, pods, gangs)]
    made = Door(cluster)
    try:
        await made.rest()
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_order_that_was_refused_is_tried_again() -> None:
    refused = Faults().fail(calls("patch", QUEUE))
    async with door(refused) as it:
        await it.order("CloseQueue", "default")
        await it.rest()
        assert (await it.queues(), await it.orders()) == ({"root": "", "default": ""}, ["closequeue"])
        await it.rest(2)
        assert (await it.queues(), await it.orders()) == ({"root": "", "default": "Closed"}, [])


async def test_an_order_for_a_queue_that_is_not_there_goes() -> None:
    async with door() as it:
        await it.order("CloseQueue", "nowhere")
        await it.rest()
        assert await it.orders() == []


async def test_queues_that_everybody_needs_are_made_until_they_are_there() -> None:
    async with door(Faults().fail(calls("create", QUEUE), times=2)) as it:
        await it.rest(2)
        assert sorted(await it.queues()) == ["default", "root"]


async def test_a_queue_that_everybody_needs_comes_back() -> None:
    async with door() as it:
        await it.cluster.delete(QUEUE, "default")
        await it.group("a", 1)
        assert (await it.phase("a"), sorted(await it.queues())) == ("Inqueue", ["default", "root"])


async def test_pods_of_a_job_of_the_same_name_are_not_members() -> None:
    async with door() as it:
        await it.group("pet-new", 2, minTaskMember={})
        for name in ("old-0", "old-1"):
            await it.pod(name, "pet-old")
        assert await it.phase("pet-new") == "Inqueue"
        for name in ("new-0", "new-1"):
            await it.pod(name, "pet-new")
        assert await it.phase("pet-new") == "Running"


async def test_room_for_members_to_come_is_kept_when_one_has_finished() -> None:
    async with door() as it:
        await it.group("first", 3)
        await it.pod("first-0", "first", phase="Succeeded")
        await it.group("second", 3)
        shortage = "NotEnoughResources", "needs 3 of cpu at once, 2 is free"
        assert (await it.phase("second"), await it.complaint("second")) == ("Pending", shortage)
        await it.pod("first-1", "first")
        await it.becomes("first-1", "Succeeded")
        assert await it.phase("second") == "Inqueue"


async def test_a_verdict_that_was_not_heard_of_yet_stays() -> None:
    def is_verdict(_: int, event: Any) -> bool:
        return bool(at_path(event.object, "status", "phase") == "Unknown")

    async with door(Faults().disturb(Delay(60), is_verdict, POD_GROUP)) as it:
        await it.group("a", 1)
        await it.cluster.patch(POD_GROUP, "a", "default", patch={"status": {"phase": "Unknown"}})
        await it.pod("a-0", "a")
        assert await it.phase("a") == "Unknown"


async def test_a_queue_that_is_shut_is_no_lack_of_room() -> None:
    async with door() as it:
        await it.group("astray", 1, queue="nowhere")
        await it.order("CloseQueue", "default")
        await it.rest()
        await it.group("late", 1)
        assert [await it.complaint(name) for name in ("astray", "late")] == [
            ("QueueNotFound", "there is no queue nowhere"),
            ("QueueNotOpen", "queue default is Closed"),
        ]


async def test_one_namespace_is_served_alone() -> None:
    async with door(namespace="elsewhere") as it:
        await it.group("a", 1)
        status: Obj | None = (await it.cluster.get(POD_GROUP, "a", "default")).get("status")
        assert (status, sorted(await it.queues())) == (None, ["default", "root"])
