"""A pod that only more or larger nodes would help has a condition of its own; its reason stays the autoscalers'."""

from __future__ import annotations

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.kube.conditions import POD_TOO_LARGE, condition_of, too_large_message
from shoal.kube.kinds import POD


async def size_of(it: Scheduled, name: str) -> tuple[str, str]:
    found = condition_of(await it.cluster.get(POD, name, NS), POD_TOO_LARGE) or {}
    return found.get("status", ""), found.get("reason", "")


async def why(it: Scheduled, name: str) -> str:
    return too_large_message(await it.cluster.get(POD, name, NS))


async def test_a_pod_and_the_pods_of_a_gang_say_that_they_are_too_large() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=3)
        await it.pod("lone", cpu="4")
        await it.gang("four", 4)
        await it.rest()
        assert await why(it, "lone") == "needs 4 cpu, the most free is 3 of 3 on node a"
        assert [await size_of(it, f"four-{number}") for number in range(4)] == [("True", "TooLarge")] * 4
        assert [(await it.pod_told(name))[1] for name in ("lone", "four-0")] == ["Unschedulable"] * 2


async def test_who_waits_for_others_is_not_too_large_or_no_longer() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=3)
        await it.gang("three", 3)
        for name, cpu in (("first", "5"), ("small", "1"), ("large", "4")):
            await it.pod(name, cpu=cpu)
            await it.rest(1)  # of pods of one second the uid decides which goes first
        assert [await size_of(it, name) for name in ("small", "large")] == [("", ""), ("True", "TooLarge")]
        await it.node("b", cpu=5)
        assert "first" in await it.placed()
        await it.rest(5)
        assert [await size_of(it, name) for name in ("first", "large")] == [
            ("True", "TooLarge"), ("Unknown", "WaitsOtherwise"),
        ]  # fmt: skip
        assert [await why(it, name) for name in ("first", "large")] == ["", ""]
