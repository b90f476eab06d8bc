"""So many requests at once, in the order in which they were asked for; words wait until it is quiet.

Placing a pod lets somebody's work begin, an Event only tells of it: a busy server is to be busy with the first. While
pods are being placed one word goes out now and then, so that none waits for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

from shoal.cluster.clock import Clock, Timer
from shoal.logs import Logger

log = Logger(__name__)

Request = Callable[[], Awaitable[None]]
MOST_WORDS = 10_000  # that wait to be said; beyond, the oldest stay unsaid
WORDS_AT_ONCE = 2


class Crew:
    def __init__(self, at_once: int, clock: Clock, *, quiet_seconds: float = 0.0) -> None:
        """`quiet_seconds` after the last request words are said; 0: at once."""
        self._at_once = at_once
        self._clock = clock
        self._quiet_seconds = quiet_seconds
        self._asked_at = clock.now()
        self._urgent: deque[Request] = deque()
        self._words: deque[Request] = deque(maxlen=MOST_WORDS)
        self._workers: set[asyncio.Task[None]] = set()
        self._speakers: set[asyncio.Task[None]] = set()
        self._timer: Timer | None = None
        self._closed = False

    def ask(self, request: Request) -> None:
        if self._closed:
            return
        self._asked_at = self._clock.now()
        self._urgent.append(request)
        if len(self._workers) < self._at_once:
            self._go(self._urgent, self._workers)

    def say(self, request: Request) -> None:
        if self._closed:
            return
        self._words.append(request)
        if not self._quiet_seconds:
            self._speak()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._quiet_seconds, self._try_to_speak)

    def _try_to_speak(self) -> None:
        self._timer = None
        if not self._words:
            return
        if len(self._speakers) < WORDS_AT_ONCE:
            if (self._clock.now() - self._asked_at).total_seconds() >= self._quiet_seconds:
                self._speak()
                return
            self._go(deque([self._words.popleft()]), self._speakers)
        self._timer = self._clock.call_later(self._quiet_seconds, self._try_to_speak)

    def _speak(self) -> None:
        if len(self._speakers) < WORDS_AT_ONCE:
            self._go(self._words, self._speakers)

    def _go(self, line: deque[Request], crew: set[asyncio.Task[None]]) -> None:
        crew.add(asyncio.get_running_loop().create_task(self._work(line, crew), name="scheduler request"))

    async def _work(self, line: deque[Request], crew: set[asyncio.Task[None]]) -> None:
        try:
            while line:
                await self._send(line.popleft())
        finally:
            # Here and not when the task has ended: who is asked in between would count on a worker that has gone home.
            crew.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _send(self, request: Request) -> None:
        try:
            await request()
        except Exception:
            # One request of many: the others must go out all the same.
            log.exception("request broke")

    async def close(self) -> None:
        """Stop without finishing: what was not sent, or is asked from now on, is found again by the next life."""
        self._closed = True
        self._urgent.clear()
        self._words.clear()
        if self._timer is not None:
            self._timer.cancel()
        workers = [*self._workers, *self._speakers]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
