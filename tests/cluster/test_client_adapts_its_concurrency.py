"""How many requests are on their way at once follows what the server bears: more while it is quick, less when not."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.kubernetes.api_request import RequestFailure, RetryLimits, retry_delay
from shoal.cluster.kubernetes.flow_control import ConcurrencyBounds, ConcurrencyLimit, RequestQueue


def test_the_limit_grows_fast_until_the_first_sign_of_trouble() -> None:
    pace = ConcurrencyLimit(ConcurrencyBounds(initial=16))
    for _ in range(16):
        pace.observe("POST", 0.01, was_full=True)
    assert pace.limit == 32
    pace.on_overload(sent_at=1.0, now=1.1)
    assert pace.limit == 16
    for _ in range(17):
        pace.observe("POST", 0.01, was_full=True)
    assert 16.9 < pace.limit < 17.1


def test_it_does_not_grow_for_nothing() -> None:
    pace = ConcurrencyLimit(ConcurrencyBounds(initial=16))
    for _ in range(100):
        pace.observe("POST", 0.01, was_full=False)
    assert pace.limit == 16


def test_a_burst_that_is_turned_away_together_counts_once() -> None:
    pace = ConcurrencyLimit(ConcurrencyBounds(initial=64))
    for late in range(40):
        pace.on_overload(sent_at=1.0, now=1.5 + late / 100)
    assert pace.limit == 32
    pace.on_overload(sent_at=1.6, now=2.0)
    assert pace.limit == 16


def test_slow_answers_shrink_it_a_little_but_not_to_nothing() -> None:
    pace = ConcurrencyLimit(ConcurrencyBounds(initial=16, slow_minimum=4))
    pace.observe("POST", 0.001, was_full=True)
    for _ in range(50):
        pace.observe("POST", 0.1, was_full=True)
    assert 14 < pace.limit < 16
    for _ in range(10_000):
        pace.observe("POST", 0.1 + pace.limit / 10, was_full=True)
    assert pace.limit >= 4


def test_sorts_of_requests_are_compared_with_their_own_kind() -> None:
    pace = ConcurrencyLimit(ConcurrencyBounds(initial=16))
    for _ in range(8):
        pace.observe("GET", 0.001, was_full=True)
        pace.observe("POST", 0.1, was_full=True)
    assert pace.limit == 32


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("took"), st.floats(0, 100), st.booleans()),
            st.tuples(st.just("busy"), st.floats(0, 100), st.booleans()),
        )
    )
)
def test_the_limit_never_falls_below_one(history: list[tuple[str, float, bool]]) -> None:
    pace = ConcurrencyLimit()
    for what, seconds, was_full in history:
        if what == "took":
            pace.observe("GET", seconds, was_full=was_full)
        else:
            pace.on_overload(sent_at=seconds, now=seconds)
        assert 1 <= pace.limit <= 256


class Turns:
    """Tasks that hold their turn until they are released."""

    def __init__(self, limit: float) -> None:
        self.limiter = ConcurrencyLimit(ConcurrencyBounds(initial=limit))
        self.line = RequestQueue(self.limiter)
        self.holding: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._go = {name: asyncio.Event() for name in "abcdef"}

    async def come(self, *names: str) -> None:
        for name in names:
            self.tasks[name] = asyncio.create_task(self._hold(name))
        await self.settle()

    async def leave(self, name: str) -> None:
        self._go[name].set()
        await self.settle()

    async def cancel(self, *names: str) -> None:
        for name in names:
            self.tasks[name].cancel()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)  # every task runs as far as it can

    async def _hold(self, name: str) -> None:
        await self.line.acquire()
        self.holding.append(name)
        try:
            await self._go[name].wait()
        finally:
            self.holding.remove(name)
            self.line.release()


async def test_turns_are_taken_in_order() -> None:
    turns = Turns(2)
    await turns.come("a", "b", "c", "d")
    assert (turns.holding, turns.line.is_full) == (["a", "b"], True)
    await turns.leave("b")
    assert turns.holding == ["a", "c"]
    turns.limiter.limit = 1
    await turns.leave("a")
    assert turns.holding == ["c"]
    turns.limiter.limit = 3
    await turns.leave("c")
    assert turns.holding == ["d"]
    await turns.leave("d")


async def test_a_cancelled_waiter_blocks_no_other() -> None:
    turns = Turns(1)
    await turns.come("a", "b", "c", "d")
    await turns.cancel("b")
    turns._go["a"].set()
    await asyncio.sleep(0)
    await turns.cancel("c")  # perhaps with the turn already given
    assert turns.holding == ["d"]
    await turns.leave("d")
    await turns.come("e")
    assert turns.holding == ["e"]
    await turns.leave("e")


NO_ANSWER = RequestFailure(OutcomeUnknown("no answer"))
NEVER_SENT = RequestFailure(OutcomeUnknown("no way"), may_have_succeeded=False)


def busy(seconds: float | None) -> RequestFailure:
    return RequestFailure(OutcomeUnknown("busy"), code=429, wait_seconds=seconds)


@pytest.mark.parametrize(
    ("failure", "repeatable", "tries"),
    [
        (NO_ANSWER, True, 3),
        (NO_ANSWER, False, 1),
        (NEVER_SENT, False, 3),
        (busy(1), False, 8),
        (RequestFailure(OutcomeUnknown("unwell"), code=503), True, 4),
        (RequestFailure(OutcomeUnknown("unwell"), code=503), False, 1),
        (RequestFailure(OutcomeUnknown("unwell"), code=503, wait_seconds=2), False, 8),
        (RequestFailure(OutcomeUnknown("broken"), code=500), True, 1),
        (RequestFailure(OutcomeUnknown("not there"), code=404), True, 1),
    ],
    ids=["read unanswered", "write unanswered", "never sent", "busy", "read unwell", "write unwell", "come back",
         "broken", "refused"],
)  # fmt: skip
def test_what_is_tried_again_and_how_often(failure: RequestFailure, repeatable: bool, tries: int) -> None:
    rng, made = random.Random(0), 1
    while retry_delay(failure, tries=made, repeatable=repeatable, retry_limits=RetryLimits(), rng=rng) is not None:
        made += 1
    assert made == tries


def test_pauses_grow_and_differ() -> None:
    rng = random.Random(0)
    pauses = [
        retry_delay(NO_ANSWER, tries=tries, repeatable=True, retry_limits=RetryLimits(99, 99, 99), rng=rng) or 0
        for tries in range(1, 12)
    ]
    for number, pause in enumerate(pauses):
        longest = min(0.1 * 2**number, 10.0)
        assert longest / 2 <= pause <= longest
