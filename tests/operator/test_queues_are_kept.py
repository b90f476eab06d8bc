"""Queue objects: what they hold and count, and how Commands open and close them."""

from __future__ import annotations

from kit.scheduled_cluster import NS, scheduled
from shoal.kube.objects import annotations_of
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE


async def test_22_closing_a_queue_lets_nobody_in_and_leaves_what_runs() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("runs", 2)
        await it.order("CloseQueue", "default")
        await it.gang("late", 1)
        await it.pods("", 1)
        assert (await it.queues())["default"] == "Closing"
        assert await it.placed() == ["runs-0", "runs-1"]
        assert await it.pod_told("lone-0") == (
            "False",
            "Queued",
            "queue default is closed; pods are placed again when the queue is opened",
        )
        await it.order("OpenQueue", "default")
        assert (await it.queues())["default"] == "Open"
        assert await it.placed() == ["late-0", "lone-0", "runs-0", "runs-1"]


async def test_22_a_parent_closes_its_children_and_opens_those_it_closed() -> None:
    async with scheduled(sharing="capacity") as it:
        await it.queue("dept")
        for name in ("open", "shut"):
            await it.queue(name, parent="dept")
        await it.order("CloseQueue", "shut")
        await it.order("CloseQueue", "dept")
        closed = await it.queues()
        marks = {name: annotations_of(await it.cluster.get(QUEUE, name)) for name in ("open", "shut")}
        assert {name: closed[name] for name in ("dept", "open", "shut")} == dict.fromkeys(
            ("dept", "open", "shut"), "Closed"
        )
        assert marks == {"open": {"volcano.sh/closed-by-parent": "true"}, "shut": {}}
        await it.order("OpenQueue", "dept")
        opened = await it.queues()
        assert {name: opened[name] for name in ("dept", "open", "shut")} == {
            "dept": "Open", "open": "Open", "shut": "Closed",
        }  # fmt: skip


async def test_a_queue_closes_for_good_when_the_last_group_has_gone() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.queue("team")
        await it.gang("last", 1, queue="team")
        await it.order("CloseQueue", "team")
        assert (await it.queues())["team"] == "Closing"
        await it.cluster.delete(POD_GROUP, "last", NS)
        await it.rest(5)
        assert (await it.queues())["team"] == "Closed"


async def test_an_order_that_may_not_be_obeyed_says_why() -> None:
    async with scheduled() as it:
        await it.order("CloseQueue", "root")
        assert await it.orders() == []
        assert await it.events("OrderRefused") == [
            ("root", "queue root is the parent of all queues and cannot be closed; close the queues below it")
        ]


async def test_an_order_that_nobody_can_obey_does_not_go_without_a_word() -> None:
    async with scheduled() as it:
        await it.order("CloseQueue", "typo")
        await it.order("ShutQueue", "default")
        assert await it.orders() == []
        assert await it.events("OrderRefused") == [
            ("closequeue-typo", "queue typo does not exist; create it or name another"),
            (
                "default",
                "queue default does not support the Command action ShutQueue; supported are OpenQueue and CloseQueue",
            ),
        ]


async def test_a_queue_says_what_it_holds() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.queue("team")
        await it.gang("runs", 2, queue="team")
        await it.gang("waits", 5, queue="team")
        await it.rest(2)
        status = (await it.cluster.get(QUEUE, "team"))["status"]
        assert status == {"state": "Open", "inqueue": 1, "running": 1, "allocated": {"cpu": "2"}}
        await it.ends("runs-0", "runs-1")
        await it.rest(2)
        status = (await it.cluster.get(QUEUE, "team"))["status"]
        assert (status["running"], status["completed"], status["allocated"]) == (0, 1, {})


async def test_26_an_impossible_group_makes_way_for_the_next_after_its_time_in_the_queue() -> None:
    async with scheduled(overcommit=1.0) as it:
        await it.node("a", cpu=2)
        await it.node("b", cpu=2)
        await it.group("impossible", 1, minResources={"cpu": "3"})
        await it.pods("impossible", 1, cpu=3)
        await it.group("next", 2, minResources={"cpu": "2"})
        assert (await it.phase("impossible"), await it.phase("next")) == ("Inqueue", "Pending")
        await it.rest(601)
        assert (await it.phase("impossible"), await it.phase("next")) == ("Pending", "Inqueue")
