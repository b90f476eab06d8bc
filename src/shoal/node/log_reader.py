"""Reading the output of containers: from the end, since a time, with its timestamps, following as it grows.

The files are written by the pod's shim, one record a line: `<time> <stream> <F|P> <text>`, where P marks an unfinished
line. A full file is renamed to `.1`, `.2` and so on; a reader keeps the file it has open, finishes it and continues
with the next newer one, so that nothing is lost or read twice. Following waits for events of the kernel (inotify) and
ends when the run has ended and everything is read.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from shoal.cluster.client import LogOptions
from shoal.kube.errors import bad_request
from shoal.kube.times import parse
from shoal.node.inotify import FolderWatch

BLOCK_BYTES = 256 << 10


@dataclass(slots=True)
class LogFormatter:
    """Turns records into the bytes a person sees, within the options: since, timestamps, limit."""

    since: str = ""
    timestamps: bool = False
    limit_bytes: int | None = None
    inside_line: bool = False

    def format(self, records: bytes) -> bytes:
        parts: list[bytes] = []
        for record in records.split(b"\n"):
            if not record:
                continue
            stamp, _, rest = record.partition(b" ")
            _, _, rest = rest.partition(b" ")
            flag, _, text = rest.partition(b" ")
            if self.since and stamp.decode("latin-1") < self.since:
                continue
            if self.timestamps and not self.inside_line:
                parts.append(stamp + b" ")
            self.inside_line = flag == b"P"
            parts.append(text if self.inside_line else text + b"\n")
        out = b"".join(parts)
        if self.limit_bytes is None:
            return out
        kept = out[: self.limit_bytes]
        self.limit_bytes -= len(kept)
        return kept

    @property
    def is_full(self) -> bool:
        return self.limit_bytes is not None and self.limit_bytes <= 0


def make_formatter(options: LogOptions, now: datetime) -> LogFormatter:
    since = ""
    if options.since_seconds is not None:
        since = _stamp(now - timedelta(seconds=options.since_seconds))
    elif options.since_time:
        try:
            since = _stamp(parse(options.since_time))
        except ValueError as error:
            raise bad_request(str(error)) from error
    return LogFormatter(since, options.timestamps, options.limit_bytes)


def _stamp(moment: datetime) -> str:
    """Comparable, letter by letter, with the timestamps in the files."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


class LogTrail:
    """The records of one run over all its files, oldest first, as far as they are written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def seek_tail(self, tail_lines: int | None) -> None:
        """Stand at the first record, or where the last `tail_lines` lines begin."""
        files = self._open_all()
        if not files:
            return
        place, offset = (0, 0) if tail_lines is None else _tail_start(files, tail_lines)
        self._file = _keep(files, place)
        self._file.seek(offset)

    def read(self) -> bytes:
        """The next whole records; empty when there are none now."""
        while True:
            if self._file is None:
                files = self._open_all()
                if not files:
                    return b""
                self._file = _keep(files, 0)
            data = self._rest + self._file.read(BLOCK_BYTES)
            end = data.rfind(b"\n") + 1
            self._rest = data[end:]
            if end:
                return data[:end]
            if not self._advance():
                return b""

    def _advance(self) -> bool:
        """Whether there is more to read: in the file at hand, or in the next newer one where this one was renamed."""
        assert self._file is not None
        size, at = os.fstat(self._file.fileno()).st_size, self._file.tell()
        if size < at:  # emptied, where only one file is kept
            self._file.seek(0)
            self._rest = b""
        if size != at:
            return True
        current = _number(self._file)
        if _number_of(self._path) == current:
            return False
        files = self._open_all()
        numbers = [_number(file) for file in files]
        following = numbers.index(current) + 1 if current in numbers else 0
        if following == len(files):
            _close(files)
            return False
        self._file.close()
        self._file, self._rest = _keep(files, following), b""
        return True

    def _open_all(self) -> list[BinaryIO]:
        """Oldest first. The shim may rename them in between: repeats until the open files are the current ones."""
        while True:
            files: list[BinaryIO] = []
            try:
                files += (path.open("rb") for path in self._files())
            except FileNotFoundError:
                _close(files)
                continue
            if [_number(file) for file in files] == [_number_of(path) for path in self._files()]:
                return files
            _close(files)

    def _files(self) -> list[Path]:
        """Oldest first: the renamed ones by falling number, then the one being written."""
        older = [p for p in self._path.parent.glob(f"{self._path.name}.*") if p.suffix[1:].isdigit()]
        older.sort(key=lambda p: int(p.suffix[1:]), reverse=True)
        return [*older, self._path] if self._path.exists() else older


def _number(file: BinaryIO) -> int:
    """What stays the same when a file is renamed."""
    return os.fstat(file.fileno()).st_ino


def _number_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _keep(files: list[BinaryIO], index: int) -> BinaryIO:
    kept = files.pop(index)
    _close(files)
    return kept


def _close(files: list[BinaryIO]) -> None:
    for file in files:
        file.close()


def _tail_start(files: list[BinaryIO], lines: int) -> tuple[int, int]:
    """Where the last `lines` lines begin: which file, and where in it. A line made of several records counts once."""
    remaining, last = lines, len(files) - 1
    for index in range(last, -1, -1):
        data = files[index].read()
        end = len(data)
        if remaining == 0:
            return index, end
        while end > 0:
            start = data.rfind(b"\n", 0, end - 1) + 1
            flag = data[start:end].split(b" ", 3)[2:3]
            if flag == [b"F"] or (index == last and end == len(data)):
                if remaining == 0:
                    return index, end
                remaining -= 1
            end = start
    return 0, 0


async def read_log(
    path: Path,
    options: LogOptions,
    *,
    now: datetime,
    is_over: Callable[[], bool],
    subscribe: Callable[[Callable[[], None]], Callable[[], None]],
) -> AsyncIterator[bytes]:
    """The log of one run. `is_over` returns whether the run has ended.
    `subscribe(poke)` has the reader woken when that may have changed and returns the function that ends the
    subscription."""
    formatter = make_formatter(options, now)
    trail = LogTrail(path)
    try:
        if not options.follow:
            trail.seek_tail(options.tail_lines)
            while not formatter.is_full and (records := trail.read()):
                if text := formatter.format(records):
                    yield text
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with FolderWatch(path.parent) as watch:
            unsubscribe = subscribe(watch.notify)
            try:
                trail.seek_tail(options.tail_lines)
                while True:
                    over = is_over()  # checked before reading: what was written before the end is then surely read
                    while not formatter.is_full and (records := trail.read()):
                        if text := formatter.format(records):
                            yield text
                    if over or formatter.is_full:  # a limit ends it there and then, not with the next line
                        return
                    await watch.changed()
            finally:
                unsubscribe()
    finally:
        trail.close()
