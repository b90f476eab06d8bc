"""A terminal that may be closed while a command still has something to put in order.

Its closing sends SIGHUP, often twice: the shell to its jobs, the kernel to the foreground. Before that or after it
every write fails. Neither may keep a command from cleaning up.
"""

from __future__ import annotations

import errno
import os
import signal
from typing import Any, TextIO


class HangupSafeStream:
    """A text stream that writes to nowhere once its terminal is gone; in all else the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as refused:
            self._redirect_to_null(refused)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as refused:
            self._redirect_to_null(refused)

    def _redirect_to_null(self, refused: OSError) -> None:
        if refused.errno != errno.EIO:
            raise refused
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        # What is still in the stream's buffer is tried again with the next write, and when Python ends.
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def termination_signals() -> list[signal.Signals]:
    """The signals that end a command, beside Ctrl-C; not those that are ignored, as nohup does with a hangup."""
    return [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
