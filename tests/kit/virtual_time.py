"""Letting a virtual clock run: everybody has his turn, then time moves to the next moment somebody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from shoal.cluster.clock import VirtualClock


async def settled() -> None:
    """Until everybody waits for the clock."""
    loop = asyncio.get_running_loop()
    while loop._ready:  # type: ignore[attr-defined]
        await turn()


async def turn() -> None:
    """Everybody else's turn."""
    await asyncio.sleep(0)


async def rested(clock: VirtualClock, seconds: float, settle: Callable[[], Awaitable[None]]) -> None:
    """So much time passes, with everybody settled at each moment on the way."""
    end = clock.now() + timedelta(seconds=seconds)
    await settle()
    while clock.now() < end:
        due = clock.next_due()
        clock.advance((min(due or end, end) - clock.now()).total_seconds())
        await settle()
