"""An adaptive limit of the requests in flight.

There is no fixed rate. The limit grows while responses stay quick (fast at first, by one per round later), halves when
the server reports overload, and shrinks a little while responses take many times as long as the quickest did: then
requests only wait in the server's queue instead of in ours. Watches, logs and leases do not wait in line: a busy
leader must still renew its lease in time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConcurrencyBounds:
    initial: float = 32
    least: float = 1
    # Responses may be slow for reasons that fewer requests do not change. And a server that writes its log to disk
    # batches what arrives together: eight at a time were measured to cost up to twice as much each as thirty-two.
    slow_minimum: float = 32
    most: float = 256
    easy: float = 4  # times the quickest response: below it the limit may grow
    slow: float = 12  # above it the limit shrinks


class ConcurrencyLimit:
    """The limit, and what moves it. Pure: latencies and moments are passed in."""

    def __init__(self, bounds: ConcurrencyBounds | None = None) -> None:
        self._bounds = bounds or ConcurrencyBounds()
        self.limit = self._bounds.initial
        self._slow_start = True
        self._halved_at = float("-inf")
        self._best_latency: dict[str, float] = {}
        self._smoothed_latency: dict[str, float] = {}

    def observe(self, latency_class: str, seconds: float, *, was_full: bool) -> None:
        """A request of this class was answered; `was_full`: as many as allowed were in flight."""
        best = min(
            self._best_latency.get(latency_class, seconds) * 1.002, seconds
        )  # rises slowly, so that one lucky response does not count for ever
        smoothed = self._smoothed_latency.get(latency_class, seconds)
        smoothed += (seconds - smoothed) * 0.1
        self._best_latency[latency_class], self._smoothed_latency[latency_class] = best, smoothed
        slowdown = smoothed / max(best, 1e-4)
        if slowdown > self._bounds.slow:
            self._slow_start = False
            self._set_limit(max(self.limit - 0.5 / self.limit, min(self.limit, self._bounds.slow_minimum)))
        elif was_full and slowdown < self._bounds.easy:
            self._set_limit(self.limit + (1.0 if self._slow_start else 1.0 / self.limit))

    def on_overload(self, *, sent_at: float, now: float) -> None:
        """The server turned a request away. A burst that is turned away together counts once."""
        self._slow_start = False
        if sent_at >= self._halved_at:
            self._halved_at = now
            self._set_limit(self.limit / 2)

    def _set_limit(self, limit: float) -> None:
        self.limit = min(max(limit, self._bounds.least), self._bounds.most)


class RequestQueue:
    """Where requests wait for their turn, first come first served."""

    def __init__(self, limiter: ConcurrencyLimit) -> None:
        self._limiter = limiter
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_full(self) -> bool:
        return self._in_flight >= int(self._limiter.limit)

    async def acquire(self) -> None:
        """Wait for a turn; call `release` afterwards."""
        if not self.is_full and not self._waiting:
            self._in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the turn came and cannot be taken
                self.release()
            raise

    def release(self) -> None:
        self._in_flight -= 1
        while self._waiting and not self.is_full:
            next_turn = self._waiting.popleft()
            if not next_turn.done():
                self._in_flight += 1
                next_turn.set_result(None)
