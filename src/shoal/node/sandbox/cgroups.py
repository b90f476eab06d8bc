"""Memory limits and the news that one was hit, by control groups where this user may make them.

A limited process gets a group of its own below `shoal-<cluster>`, which hangs below the group the agent itself
is in, or the nearest one above it that hands memory on (version 2) and lets us in: so a limit set on the agent
by somebody else stays a limit on its pods. Groups are only made for processes with a limit; entering one costs
the kernel milliseconds. Both versions of the interface are spoken. Groups are removed with their process.
"""

from __future__ import annotations

import os

_ROOT = "/sys/fs/cgroup"


class Place:
    """Where groups may be made: the folder and the version of the interface."""

    __slots__ = ("path", "version")

    def __init__(self, path: str, version: int) -> None:
        self.path = path
        self.version = version


class Group:
    """The control group of one process."""

    def __init__(self, place: Place, cluster: str, name: str) -> None:
        self._version = place.version
        self._parent = f"{place.path}/{cluster}"
        self.path = f"{self._parent}/{name}"

    def make(self, memory_bytes: int) -> None:
        os.makedirs(self._parent, exist_ok=True)
        if self._version == 2:
            _write(f"{self._parent}/cgroup.subtree_control", "+memory")
        os.makedirs(self.path, exist_ok=True)
        if self._version == 2:
            _write(f"{self.path}/memory.max", str(memory_bytes))
            _write_if_there(f"{self.path}/memory.swap.max", "0")
            _write_if_there(f"{self.path}/memory.oom.group", "1")
        else:
            _write(f"{self.path}/memory.limit_in_bytes", str(memory_bytes))
            _write_if_there(f"{self.path}/memory.memsw.limit_in_bytes", str(memory_bytes))

    def enter(self) -> None:
        _write(f"{self.path}/cgroup.procs", str(os.getpid()))

    def members(self) -> list[int]:
        try:
            with open(f"{self.path}/cgroup.procs", "rb") as file:
                return [int(pid) for pid in file.read().split()]
        except OSError:
            return []

    def kills_for_memory(self) -> int:
        name = "memory.events" if self._version == 2 else "memory.oom_control"
        return _counter(f"{self.path}/{name}", b"oom_kill")

    def remove(self) -> None:
        for path in (self.path, self._parent):
            try:
                os.rmdir(path)
            except OSError:  # the parent is still in use by others, or all is gone
                return


def remove_leftovers(place: Place, cluster: str, prefix: str) -> None:
    """The groups a dead keeper left, once their processes are gone."""
    try:
        names = os.listdir(f"{place.path}/{cluster}")
    except OSError:
        return
    for name in names:
        if name.startswith(prefix):
            Group(place, cluster, name).remove()


def find() -> tuple[Place | None, str]:
    """Where groups may be made, and in words why not or where."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return _first_version(path)
    for number, _, path in lines:
        if number == "0":
            return _second_version(path)
    return None, "this machine has no control groups"


def _first_version(path: str) -> tuple[Place | None, str]:
    folder = f"{_ROOT}/memory{path.rstrip('/')}"
    if _usable(folder):
        return Place(folder, 1), f"memory control groups (version 1) below {folder}"
    return None, f"{folder} is not writable for this user"


def _second_version(path: str) -> tuple[Place | None, str]:
    folder = f"{_ROOT}{path}".rstrip("/")
    while folder.startswith(_ROOT):
        if _hands_memory_on(folder) and _usable(folder):
            return Place(folder, 2), f"memory control groups (version 2) below {folder}"
        folder = os.path.dirname(folder)
    return None, "no control group above this process hands the memory controller on to this user"


def _hands_memory_on(folder: str) -> bool:
    try:
        with open(f"{folder}/cgroup.subtree_control", "rb") as file:
            return b"memory" in file.read().split()
    except OSError:
        return False


def _usable(folder: str) -> bool:
    return os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)


def machine_kills_for_memory() -> int:
    """How often the kernel has killed for memory since boot, anywhere on the machine."""
    return _counter("/proc/vmstat", b"oom_kill")


def _counter(path: str, name: bytes) -> int:
    try:
        with open(path, "rb") as file:
            for line in file:
                key, _, value = line.partition(b" ")
                if key == name:
                    return int(value)
    except OSError:
        return 0
    return 0


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _write_if_there(path: str, text: str) -> None:
    try:
        _write(path, text)
    except OSError:
        return
