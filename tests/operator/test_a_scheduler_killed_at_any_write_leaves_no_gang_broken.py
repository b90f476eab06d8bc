"""The scheduler dies before and after every single write of a small story, and its next life ends the story alike."""

from __future__ import annotations

from collections import Counter

import pytest

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.client import WatchEvent
from shoal.cluster.fault_injection import Faults, FaultTiming, WatchDisruption
from shoal.kube.kinds import POD, PRIORITY_CLASS


async def story(it: Scheduled) -> None:
    """A gang of little importance and its surplus, one that drives the surplus out, one that waits, a lone pod."""
    await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
    await it.node("a", cpu=3)
    await it.node("b", cpu=3)
    await it.gang("little", 5, least=3)
    await it.rest(5)  # whatever was refused is tried again by then; a gang that never started may be driven out
    await it.gang("great", 3, priorityClassName="high")
    await it.gang("patient", 4)
    await it.pods("", 1)
    await it.order("CloseQueue", "default")
    await it.order("OpenQueue", "default")


async def ending(it: Scheduled) -> dict[str, object]:
    """Everything at rest, long after every hold time."""
    await it.rest(120)
    pods = (await it.cluster.list(POD, NS)).items
    crowd = Counter(pod["spec"].get("nodeName") for pod in pods if pod["spec"].get("nodeName"))
    assert all(count <= 3 for count in crowd.values()), f"a node holds more than it has: {crowd}"
    names = ("little", "great", "patient")
    return {
        "placed": await it.placed(),
        "phases": {name: await it.phase(name) for name in names},
        "told": {name: (await it.told(name))[:2] for name in names},
        "queues": await it.queues(),
        "orders": await it.orders(),
    }


async def played(faults: Faults) -> tuple[dict[str, object], int, bool]:
    """How it ended, how many writes there were, and whether somebody died."""
    async with scheduled(faults) as it:
        lives = len(it.lives)
        it.reborn = True
        await story(it)
        return await ending(it), len(it.written), len(it.lives) > lives


@pytest.mark.parametrize("when", list(FaultTiming), ids=str)
async def test_at_every_write(when: FaultTiming) -> None:
    whole, writes, _ = await played(Faults())
    assert whole["placed"] == ["great-0", "great-1", "great-2", "little-0", "little-1", "little-2"]
    for number in range(1, writes + 1):
        ended, _, died = await played(Faults().kill_at_write(number, when=when))
        assert (number, died, ended) == (number, True, whole)


def every_third(number: int, _: WatchEvent) -> bool:
    return number % 3 == 0


DISTURBED = [
    pytest.param(lambda: Faults().fail(lambda call: call.is_write, times=5), id="writes refused"),
    pytest.param(lambda: Faults().lose_response(lambda call: call.is_write, times=5), id="answers lost"),
    pytest.param(lambda: Faults().disturb(WatchDisruption.DUPLICATE, every_third), id="events twice"),
]


@pytest.mark.parametrize("faults", DISTURBED)
async def test_where_requests_and_watches_go_wrong(faults: object) -> None:
    whole, _, _ = await played(Faults())
    ended, _, _ = await played(faults())  # type: ignore[operator]
    assert ended == whole
