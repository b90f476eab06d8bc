"""So many requests at once, in the order in which they were asked for; words wait until nothing urgent is left.

Placing a pod lets somebody's work begin, an Event only tells of it: where a server is busy, the first goes first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from shoal.logs import Logger

log = Logger(__name__)

Request = Callable[[], Awaitable[None]]
MOST_WORDS = 10_000  # that wait to be said; beyond, the oldest stay unsaid


class Crew:
    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._urgent: deque[Request] = deque()
        self._words: deque[Request] = deque(maxlen=MOST_WORDS)
        self._workers: set[asyncio.Task[None]] = set()

    def ask(self, request: Request) -> None:
        self._urgent.append(request)
        self._go()

    def say(self, request: Request) -> None:
        self._words.append(request)
        self._go()

    def _go(self) -> None:
        if len(self._workers) < self._at_once:
            self._workers.add(asyncio.get_running_loop().create_task(self._work(), name="scheduler request"))

    async def _work(self) -> None:
        try:
            while self._urgent or self._words:
                await self._one(self._urgent.popleft() if self._urgent else self._words.popleft())
        finally:  # not in a callback, which would come later than the next request may
            worker = asyncio.current_task()
            assert worker is not None
            self._workers.discard(worker)

    async def _one(self, request: Request) -> None:
        try:
            await request()
        except Exception:
            # One request of many: the others must go out all the same.
            log.exception("request broke")

    async def close(self) -> None:
        """Stop without finishing: what was not sent is found again by the next life."""
        self._urgent.clear()
        self._words.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
