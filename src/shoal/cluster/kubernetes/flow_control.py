"""How many requests are on their way at once: as many as the server bears, found by trying.

There is no fixed rate. The limit grows while answers stay quick (fast at first, by one per round later), halves when
the server says it is asked too much, and shrinks a little while answers take many times as long as the quickest did:
then requests only wait in the server's queue instead of in ours. Watches, logs and leases do not wait in line: a
leader that cannot renew its lease because it is busy would be deposed for being busy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    first: float = 32
    least: float = 1
    # Answers may be slow for reasons that asking less does not change. And a server that writes its log to disk takes
    # together what comes together: eight at a time were seen to cost it up to twice as much each as thirty-two.
    least_when_slow: float = 32
    most: float = 256
    easy: float = 4  # times the quickest answer: below it there is room for more
    slow: float = 12  # above it there are too many


class Pace:
    """The limit, and what moves it. Pure: latencies and moments are told."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self.limit = self._bounds.first
        self._is_starting = True
        self._halved_at = float("-inf")
        self._quickest: dict[str, float] = {}
        self._usual: dict[str, float] = {}

    def took(self, sort: str, seconds: float, *, was_full: bool) -> None:
        """A request of this sort was answered; `was_full`: as many as allowed were on their way."""
        strain = self._strain(sort, seconds)
        if strain > self._bounds.slow:
            self._is_starting = False
            self._move_to(max(self.limit - 0.5 / self.limit, min(self.limit, self._bounds.least_when_slow)))
        elif was_full and strain < self._bounds.easy:
            self._move_to(self.limit + (1.0 if self._is_starting else 1.0 / self.limit))

    def was_too_much(self, *, sent_at: float, now: float) -> None:
        """The server turned a request away. A burst that is turned away together counts once."""
        self._is_starting = False
        if sent_at >= self._halved_at:
            self._halved_at = now
            self._move_to(self.limit / 2)

    def _strain(self, sort: str, seconds: float) -> float:
        """How much longer answers take now than the quickest; the quickest is forgotten slowly."""
        quickest = min(self._quickest.get(sort, seconds) * 1.002, seconds)
        usual = self._usual.get(sort, seconds)
        self._quickest[sort], self._usual[sort] = quickest, usual + (seconds - usual) * 0.1
        return self._usual[sort] / max(quickest, 1e-4)

    def _move_to(self, limit: float) -> None:
        self.limit = min(max(limit, self._bounds.least), self._bounds.most)


class Line:
    """Where requests wait for their turn, first come first served."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._on_their_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_full(self) -> bool:
        return self._on_their_way >= int(self._pace.limit)

    async def enter(self) -> None:
        """Wait for a turn; whoever has one gives it back with `leave`."""
        if not self.is_full and not self._waiting:
            self._on_their_way += 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():  # the turn came and cannot be taken
                self.leave()
            raise

    def leave(self) -> None:
        self._on_their_way -= 1
        while self._waiting and not self.is_full:
            first = self._waiting.popleft()
            if not first.done():
                self._on_their_way += 1
                first.set_result(None)
