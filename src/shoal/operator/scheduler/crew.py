"""So many requests at once, in the order in which they were asked for; and words beside them, a few at a time.

Placing a pod lets somebody's work begin, an Event only tells of it: a busy server is to be busy with the first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from shoal.logs import Logger

log = Logger(__name__)

Request = Callable[[], Awaitable[None]]
MOST_WORDS = 10_000  # that wait to be said; beyond, the oldest stay unsaid
WORDS_AT_ONCE = 2


class Crew:
    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._urgent: deque[Request] = deque()
        self._words: deque[Request] = deque(maxlen=MOST_WORDS)
        self._workers: set[asyncio.Task[None]] = set()
        self._speakers: set[asyncio.Task[None]] = set()

    def ask(self, request: Request) -> None:
        self._urgent.append(request)
        if len(self._workers) < self._at_once:
            self._go(self._urgent, self._workers)

    def say(self, request: Request) -> None:
        self._words.append(request)
        if len(self._speakers) < WORDS_AT_ONCE:
            self._go(self._words, self._speakers)

    def _go(self, line: deque[Request], crew: set[asyncio.Task[None]]) -> None:
        crew.add(asyncio.get_running_loop().create_task(self._work(line, crew), name="scheduler request"))

    async def _work(self, line: deque[Request], crew: set[asyncio.Task[None]]) -> None:
        try:
            while line:
                await self._one(line.popleft())
        finally:  # not in a callback, which would come later than the next request may
            worker = asyncio.current_task()
            assert worker is not None
            crew.discard(worker)

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
        workers = [*self._workers, *self._speakers]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
