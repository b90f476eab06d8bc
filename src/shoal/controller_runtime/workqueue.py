"""Work by key: one at a time per key, some keys at once in the order they came, news meanwhile folded into one pass.

While a key waits for its turn, whatever else arrives for it costs nothing: the busier the loop, the fewer passes a key
needs. What arrives while it is worked on is one more pass. A pass that fails is tried again after a growing, jittered
pause. Where a pass costs requests to a server far away, what usually comes in company may wait a moment for it; nothing
else waits. A mistake in a pass is logged with its trace and retried like any failure: one bad object never stops the
loop for the others.

In the order they came also means that a burst of a thousand new keys goes before all news of the first of them. So that
what is begun gets ended, its line is kept short: when it is long, it goes first, and new keys get every few turns one.
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

Work = Callable[[Key], Awaitable[None]]

AT_ONCE = 16
BACKLOG = 96  # begun keys that may wait in the order they came
TURNS_OF_BEGUN = 4  # of each five, while more than that wait
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
        at_once: int = AT_ONCE,
        is_begun: Callable[[Key], bool] | None = None,
    ) -> None:
        """`gathering_seconds`: how long what is added "soon" waits for company. `is_begun`: whether ending it comes
        before new keys; by default they are all alike."""
        self.name = name
        self._at_once = at_once
        self._gathering_seconds = gathering_seconds
        self._work = work
        self._clock = clock or SystemClock()
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._is_begun = is_begun or _nobody
        self._due: dict[Key, None] = {}  # waiting for their turn, in order
        self._begun: dict[Key, None] = {}  # those of them that are begun
        self._turns = 0  # taken out of order since the last in order
        self._running: set[Key] = set()
        self._hands: set[asyncio.Task[None]] = set()
        self._again: set[Key] = set()
        self._soon_again: set[Key] = set()
        self._gathering: dict[Key, Timer] = {}
        self._failures: dict[Key, int] = {}
        self._retries: dict[Key, Timer] = {}
        self._closed = False

    @property
    def depth(self) -> int:
        """Keys that are being worked on, or wait for it, or gather company."""
        return len(self._running) + len(self._due) + len(self._gathering)

    def is_busy_with(self, key: Key) -> bool:
        """Whether a pass of the key is under way or due."""
        return key in self._running or key in self._due

    def add(self, key: Key) -> None:
        if self._closed or key in self._due:
            return
        if key in self._running:
            self._again.add(key)
            return
        for waiting in (self._retries, self._gathering):
            if timer := waiting.pop(key, None):
                timer.cancel()
        self._due[key] = None
        if self._is_begun(key):
            self._begun[key] = None
        if len(self._hands) < self._at_once:
            self._hands.add(asyncio.get_running_loop().create_task(self._work_off(), name=self.name))

    def add_soon(self, key: Key) -> None:
        """Within the time of gathering, together with what else comes for the key until then."""
        if not self._gathering_seconds:
            self.add(key)
        elif key in self._running:
            self._soon_again.add(key)
        elif key not in self._gathering and key not in self._due and not self._closed:
            self._gathering[key] = self._clock.call_later(self._gathering_seconds, lambda: self.add(key))

    async def close(self) -> None:
        """Stop without finishing: every pass may be cut anywhere, and the next start finds the rest."""
        self._closed = True
        for timer in (*self._retries.values(), *self._gathering.values()):
            timer.cancel()
        hands = list(self._hands)
        for hand in hands:
            hand.cancel()
        await asyncio.gather(*hands, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until no pass is running or due; for tests and orderly ends."""
        while self._hands:
            await asyncio.wait(list(self._hands))

    async def _work_off(self) -> None:
        try:
            while self._due:
                await self._pass(self._next())
        finally:
            hand = asyncio.current_task()
            assert hand is not None
            self._hands.discard(hand)

    def _next(self) -> Key:
        self._turns = self._turns + 1 if len(self._begun) > BACKLOG and self._turns < TURNS_OF_BEGUN else 0
        key = next(iter(self._begun if self._turns else self._due))
        del self._due[key]
        self._begun.pop(key, None)
        return key

    async def _pass(self, key: Key) -> None:
        self._running.add(key)
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
            self._running.discard(key)
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


def _nobody(_: Key) -> bool:
    return False
