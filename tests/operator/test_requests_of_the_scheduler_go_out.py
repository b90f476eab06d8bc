"""The crew that carries a plan out: deeds and words each with hands of their own, and nothing left lying."""

from __future__ import annotations

import asyncio

from kit.virtual_time import settled
from shoal.cluster.clock import VirtualClock
from shoal.scheduler.effects.dispatcher import Dispatcher, Timers

PATIENCE_SECONDS = 120


async def test_what_is_asked_as_the_last_worker_rests_goes_out() -> None:
    out: list[str] = []
    both = asyncio.Event()

    async def first() -> None:
        out.append("first")
        asyncio.get_running_loop().call_soon(crew.submit, second)

    async def second() -> None:
        out.append("second")
        both.set()

    crew = Dispatcher(1, VirtualClock())
    crew.submit(first)
    await asyncio.wait_for(both.wait(), PATIENCE_SECONDS)
    await crew.close()
    assert out == ["first", "second"]


async def test_deeds_wait_for_no_words_and_nobody_for_a_broken_request() -> None:
    out: list[str] = []
    told, done = asyncio.Event(), asyncio.Event()

    async def write_event() -> None:
        await done.wait()
        out.append("word")
        told.set()

    async def deed() -> None:
        out.append("deed")
        done.set()

    async def broken() -> None:
        raise KeyError("a mistake of ours")

    crew = Dispatcher(1, VirtualClock())
    crew.submit_low_priority(write_event)
    crew.submit(broken)
    crew.submit(deed)
    await asyncio.wait_for(told.wait(), PATIENCE_SECONDS)
    await crew.close()
    assert out == ["deed", "word"]


async def test_nothing_goes_out_for_one_that_has_stopped() -> None:
    out: list[str] = []
    clock = VirtualClock()
    crew, timers = Dispatcher(1, clock), Timers(clock)

    async def late() -> None:
        out.append("late")

    timers.call_later(1, lambda: out.append("waited"))
    timers.close()
    timers.call_later(1, lambda: out.append("asked late"))
    await crew.close()
    crew.submit(late)
    crew.submit_low_priority(late)
    clock.advance(2)
    await settled()
    assert out == []
