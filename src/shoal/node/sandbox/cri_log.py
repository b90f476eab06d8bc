"""A process's output as lines in a file: `<RFC 3339 nanoseconds> <stdout|stderr> <F|P> <text>`.

The form is the one container runtimes write and every log reader supports. F ends a line, P is a fragment of one: a
line over 16 KiB, or the text a program left without a newline. A file that is full is renamed to `<name>.1` (and .1 to
.2, as many as wanted), so that a following reader observes the rename and continues with the new file.

A line with a carriage return in it is a progress bar: its text is written as it arrives, as fragments of one line, so
that a reader sees the bar move. No byte is added or left out. Where the other stream writes in between, the bar's line
is ended first: a log keeps plain lines.
A full disk costs log lines, never the program: what cannot be written is dropped.
"""

from __future__ import annotations

import os
import time

MAX_PART_BYTES = 16 * 1024


class LogFile:
    """The file both streams of a process go to."""

    def __init__(self, path: str, *, max_bytes: int, max_files: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._max_files = max(max_files, 1)
        self.moving: Stream | None = None  # whose progress bar is the last, unfinished line of the file
        self._open()

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self._size = os.fstat(self._fd).st_size

    def write(self, data: bytes) -> None:
        """Whole lines only."""
        if self._size and self._size + len(data) > self._max_bytes:
            self._rotate()
        try:
            self._size += os.write(self._fd, data)
        except OSError:
            return

    def _rotate(self) -> None:
        full = self._fd
        for number in range(self._max_files - 1, 0, -1):
            older = self._path if number == 1 else f"{self._path}.{number - 1}"
            try:
                os.replace(older, f"{self._path}.{number}")
            except OSError:
                continue
        try:
            if self._max_files == 1:
                os.truncate(self._path, 0)
            self._open()
        except OSError:
            return  # no room for a new file: the old one is kept under its new name
        os.close(full)

    def close(self) -> None:
        os.close(self._fd)


class Stream:
    """One stream on its way into the file: keeps the beginning of a line until its end has come."""

    def __init__(self, name: str, log: LogFile) -> None:
        self._name = name.encode()
        self._log = log
        self._rest = b""

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if end:
            self._write_lines(data[:end])
        if b"\r" in self._rest:
            self._take_last_line()
            self._log.moving = self
        while len(self._rest) >= MAX_PART_BYTES or (self._rest and self._log.moving is self):
            self._write_part(self._rest[:MAX_PART_BYTES])
            self._rest = self._rest[MAX_PART_BYTES:]

    def _take_last_line(self) -> None:
        """End the progress bar of the other stream, if it is the file's last line."""
        other = self._log.moving
        if other is not None and other is not self:
            self._log.write(other._head(b"F") + b"\n")
            self._log.moving = None

    def _write_part(self, text: bytes) -> None:
        self._take_last_line()
        self._log.write(self._head(b"P") + text + b"\n")

    def _write_lines(self, data: bytes) -> None:
        self._take_last_line()
        self._log.moving = None
        head = self._head(b"F")
        lines = data[:-1].split(b"\n")
        if max(map(len, lines)) <= MAX_PART_BYTES:
            self._log.write(head + (b"\n" + head).join(lines) + b"\n")
            return
        part = self._head(b"P")
        for line in lines:
            while len(line) > MAX_PART_BYTES:
                self._log.write(part + line[:MAX_PART_BYTES] + b"\n")
                line = line[MAX_PART_BYTES:]
            self._log.write(head + line + b"\n")

    def finish(self) -> None:
        """The stream has ended; a text without a newline stays a fragment."""
        if self._rest:
            self._write_part(self._rest)
            self._rest = b""

    def _head(self, flag: bytes) -> bytes:
        return timestamp(time.time_ns()) + b" " + self._name + b" " + flag + b" "


def timestamp(nanoseconds: int) -> bytes:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode() + b".%09dZ" % rest
