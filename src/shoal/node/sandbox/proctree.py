"""Process ancestry, read from /proc.

Pids are reused, so a pid on record only means something together with the start time beside it. A process that left its
parent, its group and its session is still identified by a variable in the environment it was started with.
"""

from __future__ import annotations

import os
import signal
from functools import cache

MARK = "SHOAL_PROCESS"  # <sandbox>/<process>, in the environment of everything started in a sandbox

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Stat:
    """The fields of /proc/<pid>/stat in use."""

    __slots__ = ("cpu_seconds", "group", "parent", "resident_bytes", "session", "start", "state")

    def __init__(self, fields: list[bytes]) -> None:
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.cpu_seconds = sum(int(value) for value in fields[11:15]) / _TICKS
        self.start = int(fields[19])
        self.resident_bytes = int(fields[21]) * _PAGE

    @property
    def is_alive(self) -> bool:
        return self.state not in "ZX"


def stat(pid: int) -> Stat | None:
    """None where there is no such process (any more)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets, which may hold blanks and brackets itself.
    return Stat(data[data.rindex(b")") + 2 :].split())


def start_time(pid: int) -> int:
    """In clock ticks since boot; 0 where the process is gone."""
    found = stat(pid)
    return found.start if found else 0


def is_same(pid: int, start: int) -> bool:
    found = stat(pid)
    return found is not None and found.start == start and found.is_alive


@cache
def boot_id() -> str:
    """Read once by the zygote, so that shims need not."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return file.read().strip().decode()


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid: int) -> list[int]:
    """The direct children, by the kernel's own list where it keeps one."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists("/proc/self/task") and not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            return [other for other in all_pids() if (seen := stat(other)) is not None and seen.parent == pid]
    return found


def descendants(roots: list[int]) -> list[int]:
    """The roots and everything below them."""
    found = list(dict.fromkeys(roots))
    known = set(found)
    for pid in found:  # grows while it is walked
        for child in children(pid):
            if child not in known:
                known.add(child)
                found.append(child)
    return found


def mark(pid: int) -> str:
    """The sandbox and process this one was started for; '' where it does not say."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = file.read()
    except OSError:
        return ""
    wanted = MARK.encode() + b"="
    for entry in data.split(b"\0"):
        if entry.startswith(wanted):
            return entry[len(wanted) :].decode("utf-8", "replace")
    return ""


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def kill_leftovers(sandbox: str, sessions: dict[int, int]) -> list[int]:
    """Kill what a dead shim left: processes that bear the sandbox's mark, and those of its sessions (leader's
    pid -> its start time). Returns the pids that were still alive."""
    found = []
    for pid in all_pids():
        seen = stat(pid)
        if seen is None or not seen.is_alive:
            continue
        started = sessions.get(seen.session)
        # A session may outlive its leader, whose pid then has no start time (0); another one means a reused pid.
        in_session = started is not None and seen.start >= started and start_time(seen.session) in (0, started)
        if in_session or mark(pid).partition("/")[0] == sandbox:
            kill(pid)
            found.append(pid)
    return found
