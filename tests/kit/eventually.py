"""Asking again, where nothing tells when the answer changes: a page of metrics, the server's own record of requests,
what the informers of a real API server have seen.

Whatever can be watched, logged or waited for is not asked about here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

LIMIT_SECONDS = 90.0  # for a server that has to share two processors with all tests; an idle one needs milliseconds
PAUSE_SECONDS = 0.05

Answer = TypeVar("Answer")


async def answer_becomes(ask: Callable[[], Awaitable[Answer]], is_wanted: Callable[[Answer], bool]) -> Answer:
    """The first answer that is wanted; fails with the last one where none comes."""
    ends = time.monotonic() + LIMIT_SECONDS
    while not is_wanted(answer := await ask()):
        _check(ends, answer)
        await asyncio.sleep(PAUSE_SECONDS)
    return answer


def answer_turns(ask: Callable[[], Answer], is_wanted: Callable[[Answer], bool]) -> Answer:
    """The same for tests that have no loop."""
    ends = time.monotonic() + LIMIT_SECONDS
    while not is_wanted(answer := ask()):
        _check(ends, answer)
        time.sleep(PAUSE_SECONDS)
    return answer


def _check(ends: float, answer: object) -> None:
    assert time.monotonic() < ends, f"not so in {LIMIT_SECONDS:.0f} s; the last answer: {answer!r}"
