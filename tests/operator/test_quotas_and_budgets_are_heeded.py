"""What namespaces may ask for and how many pods may be sent away: read from the cluster, and heeded as it changes."""

from __future__ import annotations

from typing import Any

import pytest

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.client import WatchEventType
from shoal.cluster.fault_injection import Delay, Faults, FaultTiming, calls
from shoal.kube.conditions import condition_of
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD, POD_DISRUPTION_BUDGET, PRIORITY_CLASS, RESOURCE_QUOTA

FREED = ["great-0", "little-0", "little-1", "little-2"]


async def quota(it: Scheduled, **hard: str) -> None:
    await it.cluster.create(RESOURCE_QUOTA, {"metadata": {"name": "small"}, "spec": {"hard": hard}}, NS)
    await it.rest()


async def test_a_group_is_let_in_as_soon_as_its_namespaces_quota_has_room() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=8)
        await quota(it, cpu="3")
        await it.gang("first", 2, minResources={"cpu": "2"})
        await it.group("second", 2, minResources={"cpu": "2"})
        assert await it.told("second") == (
            "Unschedulable",
            "NamespaceQuota",
            "needs 2 cpu, and quota small of namespace default allows 3, of which 2 are used",
        )
        await it.cluster.patch(RESOURCE_QUOTA, "small", NS, patch={"spec": {"hard": {"cpu": "4"}}})
        await it.rest()
        assert await it.phase("second") == "Inqueue"


async def test_pods_that_wait_for_quota_are_not_called_unschedulable() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=8)
        await quota(it, **{"requests.cpu": "2"})
        await it.group("large", 2, minResources={"cpu": "4"})
        await it.pods("large", 2)
        await it.rest(6)  # another sentence for the same reason waits for company
        sentence = "needs 2 cpu, and quota small of namespace default allows 2, of which 2 are used"
        assert [await it.pod_told(f"large-{n}") for n in range(2)] == 2 * [("False", "Queued", sentence)]
        await it.cluster.delete(RESOURCE_QUOTA, "small", NS)
        await it.rest()
        assert await it.placed() == ["large-0", "large-1"]


async def budgeted(it: Scheduled, *, allowed: int, **more: Any) -> None:
    """A gang of low priority on every core, with a budget for its pods, and one of high priority that comes."""
    await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
    await it.node("a", cpu=4)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "little"}}}
    await it.cluster.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "few"}, "spec": spec}, NS)
    await allows(it, allowed)
    await it.gang("little", 4, least=1)
    for number in range(4):
        labels = {"metadata": {"labels": {"app": "little"}}}
        await it.cluster.patch(POD, f"little-{number}", NS, patch=labels)
    await it.rest()
    await it.gang("great", 1, priorityClassName="high", **more)


async def allows(it: Scheduled, allowed: int) -> None:
    status = {"status": {"disruptionsAllowed": allowed, "observedGeneration": 1}}
    await it.cluster.patch(POD_DISRUPTION_BUDGET, "few", NS, patch=status, subresource="status")
    await it.rest()


def evictions(it: Scheduled) -> list[str]:
    return [call.name for call in it.written if call.verb == "evict"]


async def test_pods_are_evicted_when_their_budget_allows_it_and_say_why() -> None:
    async with scheduled() as it:
        await budgeted(it, allowed=0)
        assert (await it.told("great"))[1] == "NotEnoughResources"
        assert (evictions(it), await it.events("Evicted")) == ([], [])
        it.pods_leave = False
        await allows(it, 1)
        leaving = condition_of(await it.cluster.get(POD, "little-3", NS), "DisruptionTarget") or {}
        words = "little was preempted by great of higher priority in queue default"
        assert (leaving["reason"], leaving["message"]) == ("PreemptionByScheduler", words)
        assert (evictions(it), await it.events("Evicted")) == (["little-3"], [("little-3", f"evicted: {words}")])
        it.pods_leave = True
        await it._leave(await it.cluster.get(POD, "little-3", NS))
        await it.rest()
        assert await it.placed() == FREED


async def test_a_pod_whose_budget_keeps_it_is_left_alone_until_the_budget_allows_more() -> None:
    """The news that nothing is left comes too late: the server refuses, once, and nobody asks again by the clock."""

    def late(_: int, event: Any) -> bool:
        return bool(event.type is WatchEventType.MODIFIED and event.object["status"]["disruptionsAllowed"] == 0)

    faults = Faults().disturb(Delay(1000.0), late, POD_DISRUPTION_BUDGET)
    async with scheduled(faults) as it:
        await budgeted(it, allowed=1, queue="absent")
        await allows(it, 0)
        await it.queue("absent")
        await it.rest(50)
        assert (evictions(it), await it.events("Evicted")) == (["little-3"], [])
        assert condition_of(await it.cluster.get(POD, "little-3", NS), "DisruptionTarget") is None
        await allows(it, 2)
        await it.rest(1000)
        assert (evictions(it), await it.placed()) == (["little-3", "little-3"], FREED)


TROUBLE = {
    "nobody answers": (Faults.fail, None, ["little-3", "little-3"]),
    "the request is lost": (Faults.lose_response, None, ["little-3", "little-3"]),
    "the server is in trouble": (Faults.fail, ApiError(500, "InternalError", "no leader"), ["little-3", "little-2"]),
}


@pytest.mark.parametrize("trouble", TROUBLE)
async def test_an_eviction_that_came_to_nothing_gives_its_share_of_the_budget_back(trouble: str) -> None:
    """Nobody went, so the budget's figure stays as it is, and no news of it comes."""
    disturb, error, asked = TROUBLE[trouble]
    which = calls("evict", POD)
    faults = disturb(Faults(), which, when=FaultTiming.BEFORE, **({"error": error} if error else {}))
    async with scheduled(faults) as it:
        await budgeted(it, allowed=1)
        await it.rest(1)
        assert (evictions(it), "great-0" in await it.placed()) == (asked, True)


async def test_a_budget_that_refused_without_a_new_figure_is_asked_again_after_a_minute() -> None:
    why = [{"reason": "DisruptionBudget", "message": "still being processed"}]
    refusal = ApiError(429, "TooManyRequests", "Cannot evict pod", {"causes": why})
    async with scheduled(Faults().fail(calls("evict", POD), refusal)) as it:
        await budgeted(it, allowed=1)
        await it.rest(50)
        assert evictions(it) == ["little-3"]
        await it.rest(20)
        assert (evictions(it), await it.placed()) == (["little-3", "little-3"], FREED)
