"""The work queue: one pass at a time per key, several keys at once in order of arrival, changes coalesced.

While a key waits, further additions of it cost nothing: the busier the controller, the fewer passes a key needs.
Additions during its pass cause one more pass. A pass that fails is retried after a growing, jittered backoff. Where a
pass costs requests to a distant server, a change that is usually followed by more may wait a moment to be coalesced.
An unexpected exception is logged with its trace and retried like any failure: one bad object never stops the others.

Order of arrival also means that a burst of a thousand new keys precedes all changes of the first of them. So that keys
in progress are completed, their number in the queue is kept small: when it is large, they come first, and new keys get
one of every few turns.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.clock import Clock, SystemClock, Timer
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key
from shoal.logs import Logger

log = Logger(__name__)

Reconcile = Callable[[Key], Awaitable[None]]

WORKERS = 16
BACKLOG = 96  # keys in progress that may wait in order of arrival
PRIORITY_TURNS = 4  # of each five, while more than that wait
INITIAL_BACKOFF_SECONDS = 0.05
MAX_BACKOFF_SECONDS = 60.0
MAX_DOUBLINGS = 20  # more would exceed the maximum anyway


def backoff_seconds(failures: int, rng: random.Random) -> float:
    """Seconds to wait after so many failures in a row, from 1; spread, so that many do not come back at once."""
    seconds = INITIAL_BACKOFF_SECONDS * 2.0 ** min(failures - 1, MAX_DOUBLINGS)
    return float(min(seconds, MAX_BACKOFF_SECONDS) * rng.uniform(0.5, 1.0))


class WorkQueue:
    """`add` and `add_after_delay` may be called from anywhere in the loop, as often as one likes."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        clock: Clock | None = None,
        jitter: random.Random | None = None,
        coalesce_seconds: float = 0.0,
        workers: int = WORKERS,
        in_progress: Callable[[Key], bool] | None = None,
    ) -> None:
        """`coalesce_seconds`: how long a key of `add_after_delay` is held to coalesce with more.
        `in_progress`: whether completing the key precedes new keys; by default all are alike."""
        self.name = name
        self._max_workers = workers
        self._coalesce_seconds = coalesce_seconds
        self._reconcile = reconcile
        self._clock = clock or SystemClock()
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._in_progress = in_progress or (lambda _: False)
        self._queue: dict[Key, None] = {}  # waiting for their turn, in order
        self._priority: dict[Key, None] = {}  # those of them that are in progress
        self._priority_turns = 0  # taken out of order since the last in order
        self._running: set[Key] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._dirty: set[Key] = set()
        self._dirty_delayed: set[Key] = set()
        self._delayed: dict[Key, Timer] = {}
        self._failures: dict[Key, int] = {}
        self._retries: dict[Key, Timer] = {}
        self._closed = False

    @property
    def depth(self) -> int:
        """Keys in a pass, in the queue, or waiting to be coalesced."""
        return len(self._running) + len(self._queue) + len(self._delayed)

    def is_pending(self, key: Key) -> bool:
        """Whether a pass of the key is under way or due."""
        return key in self._running or key in self._queue

    def add(self, key: Key) -> None:
        if self._closed or key in self._queue:
            return
        if key in self._running:
            self._dirty.add(key)
            return
        for waiting in (self._retries, self._delayed):
            if timer := waiting.pop(key, None):
                timer.cancel()
        self._queue[key] = None
        if self._in_progress(key):
            self._priority[key] = None
        if len(self._workers) < self._max_workers:
            self._workers.add(asyncio.get_running_loop().create_task(self._run_worker(), name=self.name))

    def add_after_delay(self, key: Key) -> None:
        """Within the coalescing time, together with what else is added for the key until then."""
        if not self._coalesce_seconds:
            self.add(key)
        elif key in self._running:
            self._dirty_delayed.add(key)
        elif key not in self._delayed and key not in self._queue and not self._closed:
            self._delayed[key] = self._clock.call_later(self._coalesce_seconds, lambda: self.add(key))

    async def close(self) -> None:
        """Stop without finishing: every pass may be cut anywhere, and the next start finds the rest."""
        self._closed = True
        for timer in (*self._retries.values(), *self._delayed.values()):
            timer.cancel()
        tasks = list(self._workers)
        for worker in tasks:
            worker.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until no pass is running or due; for tests and orderly ends."""
        while self._workers:
            await asyncio.wait(list(self._workers))

    async def _run_worker(self) -> None:
        try:
            while self._queue:
                is_backlogged = len(self._priority) > BACKLOG and self._priority_turns < PRIORITY_TURNS
                self._priority_turns = self._priority_turns + 1 if is_backlogged else 0
                key = next(iter(self._priority if is_backlogged else self._queue))
                del self._queue[key]
                self._priority.pop(key, None)
                await self._process(key)
        finally:
            worker = asyncio.current_task()
            assert worker is not None
            self._workers.discard(worker)

    async def _process(self, key: Key) -> None:
        self._running.add(key)
        try:
            await self._reconcile(key)
        except (ApiError, OutcomeUnknown, OSError) as failure:
            self._failed(key, failure)
        except Exception as error:
            log.exception("pass broke", loop=self.name, key=str(key))
            self._failed(key, error)
        else:
            self._failures.pop(key, None)
        finally:
            self._running.discard(key)
        delayed = key in self._dirty_delayed
        self._dirty_delayed.discard(key)
        if key in self._dirty:
            self._dirty.discard(key)
            self.add(key)
        elif delayed:
            self.add_after_delay(key)

    def _failed(self, key: Key, failure: Exception) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        delay = backoff_seconds(count, self._jitter)
        if not isinstance(failure, ApiError) or failure.code != 409 or count > 5:
            log.warning(
                "pass failed", loop=self.name, key=str(key), error=str(failure), again_in_seconds=round(delay, 2)
            )
        # The timer has fired when `add` removes and cancels it, which does nothing.
        self._retries[key] = self._clock.call_later(delay, lambda: self.add(key))
