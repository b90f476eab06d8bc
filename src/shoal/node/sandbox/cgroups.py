"""Limits of memory, processor time and processes, by control groups where this user may make them.

A pod with a limit gets a group below `shoal-<cluster>`, and each of its limited processes one below that. All are below
the group the agent itself is in, or the nearest one above it that delegates controllers (version 2) and is writable for
this user: so a limit set on the agent from outside stays a limit on its pods. Memory and processor time are limited per
process, the number of processes per pod. Both versions of the interface are supported. Groups are removed with their
process or pod.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ROOT = "/sys/fs/cgroup"
MEMORY, CPU, PIDS = "memory", "cpu", "pids"
CONTROLLERS = (MEMORY, CPU, PIDS)
PERIOD_MICROSECONDS = 100_000  # of processor time; the usual one
_MIN_QUOTA_MICROSECONDS = 1000  # the kernel takes no less
_TRIES = 100  # to make a group below one that another pod's last process removes at the same time


class CgroupRoot:
    """Where groups may be made: the version of the interface, and the folder of each controller that can be had."""

    __slots__ = ("folders", "version")

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version = version
        self.folders = folders

    def as_json(self) -> dict[str, Any]:
        return {"version": self.version, "folders": self.folders}


class Limits:
    """Of one process, and `pids` of its whole pod. None: no limit."""

    __slots__ = ("cpu_milli", "memory_bytes", "pids")

    def __init__(self, *, memory_bytes: int | None, cpu_milli: int | None, pids: int | None) -> None:
        self.memory_bytes = memory_bytes
        self.cpu_milli = cpu_milli
        self.pids = pids


class Cgroup:
    """The control group of one process: a folder per controller in version 1, a single one in version 2."""

    def __init__(self, root: CgroupRoot, cluster: str, pod: str, process: str, limits: Limits) -> None:
        limited = {MEMORY: limits.memory_bytes, CPU: limits.cpu_milli, PIDS: limits.pids}
        self._limits = limits
        self._version = root.version
        self._used = [name for name in CONTROLLERS if limited[name] is not None and name in root.folders]
        self._clusters = {name: f"{root.folders[name]}/{cluster}" for name in self._used}
        self._pods = {name: f"{self._clusters[name]}/{pod}" for name in self._used}
        # Version 1 counts processes in the pod's own group; version 2 requires all processes in leaves.
        in_leaves = [name for name in self._used if name != PIDS or self._version == 2]
        self._leaves = {name: f"{self._pods[name]}/{process}" for name in in_leaves}

    @property
    def limits_memory(self) -> bool:
        return MEMORY in self._used

    def __bool__(self) -> bool:
        return bool(self._used)

    def make(self) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self._make()
            except FileNotFoundError:
                if not left:
                    raise
            else:
                return

    def _make(self) -> None:
        for name in self._used:
            os.makedirs(self._clusters[name], exist_ok=True)
            self._enable_controller(self._clusters[name], name)
            os.makedirs(self._pods[name], exist_ok=True)
            if name == PIDS:
                _write(f"{self._pods[name]}/pids.max", str(self._limits.pids))
            else:
                self._enable_controller(self._pods[name], name)
        for name, leaf in self._leaves.items():
            os.makedirs(leaf, exist_ok=True)
            if name == MEMORY:
                self._limit_memory(leaf)
            elif name == CPU:
                self._limit_cpu(leaf)

    def _enable_controller(self, folder: str, controller: str) -> None:
        if self._version == 2:  # where each level has to hand a controller on to the next
            _write(f"{folder}/cgroup.subtree_control", f"+{controller}")

    def _limit_memory(self, leaf: str) -> None:
        if self._version == 2:
            _write(f"{leaf}/memory.max", str(self._limits.memory_bytes))
            # Without swap, and all processes of the group are killed together: half a container is of no use.
            _write_if_exists(f"{leaf}/memory.swap.max", "0")
            _write_if_exists(f"{leaf}/memory.oom.group", "1")
        else:
            _write(f"{leaf}/memory.limit_in_bytes", str(self._limits.memory_bytes))
            _write_if_exists(f"{leaf}/memory.memsw.limit_in_bytes", str(self._limits.memory_bytes))

    def _limit_cpu(self, leaf: str) -> None:
        assert self._limits.cpu_milli is not None
        quota = max(self._limits.cpu_milli * PERIOD_MICROSECONDS // 1000, _MIN_QUOTA_MICROSECONDS)
        if self._version == 2:
            _write(f"{leaf}/cpu.max", f"{quota} {PERIOD_MICROSECONDS}")
        else:
            _write(f"{leaf}/cpu.cfs_period_us", str(PERIOD_MICROSECONDS))
            _write(f"{leaf}/cpu.cfs_quota_us", str(quota))

    def enter(self) -> None:
        """Move the calling process into the group."""
        for folder in {self._leaves.get(name, self._pods[name]) for name in self._used}:
            _write(f"{folder}/cgroup.procs", str(os.getpid()))

    def members(self) -> list[int]:
        """Of this process alone; none where only its pod is limited."""
        for leaf in self._leaves.values():
            try:
                with open(f"{leaf}/cgroup.procs", "rb") as file:
                    return [int(pid) for pid in file.read().split()]
            except OSError:
                continue
        return []

    def oom_kills(self) -> int:
        name = "memory.events" if self._version == 2 else "memory.oom_control"
        return _counter(f"{self._leaves[MEMORY]}/{name}", b"oom_kill") if self.limits_memory else 0

    def remove(self) -> None:
        """Of the process; those of its pod stay, since another process may be about to enter them."""
        _remove(self._leaves.values())


def remove_pod(root: CgroupRoot, cluster: str, pod: str) -> None:
    """All groups of a pod, once its processes are gone."""
    for top in set(root.folders.values()):
        folder = f"{top}/{cluster}/{pod}"
        try:
            leaves = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        _remove([*leaves, folder])
        _remove([f"{top}/{cluster}"])


def _remove(folders: Any) -> None:
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:  # still in use by others, or gone
            continue


def find() -> tuple[CgroupRoot | None, dict[str, str]]:
    """Where groups may be made, and for each controller, as text, where or why not. Tries each out."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    first = {name: path for _, names, path in lines for name in names.split(",") if name in CONTROLLERS}
    second = next((path for number, _, path in lines if number == "0"), None)
    version = 1 if MEMORY in first or second is None else 2
    below = "" if version == 1 else _find_delegated(second or "")
    folders: dict[str, str] = {}
    details: dict[str, str] = {}
    for name in CONTROLLERS:
        refused = ""
        if version == 1:
            folder = f"{_ROOT}/{name}{first.get(name, '').rstrip('/')}"
            if name not in first:
                refused = f"this machine has no {name} control groups"
            elif not _usable(folder):
                refused = f"{folder} is not writable for this user"
        else:
            folder = below
            if not folder:
                refused = f"no control group above this process hands the {name} controller on to this user"
            elif name not in _enabled_controllers(folder):
                refused = f"{folder} does not hand the {name} controller on"
        refused = refused or _test_limits(CgroupRoot(version, {name: folder}))
        if not refused:
            folders[name] = folder
        details[name] = refused or f"{name} control groups (version {version}) below {folder}"
    return (CgroupRoot(version, folders) if folders else None), details


def _find_delegated(path: str) -> str:
    """The nearest folder that hands memory on, or where none does, any controller. One for all controllers: a process
    is in one group only."""
    for limited in ({MEMORY}, set(CONTROLLERS)):
        folder = f"{_ROOT}{path}".rstrip("/")
        while folder.startswith(_ROOT):
            if limited.intersection(_enabled_controllers(folder)) and _usable(folder):
                return folder
            folder = os.path.dirname(folder)
    return ""


def _enabled_controllers(folder: str) -> list[str]:
    try:
        with open(f"{folder}/cgroup.subtree_control", encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def _usable(folder: str) -> bool:
    return os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)


def _test_limits(root: CgroupRoot) -> str:
    """Why a limit cannot be set there; '' where it can."""
    limits = Limits(memory_bytes=1 << 30, cpu_milli=1000, pids=1000)
    cluster = f"shoal-trial-{os.getpid()}"
    group = Cgroup(root, cluster, "pod", "process", limits)
    try:
        group.make()
    except OSError as refused:
        return f"{refused.filename}: {refused.strerror}"
    finally:
        group.remove()
        remove_pod(root, cluster, "pod")
    return ""


def default_pids_limit() -> int:
    """A quarter of what the machine can hold, threads included: room for any training job, and an end for a pod that
    forks without end before the machine has none left."""
    return min(_number("/proc/sys/kernel/pid_max"), _number("/proc/sys/kernel/threads-max")) // 4


def _number(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read())


def host_oom_kills() -> int:
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
    except OSError as refused:
        raise OSError(refused.errno, refused.strerror, path) from None
    finally:
        os.close(fd)


def _write_if_exists(path: str, text: str) -> None:
    try:
        _write(path, text)
    except OSError:
        return
