"""`--grep`: which log lines are printed. A pattern has a limited time for each line, since some never end."""

from __future__ import annotations

import re
import signal
from types import FrameType

import click

SECONDS = 1.0  # of processor time


class _FilterTimeout(Exception):
    """The pattern's time for a line is over."""


class LineFilter:
    """Lines that contain a regular expression; all of them where there is none. For the main thread."""

    def __init__(self, pattern: str | None) -> None:
        self._pattern = None
        if pattern is not None:
            try:
                self._pattern = re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as wrong:
                raise click.BadParameter(f"--grep: {pattern!r} is no regular expression: {wrong}") from None
            signal.signal(signal.SIGVTALRM, _interrupt)

    def matches(self, text: str) -> bool:
        if self._pattern is None:
            return True
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            return self._pattern.search(text) is not None
        except _FilterTimeout:
            raise click.ClickException(
                f"--grep: {self._pattern.pattern!r} needs more than {SECONDS:g} s for a line of {len(text)} "
                "characters. Write it without repetitions inside repetitions."
            ) from None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise _FilterTimeout
