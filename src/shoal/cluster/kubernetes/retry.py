"""When a request that failed is sent once more, and after how long. Pure: chance is passed in.

What the server says it did not do (429, or a Retry-After of any kind) may be sent again whatever it is. What may have
been done is sent again only where twice is the same as once: reads, server-side apply, reviews and dry runs. Nothing
is tried for ever: the programs above have queues of their own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
OVERLOADED = 429
_PASSING = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Patience:
    """How often: when nobody answered, when the server was unwell, and when it asked us to come back later."""

    unanswered: int = 3
    unwell: int = 4
    asked_to_wait: int = 8


class Failure(Exception):
    """One attempt that failed; `error` is what the caller gets if it was the last.

    `code` is 0 where no answer came; `may_have_worked` says whether the server may have done what was asked, and
    `was_unheard` that it probably did not: the connection had waited, and broke before anything was heard.
    """

    def __init__(
        self,
        error: Exception,
        *,
        code: int = 0,
        wait_seconds: float | None = None,
        may_have_worked: bool = True,
        was_unheard: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.code = code
        self.wait_seconds = wait_seconds
        self.may_have_worked = may_have_worked
        self.was_unheard = was_unheard

    @property
    def is_overload(self) -> bool:
        """Whether the server said that it is asked for too much."""
        return self.code == OVERLOADED or (self.code == 503 and self.wait_seconds is not None)


def pause_after(
    failure: Failure, *, tries: int, repeatable: bool, patience: Patience, chance: random.Random
) -> float | None:
    """Seconds until the next attempt after `tries` of them; None: that was the last."""
    if failure.wait_seconds is not None:
        allowed, least = patience.asked_to_wait, failure.wait_seconds
    elif failure.code in _PASSING and repeatable:
        allowed, least = patience.unwell, 0.0
    elif failure.code == 0 and (repeatable or not failure.may_have_worked):
        allowed, least = patience.unanswered, 0.0
    else:
        return None
    if tries >= allowed:
        return None
    longest: float = min(FIRST_PAUSE_SECONDS * 2 ** (tries - 1), LONGEST_PAUSE_SECONDS)
    return least + longest * chance.uniform(0.5, 1.0)
