"""Limits concurrent requests, in the order of submission; low-priority requests wait until it is quiet.

Binding a pod starts its work, an Event only reports it: a busy server should process the first. While pods are being
bound one low-priority request is sent now and then, so that none waits for ever. `Timers` makes delayed calls, which
end with their owner: no timer acts for a scheduler that has stopped.
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
MAX_LOW_PRIORITY = 10_000  # that wait to be sent; beyond, the oldest are dropped
LOW_PRIORITY_WORKERS = 2


class Dispatcher:
    def __init__(self, at_once: int, clock: Clock, *, quiet_seconds: float = 0.0) -> None:
        """Low-priority requests are sent `quiet_seconds` after the last request; 0: at once."""
        self._at_once = at_once
        self._clock = clock
        self._quiet_seconds = quiet_seconds
        self._last_submit = clock.now()
        self._urgent: deque[Request] = deque()
        self._low_priority: deque[Request] = deque(maxlen=MAX_LOW_PRIORITY)
        self._workers: set[asyncio.Task[None]] = set()
        self._low_priority_workers: set[asyncio.Task[None]] = set()
        self._timer: Timer | None = None
        self._closed = False

    def submit(self, request: Request) -> None:
        if self._closed:
            return
        self._last_submit = self._clock.now()
        self._urgent.append(request)
        if len(self._workers) < self._at_once:
            self._start_worker(self._urgent, self._workers)

    def submit_low_priority(self, request: Request) -> None:
        if self._closed:
            return
        self._low_priority.append(request)
        if not self._quiet_seconds:
            self._start_low_priority()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._quiet_seconds, self._maybe_start_low_priority)

    def _maybe_start_low_priority(self) -> None:
        self._timer = None
        if not self._low_priority:
            return
        if len(self._low_priority_workers) < LOW_PRIORITY_WORKERS:
            if (self._clock.now() - self._last_submit).total_seconds() >= self._quiet_seconds:
                self._start_low_priority()
                return
            self._start_worker(deque([self._low_priority.popleft()]), self._low_priority_workers)
        self._timer = self._clock.call_later(self._quiet_seconds, self._maybe_start_low_priority)

    def _start_low_priority(self) -> None:
        if len(self._low_priority_workers) < LOW_PRIORITY_WORKERS:
            self._start_worker(self._low_priority, self._low_priority_workers)

    def _start_worker(self, line: deque[Request], workers: set[asyncio.Task[None]]) -> None:
        workers.add(asyncio.get_running_loop().create_task(self._work(line, workers), name="scheduler request"))

    async def _work(self, line: deque[Request], workers: set[asyncio.Task[None]]) -> None:
        try:
            while line:
                try:
                    await line.popleft()()
                except Exception:
                    # One request of many: the others must go out all the same.
                    log.exception("request broke")
        finally:
            # Here and not when the task has ended: a request in between would count on a worker that has stopped.
            workers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def close(self) -> None:
        """Stop without finishing: requests not sent, or submitted from now on, are found again by the next process."""
        self._closed = True
        self._urgent.clear()
        self._low_priority.clear()
        if self._timer is not None:
            self._timer.cancel()
        workers = [*self._workers, *self._low_priority_workers]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class Timers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[int, Timer] = {}
        self._made = 0
        self._closed = False

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        if self._closed:
            return
        self._made += 1
        number = self._made

        def due() -> None:
            del self._waiting[number]
            call()

        self._waiting[number] = self._clock.call_later(seconds, due)

    def close(self) -> None:
        self._closed = True
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
