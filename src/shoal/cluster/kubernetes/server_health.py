"""Whether the server answers, as a message that shows what a program is waiting for.

A rejection is a response. A failed connection, a lost response, a server error and a slow response are an outage; the
next response to any request ends it. One slow response among quick ones is no outage, but reads and writes are counted
separately: a server whose store hangs still reads from memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.kubernetes.api_request import RequestFailure

SLOW_SECONDS = 5.0


class ServerHealth:
    """Of one server. `seconds` is a clock that only advances."""

    def __init__(self, url: str, seconds: Callable[[], float]) -> None:
        self._url = url
        self._seconds = seconds
        self._numbers = itertools.count()
        self._pending: dict[int, tuple[object, float]] = {}  # request and start time, the oldest first
        self._outage = ""
        self._answered_at: dict[bool, float] = {}  # when a read (True) or a write was answered last

    def outage(self) -> str:
        """Why the server does not answer; '' while it does."""
        overdue = (
            pending
            for pending in self._pending.values()
            if self._answered_at.get(_is_read(pending[0]), -1.0) < pending[1]
        )
        return self._overdue(next(overdue, None)) or self._outage

    @contextmanager
    def track(self, request: object) -> Iterator[None]:
        """While the answer to a request is waited for, or its head."""
        number = next(self._numbers)
        pending = self._pending[number] = (request, self._seconds())
        try:
            yield
        except RequestFailure as failure:
            is_outage = isinstance(failure.error, ConnectionError | OutcomeUnknown) or failure.code >= 500
            self._outage = str(failure) if is_outage else ""
            if not self._outage:
                self._answered_at[_is_read(request)] = self._seconds()
            raise
        except BaseException:  # it is no longer waited for
            self._outage = self._overdue(pending) or self._outage
            raise
        else:
            self._outage = ""
            self._answered_at[_is_read(request)] = self._seconds()
        finally:
            del self._pending[number]

    def _overdue(self, pending: tuple[object, float] | None) -> str:
        if pending is None:
            return ""
        request, since = pending
        waited = self._seconds() - since
        return f"{self._url} has not answered {request} for {waited:.0f} s" if waited >= SLOW_SECONDS else ""


def _is_read(request: object) -> bool:
    return str(request).startswith("GET ")
