"""The scheduler as a program: gangs get all their nodes at once or none, also where binds fail and processes die."""

from __future__ import annotations

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.fault_injection import Faults, calls
from shoal.kube.kinds import POD
from shoal.kube.objects import at_path
from shoal.scheduler.api.pod_groups import POD_GROUP


def binds(it: Scheduled) -> list[str]:
    return sorted(call.name for life in it.lives for call in life.calls if call.verb == "bind")


async def test_1_a_gang_waits_for_its_last_place_and_then_starts_whole() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=3)
        await it.gang("four", 4)
        assert await it.placed() == []
        assert await it.told("four") == (
            "Unschedulable",
            "TooLarge",
            "needs 4 pods at once, 3 would fit, 1 missing: needs 4 cpu, 3 of 3 are free, the most on one node is 3 on "
            "node a; the request would not fit even without other pods, so request less or add nodes",
        )
        await it.node("b", cpu=1)
        assert await it.placed() == ["four-0", "four-1", "four-2", "four-3"]
        assert (await it.phase("four"), await it.told("four")) == (
            "Running",
            ("Scheduled", "Scheduled", "4 pods placed, 4 in total"),
        )


async def test_2_the_minimum_starts_first_and_what_is_beyond_it_where_there_is_room() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=3)
        await it.gang("elastic", 4, least=2)
        assert len(await it.placed()) == 3


async def test_3_of_two_gangs_one_runs_whole_and_the_other_has_nothing() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        for name in ("one", "two"):
            await it.group(name, 3)
        for number in range(3):
            await it.pods("one", 1, first=number)
            await it.pods("two", 1, first=number)
        assert await it.placed() == ["one-0", "one-1", "one-2"]
        await it.ends("one-0", "one-1", "one-2")
        assert (await it.phase("one"), await it.phase("two")) == ("Completed", "Running")


async def test_25_pods_that_a_larger_minimum_asks_for_bind_together() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=6)
        await it.gang("grows", 4)
        await it.cluster.patch(POD_GROUP, "grows", NS, patch={"spec": {"minMember": 8}})
        await it.pods("grows", 4, first=4)
        assert len(await it.placed()) == 4
        await it.node("b", cpu=2)
        assert len(await it.placed()) == 8


async def test_24_a_bind_that_fails_is_tried_again() -> None:
    async with scheduled(Faults().fail(calls("bind", POD, "eight-3"), times=3)) as it:
        await it.node("a", cpu=8)
        await it.gang("eight", 8)
        assert (len(await it.placed()), await it.phase("eight")) == (7, "Inqueue")
        await it.rest(10)
        assert (len(await it.placed()), await it.phase("eight")) == (8, "Running")


async def test_24_a_gang_that_stays_half_bound_is_undone() -> None:
    async with scheduled(Faults().fail(calls("bind", POD, "eight-3"), times=None)) as it:
        await it.node("a", cpu=8)
        await it.gang("eight", 8)
        await it.rest(40)
        assert await it.places() == {"eight-3": ""}
        assert (await it.events("Evicted"))[0] == (
            "eight-0",
            "rolled back: 1 of the gang's pods could not be placed in time after the others were bound",
        )


async def test_an_answer_that_was_lost_binds_nobody_twice() -> None:
    async with scheduled(Faults().lose_response(calls("bind", POD), times=2)) as it:
        await it.node("a", cpu=4)
        await it.gang("three", 3)
        await it.rest(10)
        assert (await it.placed(), await it.phase("three")) == (["three-0", "three-1", "three-2"], "Running")


async def test_a_gang_that_was_half_bound_when_the_scheduler_died_is_completed() -> None:
    async with scheduled(Faults().kill(calls("bind", POD, "four-2"))) as it:
        await it.node("a", cpu=4)
        await it.gang("four", 4)
        await it.kill()
        assert 0 < len(await it.placed()) < 4
        await it.rest(300)
        await it.start()
        assert (len(await it.placed()), await it.phase("four")) == (4, "Running")


async def test_a_gang_that_was_half_bound_and_has_no_room_any_more_is_taken_back() -> None:
    async with scheduled(Faults().kill(calls("bind", POD, "four-2"))) as it:
        await it.node("a", cpu=4)
        await it.gang("four", 4)
        await it.kill()
        bound = await it.placed()
        await it.pod("squatter", cpu=2, nodeName="a")
        await it.start()
        assert await it.placed() == sorted([*bound, "squatter"])
        await it.rest(40)
        assert await it.placed() == ["squatter"]


async def test_16_a_gang_that_lost_a_pod_goes_before_a_fresh_one() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("four", 4)
        await it.group("fresh", 1)
        await it.pods("fresh", 1)
        await it.cluster.delete(POD, "four-1", NS)
        await it.pods("four", 1, first=4)
        assert await it.placed() == ["four-0", "four-2", "four-3", "four-4"]


async def test_pods_of_other_schedulers_are_left_to_them() -> None:
    from shoal.scheduler.scope import SchedulerScope

    async with scheduled(scope=SchedulerScope(schedulers=frozenset({"shoal"}))) as it:
        await it.node("a", cpu=4)
        await it.pod("ours", schedulerName="shoal")
        await it.pod("theirs")
        await it.rest()
        assert await it.places() == {"ours": "a", "theirs": ""}


async def test_at_rest_nothing_is_written() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("runs", 2)
        await it.gang("waits", 4)
        await it.rest(20)
        before = len(it.written)
        await it.rest(400)
        assert it.written[before:] == []


async def test_every_pod_is_bound_by_one_request() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=40)
        await it.gang("twenty", 20)
        assert binds(it) == sorted(f"twenty-{number}" for number in range(20))
        assert at_path(await it.cluster.get(POD_GROUP, "twenty", NS), "status", "phase") == "Running"
