"""Work by key: one at a time per key, many keys at once, what arrives meanwhile folded into one more pass.

A pass that fails is tried again after a growing, jittered pause. Where a pass costs requests to a server far away,
what usually comes in company may wait a moment for it; nothing else waits. A mistake in a pass is logged with its trace
and retried like any failure: one bad object never stops the loop for the others.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from shoal.cluster.clock import Clock, SystemClock, Timer
from shoal.cluster.port import OutcomeUnknown
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key
from shoal.logs import Logger

log = Logger(__name__)

Work = Callable[[Key], Awaitable[None]]

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 60.0
MOST_DOUBLINGS = 20  # what is longer is cut anyway, and numbers have an end


def growing_pause(failures: int, chance: random.Random) -> float:
    """Seconds to wait after so many failures in a row, from 1; spread, so that many do not come back at once."""
    seconds = FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, MOST_DOUBLINGS)
    return float(min(seconds, LONGEST_PAUSE_SECONDS) * chance.uniform(0.5, 1.0))


class KeyedWork:
    """`add` and `add_soon` may be called from anywhere in the loop, as often as one likes."""

    def __init__(
        self,
        name: str,
        work: Work,
        *,
        clock: Clock | None = None,
        jitter: random.Random | None = None,
        gathering_seconds: float = 0.0,
    ) -> None:
        """`gathering_seconds`: how long what is added "soon" waits for company."""
        self.name = name
        self._gathering_seconds = gathering_seconds
        self._work = work
        self._clock = clock or SystemClock()
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._again: set[Key] = set()
        self._soon_again: set[Key] = set()
        self._gathering: dict[Key, Timer] = {}
        self._failures: dict[Key, int] = {}
        self._retries: dict[Key, Timer] = {}
        self._closed = False

    @property
    def depth(self) -> int:
        """Keys that are being worked on, or will be as soon as that is done, or gather company."""
        return len(self._running) + len(self._gathering)

    def add(self, key: Key) -> None:
        if self._closed:
            return
        if key in self._running:
            self._again.add(key)
            return
        for waiting in (self._retries, self._gathering):
            if timer := waiting.pop(key, None):
                timer.cancel()
        self._running[key] = asyncio.get_running_loop().create_task(self._pass(key), name=f"{self.name} {key}")

    def add_soon(self, key: Key) -> None:
        """Within the time of gathering, together with what else comes for the key until then."""
        if not self._gathering_seconds:
            self.add(key)
        elif key in self._running:
            self._soon_again.add(key)
        elif key not in self._gathering and not self._closed:
            self._gathering[key] = self._clock.call_later(self._gathering_seconds, lambda: self.add(key))

    async def close(self) -> None:
        """Stop without finishing: every pass may be cut anywhere, and the next start finds the rest."""
        self._closed = True
        for timer in (*self._retries.values(), *self._gathering.values()):
            timer.cancel()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until no pass is running; for tests and orderly ends."""
        while self._running:
            await asyncio.wait(self._running.values())

    async def _pass(self, key: Key) -> None:
        try:
            await self._work(key)
        except (ApiError, OutcomeUnknown, OSError) as failure:
            self._failed(key, failure)
        except Exception as mistake:
            log.exception("pass broke", loop=self.name, key=str(key))
            self._failed(key, mistake)
        else:
            self._failures.pop(key, None)
        finally:
            del self._running[key]
        soon = key in self._soon_again
        self._soon_again.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif soon:
            self.add_soon(key)

    def _failed(self, key: Key, failure: Exception) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = growing_pause(count, self._jitter)
        if not isinstance(failure, ApiError) or failure.code != 409 or count > 5:
            log.warning(
                "pass failed", loop=self.name, key=str(key), error=str(failure), again_in_seconds=round(pause, 2)
            )
        self._retries[key] = self._clock.call_later(pause, lambda: self._retry(key))

    def _retry(self, key: Key) -> None:
        self._retries.pop(key, None)
        self.add(key)
