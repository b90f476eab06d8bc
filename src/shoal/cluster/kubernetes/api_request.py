"""A request to an API server, its failure, and when it is sent once more. Pure: randomness is passed in.

What the server reports as not done (429, or a Retry-After of any kind) may always be sent again. What may have been
done is sent again only where twice is the same as once: reads, server-side apply, reviews and dry runs. Nothing is
retried for ever: the programs above have queues of their own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

JSON = "application/json"
# Metadata alone, or all of it where that cannot be had.
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
LIST_OF_METADATA = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
INITIAL_BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 10.0
OVERLOADED = 429
_TRANSIENT = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class ApiRequest:
    method: str
    path: str  # with its query, both encoded
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    repeatable: bool = False  # twice is the same as once
    urgent: bool = False  # does not wait in line
    latency_class: str = ""  # whose latency shows the server's state; '' where it depends on the response's size
    verb: str = "get"
    resource: str = ""  # the plural of what is requested; '' where it is the server itself

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """How often to retry: without a response, after a server error, and after the server's request to wait."""

    no_answer: int = 3
    server_error: int = 4
    retry_after: int = 8


class RequestFailure(Exception):
    """One attempt that failed; `error` is what the caller gets if it was the last.

    `code` is 0 where no response arrived; `may_have_succeeded`: the server may have executed the request;
    `was_stale`: it probably did not, because the connection had been idle and broke before any response.
    """

    def __init__(
        self,
        error: Exception,
        *,
        code: int = 0,
        wait_seconds: float | None = None,
        may_have_succeeded: bool = True,
        was_stale: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.code = code
        self.wait_seconds = wait_seconds
        self.may_have_succeeded = may_have_succeeded
        self.was_stale = was_stale

    @property
    def is_overload(self) -> bool:
        """Whether the server reported that it receives too many requests."""
        return self.code == OVERLOADED or (self.code == 503 and self.wait_seconds is not None)


def retry_delay(
    failure: RequestFailure, *, tries: int, repeatable: bool, retry_limits: RetryLimits, rng: random.Random
) -> float | None:
    """Seconds until the next attempt after `tries` of them; None: that was the last."""
    if failure.wait_seconds is not None:
        allowed, least = retry_limits.retry_after, failure.wait_seconds
    elif failure.code in _TRANSIENT and repeatable:
        allowed, least = retry_limits.server_error, 0.0
    elif failure.code == 0 and (repeatable or not failure.may_have_succeeded):
        allowed, least = retry_limits.no_answer, 0.0
    else:
        return None
    if tries >= allowed:
        return None
    longest: float = min(INITIAL_BACKOFF_SECONDS * 2 ** (tries - 1), MAX_BACKOFF_SECONDS)
    return least + longest * rng.uniform(0.5, 1.0)
