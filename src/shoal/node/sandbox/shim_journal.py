"""The record of a sandbox: one JSON line per fact, appended before it is reported or acted on.

`sandbox` is the first line (the spec, the shim, the boot of the machine), then per process `intent`, `started` and
`exited`. A line is written by a single append, so a shim killed at any point leaves whole lines and at most one torn
one, which a reader skips. There is no fsync: what a power cut takes from the page cache, it takes from the processes
too.
"""

from __future__ import annotations

import errno
import json
import os

from shoal.node.sandbox import proctree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "journal"


class ShimJournal:
    """The record of one sandbox, open for appending."""

    def __init__(self, folder: str) -> None:
        self._fd = os.open(f"{folder}/{NAME}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._is_partial = False

    def append(self, fact: str, **details: Any) -> None:
        """Put a fact on record; OSError where the disk refuses, and then nothing of it counts."""
        line = json.dumps({"fact": fact, **details}, separators=(",", ":")).encode() + b"\n"
        if self._is_partial:
            line = b"\n" + line
        self._is_partial = True
        try:
            written = os.write(self._fd, line)
        except OSError as refused:
            raise OSError(refused.errno, refused.strerror, NAME) from None
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), NAME)
        self._is_partial = False

    def append_if_possible(self, fact: str, **details: Any) -> None:
        """For what has happened anyway.
        On a full disk the shim continues and reports it from memory: only a shim that dies before there is room again
        loses it."""
        try:
            self.append(fact, **details)
        except OSError:
            return


class Record:
    """A journal read back."""

    __slots__ = ("boot", "keeper", "keeper_start", "processes", "spec")

    def __init__(self, head: dict[str, Any]) -> None:
        self.spec: dict[str, Any] = head["spec"]
        self.keeper: int = head["keeper"]
        self.keeper_start: int = head["keeper_start"]
        self.boot: str = head["boot"]
        self.processes: dict[str, dict[str, Any]] = {}  # id -> {"started": ..., "exited": ...}

    @property
    def is_of_this_boot(self) -> bool:
        return self.boot == proctree.boot_id()


def read(folder: str) -> Record | None:
    """The record of a sandbox, or None where its shim ended before writing one."""
    try:
        with open(f"{folder}/{NAME}", "rb") as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return None
    record: Record | None = None
    for line in lines[:-1]:  # what follows the last newline is torn
        try:
            fact = json.loads(line)
        except ValueError:
            continue
        if fact["fact"] == "sandbox":
            record = Record(fact)
        elif record is not None:
            state = record.processes.setdefault(fact["process"], {"started": None, "exited": None})
            if fact["fact"] in state:
                state[fact["fact"]] = fact
    return record
