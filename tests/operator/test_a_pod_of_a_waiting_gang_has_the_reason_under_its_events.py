"""Whoever describes the first waiting pod of a gang reads why it waits; the others cost no Event."""

from __future__ import annotations

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.kube.kinds import EVENT, POD
from shoal.kube.objects import Obj, uid_of
from shoal.scheduler.api.pod_groups import POD_GROUP

HOPELESS = (
    "needs 5 pods at once, 4 would fit, 1 missing: needs 5 cpu, 4 of 4 are free, "
    "the most on one node is 4 on node a; "
    "the request would not fit even without other pods, so request less or add nodes"
)


async def test_a_gang_that_can_never_fit_has_one_event_about_its_first_pod() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("five", 5)
        await it.rest(10)
        assert await it.events("FailedScheduling") == [("five-0", f"waiting: {HOPELESS}")]
        told = [await it.pod_told(f"five-{number}") for number in range(5)]
        assert told == [("False", "Unschedulable", HOPELESS)] * 5
        (event,) = await _about_pods(it)
        pod = await it.cluster.get(POD, "five-0", NS)
        about = event["involvedObject"]
        assert (event["type"], about["kind"], about["uid"]) == ("Warning", "Pod", uid_of(pod))


async def test_pods_beyond_the_minimum_are_told_as_soon_as_the_others_have_their_places() -> None:
    async with scheduled() as it:
        await it.gang("wide", 4, least=2)
        await it.node("a", cpu=2)  # for all of them at once
        assert await it.placed() == ["wide-0", "wide-1"]
        await it.rest(10)
        sentence = "needs 1 cpu, the most free is 0 of 2 on node a"
        assert await it.pod_told("wide-2") == await it.pod_told("wide-3") == ("False", "Unschedulable", sentence)
        assert ("wide-2", f"waiting: {sentence}") in await it.events("FailedScheduling")


async def test_a_pod_that_names_a_group_nobody_made_is_told_so() -> None:
    async with scheduled() as it:
        await it.node("a")
        await it.pods("absent", 3)
        await it.rest(10)
        sentence = "PodGroup absent does not exist yet"
        assert await it.events("FailedScheduling") == [("absent-0", f"waiting: {sentence}")]
        assert [(await it.pod_told(f"absent-{number}"))[2] for number in range(3)] == [sentence] * 3


async def test_pods_of_a_group_that_cannot_be_read_are_told_what_is_wrong_with_it() -> None:
    async with scheduled() as it:
        await it.node("a")
        await it.pods("odd", 2)
        await it.rest(10)
        await it.forget_rules(POD_GROUP)
        await it.group("odd", 2, minResources={"cpu": "-4"})
        await it.rest(10)
        wrong = "PodGroup odd cannot be read: minResources of cpu is below zero; give zero or more"
        absent = "PodGroup odd does not exist yet"
        events = await it.events("FailedScheduling")
        assert events == [("odd-0", f"waiting: {wrong}"), ("odd-0", f"waiting: {absent}")]
        assert [await it.pod_told(name) for name in ("odd-0", "odd-1")] == [("False", "Queued", wrong)] * 2
        await it.cluster.delete(POD_GROUP, "odd", NS)
        await it.rest(10)
        assert [await it.pod_told(name) for name in ("odd-0", "odd-1")] == [("False", "Queued", absent)] * 2
        await it.group("odd", 2)
        assert await it.placed() == ["odd-0", "odd-1"]


async def test_each_new_sentence_is_one_more_event_about_the_same_pod_and_an_old_one_none() -> None:
    async with scheduled() as it:
        await it.gang("two", 2, cpu=4)
        await it.rest(60)
        first = f"waiting: {(await it.pod_told('two-1'))[2]}"
        assert await it.events("FailedScheduling") == [("two-0", first)]
        await it.node("a", cpu=4)
        await it.rest(60)
        second = f"waiting: {(await it.pod_told('two-1'))[2]}"
        assert first != second
        assert await it.events("FailedScheduling") == sorted([("two-0", first), ("two-0", second)])
        assert [event["count"] for event in await _about_pods(it)] == [1, 1]


async def test_pods_that_come_later_bring_no_event() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.group("wide", 3)
        await it.pods("wide", 3, cpu=8)
        await it.rest(10)
        before = await it.events("FailedScheduling")
        await it.pods("wide", 40, first=3, cpu=8)
        await it.rest(10)
        assert [name for name, _ in before] == ["wide-0"]
        assert await it.events("FailedScheduling") == before
        assert f"waiting: {(await it.pod_told('wide-42'))[2]}" == before[0][1]


async def test_a_pod_that_comes_later_with_an_earlier_name_takes_over_from_nobody() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.group("wide", 3)
        await it.pods("wide", 3, first=7, cpu=8)
        await it.rest(10)
        before = await it.events("FailedScheduling")
        await it.pods("wide", 7, cpu=8)
        await it.rest(10)
        assert [name for name, _ in before] == ["wide-7"]
        assert await it.events("FailedScheduling") == before


async def test_when_the_pod_with_the_event_goes_the_next_has_one() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.group("wide", 3)
        await it.pods("wide", 5, cpu=8)
        await it.rest(10)
        await it.cluster.delete(POD, "wide-0", NS)
        await it.rest(10)
        (first, sentence), *more = await it.events("FailedScheduling")
        assert (first, more) == ("wide-0", [("wide-1", sentence)])


async def test_of_a_gang_that_goes_as_a_whole_nobody_speaks_at_last() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.group("wide", 3)
        await it.pods("wide", 5, cpu=8)
        await it.rest(10)
        before = await it.events("FailedScheduling")
        for number in range(5):
            await it.cluster.delete(POD, f"wide-{number}", NS)
        await it.rest(10)
        assert len(before) == 1
        assert await it.events("FailedScheduling") == before


async def test_another_life_of_the_scheduler_says_nothing_again() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("five", 5)
        await it.rest(10)
        await it.kill()
        await it.start()
        await it.rest(60)
        assert await it.events("FailedScheduling") == [("five-0", f"waiting: {HOPELESS}")]


async def test_a_pod_without_a_group_and_a_gang_of_its_name_are_both_told() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=1)
        await it.pod("same", cpu=2)
        await it.gang("same", 1, cpu=2)
        await it.rest(10)
        assert [name for name, _ in await it.events("FailedScheduling")] == ["same", "same-0"]


async def _about_pods(it: Scheduled) -> list[Obj]:
    found = (await it.cluster.list(EVENT)).items
    return [event for event in found if event["reason"] == "FailedScheduling"]
