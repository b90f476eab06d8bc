"""A command at a pseudo-terminal, and what it has printed so far."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class AtTerminal:
    """Runs a command whose output is a terminal; to be used as a context manager."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], cwd: Path, *, columns: int = 120) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        described = {**env, "TERM": "xterm-256color", "COLUMNS": str(columns)}
        described.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            words, env=described, cwd=cwd, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self.text = ""

    def __enter__(self) -> AtTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._own)

    def read_until(self, is_there: Callable[[str], bool]) -> str:
        """Everything printed so far, once that holds of it; fails where the command ends before."""
        while not is_there(self.text):
            try:
                self.text += os.read(self._own, 1 << 16).decode(errors="replace")
            except OSError:  # the other side was closed
                raise AssertionError(f"the command ended before:\n{self.text}") from None
        return self.text

    def read_to_end(self) -> int:
        """The exit code, when everything was read."""
        try:
            while data := os.read(self._own, 1 << 16):
                self.text += data.decode(errors="replace")
        except OSError:
            pass
        return self.process.wait()
