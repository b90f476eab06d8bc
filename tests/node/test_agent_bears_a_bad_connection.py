"""The same day with requests that fail, answers that get lost and watches that break off or repeat themselves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.fake_sandbox import FakeSandboxes
from kit.node_workload import PODS, begin, check, the_day
from kit.pods import config, is_gone, phase_is, running_agent, wait_for_pod
from shoal.cluster.client import WatchEvent
from shoal.cluster.fault_injection import Faults, WatchDisruption, events_with_probability, with_probability
from shoal.cluster.simulated import SimulatedCluster
from shoal.kube.errors import expired
from shoal.kube.kinds import POD, Kind

RATE = 0.05


def trouble(rng: random.Random) -> Faults:
    faults = Faults()
    faults.fail(with_probability(RATE, rng), times=None)
    faults.lose_response(with_probability(RATE, rng, lambda call: call.is_write), times=None)
    faults.disturb(WatchDisruption.CUT, events_with_probability(RATE, rng))
    faults.disturb(WatchDisruption.DUPLICATE, events_with_probability(RATE, rng))
    return faults


@pytest.mark.parametrize("seed", range(4))
async def test_the_day_ends_as_ever(seed: int, tmp_path: Path) -> None:
    store = SimulatedCluster(seed)
    sandboxes = FakeSandboxes()
    names = await begin(store.embedded)
    connection = store.new_client(trouble(random.Random(seed)))
    async with running_agent(connection, sandboxes, config(tmp_path)):
        await the_day(store.embedded)
    await check(store.embedded, sandboxes, tmp_path, names, f"seed {seed}")


class OldList(SimulatedCluster):
    """Its first list of pods is from before there were any; then the version turns out to be too old."""

    def watch(self, kind: Kind, *args: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        events = super().watch(kind, *args, **options)
        return self._old(events) if kind == POD and not self.listed.is_set() else events

    listed: asyncio.Event

    async def _old(self, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        async for event in events:
            if event.ends_initial_list:
                yield event
                break
        await self.listed.wait()
        raise expired("too old resource version")


async def test_a_list_that_is_old_ends_no_pod(tmp_path: Path) -> None:
    store = OldList(1)
    store.listed = asyncio.Event()
    store.listed.set()
    sandboxes = FakeSandboxes()
    names = await begin(store.embedded)
    async with running_agent(store, sandboxes, config(tmp_path)):
        await the_day(store.embedded)
    store.listed.clear()
    async with running_agent(store, sandboxes, config(tmp_path)):
        store.listed.set()
        await store.embedded.delete(POD, "succeeds", "default")
        await wait_for_pod(store.embedded, "succeeds", is_gone)  # the agent has caught up
        await store.embedded.create(POD, PODS["succeeds"], "default")
        again = await wait_for_pod(store.embedded, "succeeds", phase_is("Succeeded"))
        assert again is not None
    assert {names.get(uid) for uid in sandboxes.sandboxes} == {"stays"}
    assert [process for uid, process in sandboxes.started if names.get(uid) == "stays"] == ["main.0", "other.0"]
