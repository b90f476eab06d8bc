"""The simulated cluster: faults strike where the plan says, and only there."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing

import pytest

from kit.cluster_objects import config_map
from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.fault_injection import (
    Delay,
    Faults,
    FaultTiming,
    ProgramKilled,
    WatchDisruption,
    calls,
    events_with_probability,
    nth_event,
    with_probability,
)
from shoal.cluster.simulated import SimulatedCluster
from shoal.kube import kinds
from shoal.kube.errors import ApiError

CM = kinds.CONFIG_MAP


async def names(cluster):
    return [item["metadata"]["name"] for item in (await cluster.list(CM, "default")).items]


@pytest.mark.parametrize(
    ("when", "there"), [(FaultTiming.BEFORE, []), (FaultTiming.AFTER, ["a"])], ids=["before", "after"]
)
async def test_a_request_fails_before_or_after_it_took_effect(when, there):
    cluster = SimulatedCluster(faults=Faults().fail(calls("create", CM), when=when))
    with pytest.raises(ApiError) as caught:
        await cluster.create(CM, config_map("a"), "default")
    assert (caught.value.code, await names(cluster)) == (503, there)


async def test_a_lost_answer_leaves_the_outcome_unknown():
    cluster = SimulatedCluster(faults=Faults().lose_response(calls("delete")))
    await cluster.create(CM, config_map("a"), "default")
    with pytest.raises(OutcomeUnknown):
        await cluster.delete(CM, "a", "default")
    assert await names(cluster) == []


@pytest.mark.parametrize(
    ("number", "when", "there"),
    [(2, FaultTiming.BEFORE, ["a"]), (2, FaultTiming.AFTER, ["a", "b"]), (1, FaultTiming.BEFORE, [])],
)
async def test_a_program_dies_at_the_chosen_write_and_stays_dead(number, when, there):
    cluster = SimulatedCluster(faults=Faults().kill_at_write(number, when=when))

    async def program():
        for name in ("a", "b", "c"):
            await cluster.create(CM, config_map(name), "default")
            await cluster.get(CM, name, "default")

    with pytest.raises(ProgramKilled):
        await program()
    with pytest.raises(ProgramKilled):
        await cluster.get(CM, "a", "default")
    assert await names(cluster.new_client()) == there


async def told(cluster, count, **options):
    found = []
    async with aclosing(cluster.watch(CM, "default", bookmarks=False, **options)) as stream:
        async for event in stream:
            found.append((event.type.value, event.object["metadata"]["name"]))
            if len(found) == count:
                return found
    return found


@pytest.mark.parametrize(
    ("what", "seen"),
    [
        (WatchDisruption.DROP, ["a", "c", "d"]),
        (WatchDisruption.DUPLICATE, ["a", "b", "b", "c", "d"]),
        (WatchDisruption.SWAP, ["a", "c", "b", "d"]),
        (WatchDisruption.CUT, ["a"]),
    ],
    ids=lambda value: value.value if isinstance(value, WatchDisruption) else "",
)
async def test_a_watch_is_disrupted_at_the_planned_event(what, seen):
    cluster = SimulatedCluster(faults=Faults().disturb(what, nth_event(2), CM))
    start = str(cluster.machinery.revision)
    for name in ("a", "b", "c", "d"):
        await cluster.create(CM, config_map(name), "default")
    events = await told(cluster, len(seen), resource_version=start)
    assert [name for _, name in events] == seen


async def test_a_delayed_event_arrives_after_its_delay():
    cluster = SimulatedCluster(faults=Faults().disturb(Delay(30), nth_event(1), CM))
    start = str(cluster.machinery.revision)
    await cluster.create(CM, config_map("a"), "default")
    waiting = asyncio.ensure_future(told(cluster, 1, resource_version=start))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    cluster.clock.advance(30)
    assert await waiting == [("ADDED", "a")]


async def test_a_stale_list_shows_an_older_state_once():
    cluster = SimulatedCluster()
    await cluster.create(CM, config_map("a"), "default")
    then = cluster.machinery.revision
    await cluster.create(CM, config_map("b"), "default")
    cluster.faults.serve_stale(CM, then)
    assert (await names(cluster), await names(cluster)) == (["a"], ["a", "b"])


async def test_compacted_history_is_410():
    cluster = SimulatedCluster()
    start = str(cluster.machinery.revision)
    await cluster.create(CM, config_map("a"), "default")
    cluster.compact_history()
    with pytest.raises(ApiError) as caught:
        await told(cluster, 1, resource_version=start)
    assert caught.value.code == 410


async def test_a_watch_times_out_on_the_virtual_clock():
    cluster = SimulatedCluster()
    start = str(cluster.machinery.revision)
    waiting = asyncio.ensure_future(told(cluster, 99, resource_version=start, timeout_seconds=999))
    await asyncio.sleep(0)
    cluster.clock.advance(999)
    assert await waiting == []


async def test_calls_are_counted_by_verb_and_kind():
    cluster = SimulatedCluster()
    await cluster.create(CM, config_map("a"), "default")
    await cluster.get(CM, "a", "default")
    await cluster.patch(CM, "a", "default", patch={"data": {"x": "1"}})
    await names(cluster)
    assert (cluster.count(), cluster.count("create"), cluster.count("patch", CM), cluster.count(kind=kinds.POD)) == (
        4, 1, 1, 0,
    )  # fmt: skip


async def run_of(seed):
    """A small program under random faults; what it met and what it left."""
    rng = random.Random(seed)
    faults = Faults()
    faults.fail(with_probability(0.2, rng), times=None)
    faults.lose_response(with_probability(0.2, rng), times=None)
    faults.disturb(WatchDisruption.DROP, events_with_probability(0.3, rng))
    cluster = SimulatedCluster(seed, faults=faults)
    met = []
    for number in range(30):
        try:
            made = await cluster.create(CM, {"metadata": {"generateName": "x-"}}, "default")
            met.append(made["metadata"]["name"])
        except (ApiError, OutcomeUnknown) as error:
            met.append(f"{number} {type(error).__name__}")
    return met, [s.raw for s in cluster.machinery.list(CM).items]


async def test_a_run_can_be_repeated_from_its_seed():
    assert await run_of(7) == await run_of(7)
    assert await run_of(7) != await run_of(8)
