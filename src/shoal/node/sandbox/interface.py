"""The agent's interface to sandboxes. No Kubernetes terms here: names, addresses, mounts, processes."""

from __future__ import annotations

import signal as signals
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from shoal.kube.messages import Message
from shoal.node.messages import MessageError


class Network(StrEnum):
    """How pods get their addresses."""

    ISOLATED = "isolated"  # a network namespace per pod, on a bridge of the cluster's own
    LOOPBACK = "loopback"  # the machine's network; every pod has a 127.x.y.z address of its own


@dataclass(frozen=True, slots=True)
class Mount:
    """One thing to see at `target`. `source` None means a fresh tmpfs that is not shared.
    `sub_path` is a path within `source`, whose content is not trusted: it is resolved when it is mounted, and no link
    may lead out of `source`."""

    target: str
    source: Path | None
    read_only: bool = False
    size_bytes: int | None = None  # of a tmpfs
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """A pod, as its processes see it."""

    id: str  # the pod's UID; also the folder name
    hostname: str
    ip: str  # '' for the machine's own network (hostNetwork)
    hosts_file: Path  # shown as /etc/hosts and rewritten in place by the agent
    labels: Mapping[str, str] = field(default_factory=dict)  # kept and given back on adoption; for people's eyes


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One container start. `id` is unique within the sandbox: `<container>.<restart count>`."""

    id: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    log_file: Path  # lines as `<RFC 3339 nanoseconds> <stdout|stderr> <F|P> <text>`; rotated beside itself
    mounts: tuple[Mount, ...] = ()
    uid: int | None = None  # None: the caller's own
    gid: int | None = None
    memory_bytes: int | None = None  # a limit, enforced where control groups can be had
    cpu_milli: int | None = None  # the same, in thousandths of a processor
    hidden: tuple[Path, ...] = ()  # covered for the process; only mounts whose source lies inside show any of it
    no_new_privs: bool = False  # setuid programs and file capabilities give the process nothing
    log_max_bytes: int = 10 << 20
    log_max_files: int = 5


@dataclass(frozen=True, slots=True)
class Started:
    process: str
    pid: int
    at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Exited:
    """How a process ended. Exactly one of `code` and `signal` is set, unless the end was not observed."""

    process: str
    at: float
    code: int | None
    signal: int | None
    oom_killed: bool = False
    message: Message | str = ""  # why it never ran (no such program, a mount that failed), or why the end is unknown


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The state that an adopted sandbox holds of a process it was given."""

    started: Started | None
    exited: Exited | None


class Sandbox(Protocol):
    """The sandbox of one pod. Calls on a sandbox whose shim is gone raise `ShimLost`."""

    @property
    def spec(self) -> SandboxSpec: ...

    async def start(self, process: ProcessSpec) -> Started | Exited:
        """Start a process. Idempotent by process id: a second call returns the result of the first.
        Exited where it could not be started (code 126, 127 or 128 as in a shell or runc)."""
        ...

    def processes(self) -> Mapping[str, ProcessState]: ...

    async def wait(self, process: str) -> Exited:
        """The end of a process; resolved by the shim's message, never by polling."""
        ...

    async def signal(self, process: str, signal: signals.Signals) -> None:
        """To the whole process group. SIGKILL reaches every descendant, also those that left the group."""
        ...

    async def execute(
        self,
        process: str,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        tty: bool = False,
    ) -> Execution:
        """Run another command beside a running process: same namespaces, mounts, environment, folder.
        ProcessLookupError where it does not run; another OSError, with a message, where the machine refuses."""
        ...

    async def dial(self, host: str, port: int, *, timeout: float) -> socket.socket:
        """A TCP connection made from inside the sandbox (non-blocking socket); OSError where refused."""
        ...

    def usage(self) -> Mapping[str, tuple[float, int]]:
        """Per running process: cpu seconds used so far by it and its descendants, resident bytes."""
        ...

    async def close(self) -> None:
        """Kill what is left, release the address, forget the pod. Idempotent."""
        ...


class Execution(Protocol):
    """A command running in a sandbox, with its streams."""

    async def write(self, data: bytes) -> None: ...
    async def close_stdin(self) -> None: ...
    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """(1, data) for stdout, (2, data) for stderr, until the command ends."""
        ...

    async def resize(self, columns: int, rows: int) -> None: ...
    async def wait(self) -> int: ...
    async def kill(self) -> None: ...


class Sandboxes(Protocol):
    """All sandboxes of one data folder."""

    @property
    def network(self) -> Network: ...

    async def create(self, spec: SandboxSpec) -> Sandbox: ...

    async def adopt(self) -> tuple[Sequence[Sandbox], Sequence[LostSandbox]]:
        """The sandboxes that still run from an earlier agent, and those whose shim died, with what is on record."""
        ...

    async def remove(self, sandbox: str) -> None:
        """Drop what is on record of a lost sandbox.
        Until then every adoption reports it again, so that an agent killed between receiving and storing it receives it
        once more; creating the sandbox again drops it too."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Variables that programs need here, such as the proxy for egress.
        To be laid over the caller's own environment and under what a pod sets itself."""
        ...

    async def serve(self, services: Mapping[tuple[str, int], tuple[tuple[str, int], ...]]) -> None:
        """The whole table of virtual addresses: (address, port) -> the (address, port)s behind it, TCP.
        Replaces the table before; connections already open go on."""
        ...

    async def close(self) -> None:
        """Leave: sandboxes and their processes go on."""
        ...


@dataclass(frozen=True, slots=True)
class LostSandbox:
    """A sandbox whose shim died: its processes have been killed, this is what was on record."""

    spec: SandboxSpec
    processes: Mapping[str, ProcessState]


class ShimLost(MessageError):
    """The shim of this sandbox died; its processes were killed with it or will be."""

    def __init__(self) -> None:
        super().__init__(Message("Sandbox.ShimLost"))
