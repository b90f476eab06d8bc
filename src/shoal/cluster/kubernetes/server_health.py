"""Whether the server answers, in a sentence: for whoever asks what a program is waiting for.

A refusal is an answer. No way to the server, an answer that got lost, one that says the server is unwell, and one that
is long in coming are not; the next answer to anything ends the complaint. One slow answer among quick ones is no
silence, but reads and writes are heard apart: a server whose store hangs still reads from memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.kubernetes.retry import Failure

LONG_SECONDS = 5.0


class Hearing:
    """Of one server. `seconds` is a clock that only goes forward."""

    def __init__(self, url: str, seconds: Callable[[], float]) -> None:
        self._url = url
        self._seconds = seconds
        self._numbers = itertools.count()
        self._awaited: dict[int, tuple[object, float]] = {}  # what was asked and when, the oldest first
        self._trouble = ""
        self._answered: dict[bool, float] = {}  # when a read (True) or a write was answered last

    def silence(self) -> str:
        """Why nothing is heard of the server; '' while it answers."""
        silent = (asked for asked in self._awaited.values() if self._answered.get(_is_read(asked[0]), -1.0) < asked[1])
        return self._overdue(next(silent, None)) or self._trouble

    @contextmanager
    def of(self, request: object) -> Iterator[None]:
        """While the answer to a request is waited for, or its head."""
        number = next(self._numbers)
        asked = self._awaited[number] = (request, self._seconds())
        try:
            yield
        except Failure as failure:
            self._trouble = str(failure) if _is_silence(failure) else ""
            if not self._trouble:
                self._answered[_is_read(request)] = self._seconds()
            raise
        except BaseException:  # nobody waits for it any longer
            self._trouble = self._overdue(asked) or self._trouble
            raise
        else:
            self._trouble = ""
            self._answered[_is_read(request)] = self._seconds()
        finally:
            del self._awaited[number]

    def _overdue(self, asked: tuple[object, float] | None) -> str:
        if asked is None:
            return ""
        request, since = asked
        waited = self._seconds() - since
        return f"{self._url} has not answered {request} for {waited:.0f} s" if waited >= LONG_SECONDS else ""


def _is_read(request: object) -> bool:
    return str(request).startswith("GET ")


def _is_silence(failure: Failure) -> bool:
    return isinstance(failure.error, ConnectionError | OutcomeUnknown) or failure.code >= 500
