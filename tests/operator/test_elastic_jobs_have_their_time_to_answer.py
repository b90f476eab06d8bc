"""Elastic jobs are asked for pods by a note, and have their time to answer, whatever becomes of the requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.fault_injection import Call, Faults, FaultTiming
from shoal.kube.errors import forbidden, not_found
from shoal.kube.kinds import POD, PRIORITY_CLASS
from shoal.scheduler.api.pod_groups import ELASTIC, POD_GROUP, RECLAIM
from shoal.scheduler.effects.shrink_requests import ShrinkRequester
from shoal.scheduler.planner.plan_types import ShrinkRequest


def is_note(call: Call) -> bool:
    return (call.verb, call.kind, call.name) == ("patch", POD_GROUP, "little")


async def asked_for(it: Scheduled, count: int, faults: Faults | None = None) -> list[str]:
    """An elastic job fills the cluster, and somebody wants half of it; the pods the job is asked for."""
    await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
    await it.node("a", cpu=2 * count)
    await it.gang("little", 2 * count, least=count, notes={ELASTIC: "true"})
    await it.rest(5)  # all that is to be said of it is written
    it.lives[-1].faults = faults or Faults()
    await it.gang("great", count, priorityClassName="high")
    return await noted(it)


async def noted(it: Scheduled) -> list[str]:
    note = (await it.group_notes("little")).get(RECLAIM, "")
    return sorted(word.partition("=")[0] for word in note.split(",") if word)


async def evicted(it: Scheduled) -> int:
    return len(await it.events("Evicted"))


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults().lose_response(is_note, when=FaultTiming.BEFORE), id="the-request-got-lost"),
        pytest.param(Faults().lose_response(is_note, when=FaultTiming.AFTER), id="the-answer-got-lost"),
        pytest.param(Faults().fail(is_note, times=3), id="the-server-is-in-trouble"),
    ],
)
async def test_a_note_that_does_not_get_through_is_tried_again(faults: Faults) -> None:
    async with scheduled() as it:
        await asked_for(it, 2, faults)
        await it.rest(5)
        assert await noted(it) == ["little-2", "little-3"]
        told = ("little", "shrunk by 2: little was preempted by great of higher priority in queue default")
        assert await it.events("Shrink") == [told]
        await it.rest(24)
        assert await evicted(it) == 0
        await it.rest(2)
        assert await evicted(it) == 2


async def test_a_note_that_is_refused_for_good_costs_the_time_it_would_have_cost() -> None:
    faults = Faults().fail(is_note, forbidden(POD_GROUP, "little", "no notes here"), times=None)
    async with scheduled() as it:
        assert await asked_for(it, 2, faults) == []
        await it.rest(29)
        assert await evicted(it) == 0
        await it.rest(2)
        assert (await evicted(it), await it.placed()) == (2, ["great-0", "great-1", "little-0", "little-1"])


async def test_where_no_group_is_left_to_be_asked_nobody_waits_for_an_answer() -> None:
    faults = Faults().fail(is_note, not_found(POD_GROUP, "little"), times=None)
    async with scheduled() as it:
        await asked_for(it, 2, faults)
        assert (await evicted(it), await it.placed()) == (2, ["great-0", "great-1", "little-0", "little-1"])


async def test_many_pods_that_go_together_are_taken_off_the_note_together() -> None:
    async with scheduled() as it:
        wanted = await asked_for(it, 12)
        await it.rest(5)
        before = len(it.written)
        for name in wanted:
            await it.cluster.delete(POD, name, NS)
            await it.rest()
        await it.rest(2)
        assert (len(wanted), await noted(it)) == (12, [])
        assert len([call for call in it.written[before:] if is_note(call)]) == 1


async def test_a_pod_that_was_replaced_since_the_plan_is_not_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    submit = ShrinkRequester.submit

    def submit_late(self: ShrinkRequester, shrink: ShrinkRequest) -> None:
        first, *others = shrink.evictions
        submit(self, replace(shrink, evictions=(replace(first, uid="of its predecessor"), *others)))

    monkeypatch.setattr(ShrinkRequester, "submit", submit_late)
    async with scheduled() as it:
        assert await asked_for(it, 2) == ["little-2"]
