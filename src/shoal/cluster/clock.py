"""Time as the cluster sees it: a moment and timers, real or virtual.

Only watch time-outs and bookmarks need timers; everything else is driven by events.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> datetime:
        """An aware moment in UTC."""
        ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer: ...


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait for a moment of this clock."""
    await wait_event(clock, asyncio.Event(), seconds)


async def wait_event(clock: Clock, event: asyncio.Event, seconds: float) -> None:
    """Wait for `event`, but no longer than that; it is set in either case."""
    timer = clock.call_later(seconds, event.set)
    try:
        await event.wait()
    finally:
        timer.cancel()


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call)


class VirtualTimer:
    """A call that waits for its moment on a VirtualClock."""

    def __init__(self, due: datetime, order: int, call: Callable[[], None]) -> None:
        self.due = due
        self._order = order
        self._call: Callable[[], None] | None = call

    def __lt__(self, other: VirtualTimer) -> bool:
        return (self.due, self._order) < (other.due, other._order)

    @property
    def is_cancelled(self) -> bool:
        return self._call is None

    def cancel(self) -> None:
        self._call = None

    def fire(self) -> None:
        if self._call is not None:
            self._call()


class VirtualClock:
    """Advances only when a test moves it; timers fire in order, each at its own moment."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._timers: list[VirtualTimer] = []
        self._made = 0

    def now(self) -> datetime:
        return self._now

    def call_later(self, seconds: float, call: Callable[[], None]) -> VirtualTimer:
        self._made += 1
        timer = VirtualTimer(self._now + timedelta(seconds=seconds), self._made, call)
        heapq.heappush(self._timers, timer)
        return timer

    def next_due(self) -> datetime | None:
        """When the next timer that is not cancelled falls due."""
        while self._timers and self._timers[0].is_cancelled:
            heapq.heappop(self._timers)
        return self._timers[0].due if self._timers else None

    def advance(self, seconds: float) -> None:
        """Let time pass; what falls due on the way happens at its moment."""
        end = self._now + timedelta(seconds=seconds)
        while self._timers and self._timers[0].due <= end:
            timer = heapq.heappop(self._timers)
            self._now = timer.due
            timer.fire()
        self._now = end
