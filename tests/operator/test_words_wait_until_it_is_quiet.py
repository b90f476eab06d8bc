"""Requests go out at once, so many side by side; words after them, one now and then while it is busy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kit.scheduled_cluster import NS, scheduled
from kit.virtual_time import rested, settled
from shoal.cluster.clock import VirtualClock
from shoal.kube.kinds import EVENT, POD
from shoal.kube.times import rfc3339
from shoal.scheduler.effects.dispatcher import Dispatcher


def noting(said: list[str]) -> Callable[[str], Callable[[], Awaitable[None]]]:
    def note(word: str) -> Callable[[], Awaitable[None]]:
        async def request() -> None:
            said.append(word)

        return request

    return note


async def test_words_are_said_when_nothing_was_asked_for_a_while() -> None:
    clock, said = VirtualClock(), list[str]()
    crew, note = Dispatcher(4, clock, quiet_seconds=1.0), noting(said)
    for number in range(3):
        crew.submit(note(f"bind {number}"))
        crew.submit_low_priority(note(f"word {number}"))
        await rested(clock, 0.6, settled)
    assert said == ["bind 0", "bind 1", "word 0", "bind 2"]
    await rested(clock, 2, settled)
    assert said == ["bind 0", "bind 1", "word 0", "bind 2", "word 1", "word 2"]
    await crew.close()


async def test_a_request_that_breaks_stops_nobody() -> None:
    clock, said = VirtualClock(), list[str]()
    crew, note = Dispatcher(1, clock), noting(said)

    async def broken() -> None:
        raise RuntimeError("a mistake")

    crew.submit(broken)
    crew.submit(note("next"))
    crew.submit_low_priority(note("word"))
    await settled()
    assert sorted(said) == ["next", "word"]
    await crew.close()


async def test_words_that_found_nobody_to_say_them_are_said_later() -> None:
    clock, said = VirtualClock(), list[str]()
    crew, note, slow = Dispatcher(4, clock, quiet_seconds=1.0), noting(said), asyncio.Event()

    async def waits() -> None:
        await slow.wait()

    for word in (waits, waits, note("last")):
        crew.submit_low_priority(word)
    for _ in range(3):
        crew.submit(note("bind"))
        await rested(clock, 0.9, settled)
    await rested(clock, 5, settled)
    assert said == ["bind", "bind", "bind"]
    slow.set()
    await rested(clock, 5, settled)
    assert said == ["bind", "bind", "bind", "last"]
    await crew.close()


async def test_what_is_told_late_says_when_it_happened() -> None:
    async with scheduled(quiet_seconds=30) as it:
        await it.node("a", cpu=4)
        await it.gang("two", 2)
        await it.pods("", 1)
        happened = rfc3339(it.clock.now())
        assert await it.events("Scheduled") == []
        await it.rest(120)
        found = [event for event in (await it.cluster.list(EVENT)).items if event["reason"] == "Scheduled"]
        assert sorted(event["involvedObject"]["name"] for event in found) == ["lone-0", "two"]
        assert {event["firstTimestamp"] for event in found} == {happened}


async def test_what_is_true_no_longer_is_not_told_late() -> None:
    async with scheduled(quiet_seconds=30) as it:
        await it.node("a", cpu=4)
        await it.gang("two", 2)
        assert await it.phase("two") == "Running"
        for name in ("two-0", "two-1"):
            await it.cluster.delete(POD, name, NS)
        await it.pods("two", 2, cpu=8)
        await it.rest(120)
        assert await it.events("Scheduled") == []
