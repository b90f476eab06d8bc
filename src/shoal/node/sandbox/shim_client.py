"""One sandbox, seen from the agent: the connection to its shim, and the states that the shim has sent.

States are never requested: a shim sends all it has upon connection and each fact as it happens, so `wait` is a future
and `processes` a look at memory. When the connection breaks the shim is dead, and whatever of the pod survived it
is killed here.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import shutil
import signal as signals
import socket
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.kube.messages import Message
from shoal.node.messages import MessageError
from shoal.node.sandbox import cgroups, proctree, shim_journal, wire
from shoal.node.sandbox.exec_handle import ExecHandle, result_of
from shoal.node.sandbox.hosts_lookup import look_up_host
from shoal.node.sandbox.interface import Exited, ProcessSpec, ProcessState, SandboxSpec, ShimLost, Started
from shoal.node.sandbox.rpc import RpcConnection

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class SandboxFailed(MessageError):
    """A sandbox could not be made; the message has what the machine refused."""


def state_of(process: str, data: Mapping[str, Any]) -> ProcessState:
    started, exited = data["started"], data["exited"]
    return ProcessState(
        started=None if started is None else Started(process, started["pid"], started["at"]),
        exited=None
        if exited is None
        else Exited(process, exited["at"], exited["code"], exited["signal"], exited["oom_killed"], exited["message"]),
    )


def spec_as_json(spec: SandboxSpec) -> dict[str, Any]:
    return {**_fields(spec), "hosts_file": str(spec.hosts_file), "labels": dict(spec.labels)}


def spec_from_json(data: Mapping[str, Any]) -> SandboxSpec:
    return SandboxSpec(**{**data, "hosts_file": Path(data["hosts_file"])})


def _fields(record: DataclassInstance) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _process_as_json(process: ProcessSpec) -> dict[str, Any]:
    mounts = [
        {**_fields(mount), "source": None if mount.source is None else str(mount.source)} for mount in process.mounts
    ]
    return {
        **_fields(process),
        "argv": list(process.argv),
        "env": dict(process.env),
        "log_file": str(process.log_file),
        "mounts": mounts,
        "hidden": [str(path) for path in process.hidden],
    }


class ShimClient:
    """Implements `interface.Sandbox`."""

    def __init__(
        self, sock: socket.socket, folder: Path, *, on_gone: Callable[[ShimClient], None] = lambda _: None
    ) -> None:
        self._folder = folder
        self._isolated = False
        self._on_gone = on_gone
        self._spec: SandboxSpec | None = None
        self.shim_pid = 0
        self._pids: dict[str, int] = {}
        self._states: dict[str, ProcessState] = {}
        self._exit_futures: dict[str, asyncio.Future[Exited]] = {}
        self._exec_futures: dict[int, asyncio.Future[int]] = {}
        self._hello: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_closed = False
        self._rpc = RpcConnection(wire.Channel(sock), on_message=self._on_message, on_closed=self._on_closed)

    async def handshake(self) -> None:
        """Until the shim has identified itself. SandboxFailed where it could not start."""
        await self._hello

    @property
    def spec(self) -> SandboxSpec:
        assert self._spec is not None, "the shim is not connected"
        return self._spec

    @property
    def id(self) -> str:
        """Also before the shim has identified itself."""
        return self._folder.name

    @property
    def is_lost(self) -> bool:
        return not self._rpc.is_open and not self._is_closed

    # -- messages from the shim

    def _on_message(self, message: dict[str, Any], _: list[int]) -> None:
        match message.get("event"):
            case "hello":
                self._spec = spec_from_json(message["spec"])
                self.shim_pid = message["keeper"]
                self._isolated = message["isolated"]
                for process, data in message["processes"].items():
                    self._update_state(process, data)
                if not self._hello.done():
                    self._hello.set_result(None)
            case "failed" if not self._hello.done():
                self._hello.set_exception(SandboxFailed(Message("Sandbox.NotMade", {"error": message["message"]})))
                self._hello.exception()  # retrieved: the caller may have given up by now
            case "state":
                self._update_state(message["process"], message)
            case "executed":
                # A short command may be over before its caller has read the answer.
                ended = self._exec_future(message["execution"])
                if not ended.done():
                    ended.set_result(message["code"])

    def _exec_future(self, number: int) -> asyncio.Future[int]:
        if number not in self._exec_futures:
            self._exec_futures[number] = asyncio.get_running_loop().create_future()
        return self._exec_futures[number]

    def _update_state(self, process: str, data: Mapping[str, Any]) -> None:
        state = self._states[process] = state_of(process, data)
        ended = self._exit_futures.get(process)
        if state.exited is not None and ended is not None and not ended.done():
            ended.set_result(state.exited)

    def _on_closed(self) -> None:
        lost = ShimLost()
        pending = self._pop_pending() if self._hello.done() else [self._hello, *self._pop_pending()]
        for future in pending:
            future.set_exception(lost)
            future.exception()  # retrieved: there may be no waiter
        record = shim_journal.read(str(self._folder))
        if record is not None:
            kill_leftovers(record)
        self._on_gone(self)

    def _pop_pending(self) -> list[asyncio.Future[Any]]:
        """The futures not resolved yet; no longer held here."""
        futures: list[asyncio.Future[Any]] = [*self._exit_futures.values(), *self._exec_futures.values()]
        self._exit_futures.clear()
        self._exec_futures.clear()
        return [future for future in futures if not future.done()]

    async def _call(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        try:
            return await self._rpc.call(message)
        except wire.Closed as error:
            raise ShimLost() from error

    # -- processes

    async def start(self, process: ProcessSpec) -> Started | Exited:
        known = self._states.get(process.id)
        if known is None:
            answer, _ = await self._call({"do": "start", "process": _process_as_json(process)})
            known = state_of(process.id, answer)
        result = known.started or known.exited
        assert result is not None, "a shim answers a start once its result is known"
        return result

    def processes(self) -> Mapping[str, ProcessState]:
        return dict(self._states)

    async def wait(self, process: str) -> Exited:
        known = self._states.get(process)
        if known is not None and known.exited is not None:
            return known.exited
        if not self._rpc.is_open:
            raise ShimLost()
        ended = self._exit_futures.get(process)
        if ended is None:
            ended = self._exit_futures[process] = asyncio.get_running_loop().create_future()
        return await result_of(ended)

    async def signal(self, process: str, signal: signals.Signals) -> None:
        await self._call({"do": "signal", "process": process, "signal": int(signal)})

    async def execute(
        self, process: str, argv: tuple[str, ...], *, env: Mapping[str, str] | None = None, tty: bool = False
    ) -> ExecHandle:
        message = {"do": "execute", "process": process, "argv": list(argv), "env": dict(env or {}), "tty": tty}
        answer, fds = await self._call(message)
        if "error" in answer:
            raise (OSError if answer.get("is_running") else ProcessLookupError)(answer["error"])
        number = answer["execution"]
        ended = self._exec_future(number)
        ended.add_done_callback(lambda _: self._exec_futures.pop(number, None))

        async def kill() -> None:
            await self._call({"do": "kill_execution", "execution": number})

        return ExecHandle(fds, ended=ended, kill=kill)

    def usage(self) -> Mapping[str, tuple[float, int]]:
        orphans = [(pid, seen) for pid in proctree.children(self.shim_pid) if (seen := proctree.stat(pid)) is not None]
        used = {}
        for process, state in self._states.items():
            if state.started is None or state.exited is not None:
                continue
            main = state.started.pid
            mark = f"{self.spec.id}/{process}"
            roots = [pid for pid, seen in orphans if seen.session == main or proctree.mark(pid) == mark]
            members = [seen for pid in proctree.descendants([main, *roots]) if (seen := proctree.stat(pid)) is not None]
            used[process] = (sum(one.cpu_seconds for one in members), sum(one.resident_bytes for one in members))
        return used

    # -- network

    async def dial(self, host: str, port: int, *, timeout: float) -> socket.socket:
        async with asyncio.timeout(timeout):
            last: OSError = ConnectionRefusedError(f"{host}:{port}")
            for address in self._addresses(host):
                sock = await self._socket(address)
                try:
                    await asyncio.get_running_loop().sock_connect(sock, (address, port))
                except OSError as error:
                    sock.close()
                    last = error
                except BaseException:
                    sock.close()
                    raise
                else:
                    return sock
            raise last

    def _addresses(self, host: str) -> list[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass
        if host == "localhost":
            # On the machine's own network a pod's programs may listen at the pod's address only.
            return ["127.0.0.1"] if self._has_own_network or not self.spec.ip else [self.spec.ip, "127.0.0.1"]
        found = look_up_host(str(self.spec.hosts_file), host)
        if found is None:
            raise OSError(f"{host} is not in the hosts file of the pod")
        return [found]

    @property
    def _has_own_network(self) -> bool:
        return self._isolated and bool(self.spec.ip)

    async def _socket(self, address: str) -> socket.socket:
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        if self._has_own_network:
            _, fds = await self._call({"do": "socket", "family": int(kind)})
            sock = socket.socket(fileno=fds[0])
        else:
            sock = socket.socket(kind, socket.SOCK_STREAM)
        sock.setblocking(False)
        return sock

    async def namespaces(self) -> list[int]:
        """Descriptors of the network process's namespaces, which every shim keeps open."""
        _, fds = await self._call({"do": "namespaces"})
        return fds

    # -- the end

    async def close(self) -> None:
        if self._is_closed:
            return
        try:
            await self._rpc.call({"do": "close"})
        except wire.Closed:
            record = shim_journal.read(str(self._folder))
            if record is not None:
                await wait_gone(kill_leftovers(record))
        self.disconnect()
        remove_folder(self._folder)
        self._on_gone(self)

    def disconnect(self) -> None:
        """Close the connection; the shim continues.
        Pending calls are cancelled without an exit status, because the process did not exit."""
        self._is_closed = True
        self._rpc.close()
        self._hello.cancel()
        for future in self._pop_pending():
            future.cancel()


def remove_folder(path: Path) -> None:
    """With all that is in it, as far as that is possible. Most folders of pods hold a few files and nothing else.

    What is removed is named within the folder that was opened: a link that replaces a folder by then is removed itself,
    and nothing of what it leads to.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _empty_folder(folder)
        finally:
            os.close(folder)
        os.rmdir(path)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def _empty_folder(folder: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.name, dir_fd=folder)
            else:
                os.unlink(entry.name, dir_fd=folder)


def kill_leftovers(record: shim_journal.Record) -> list[int]:
    """What outlived its shim; none after a reboot, when the pids on record mean nothing."""
    if not record.is_of_this_boot:
        return []
    sessions = {
        started["pid"]: started["start"]
        for data in record.processes.values()
        if (started := data["started"]) and started["start"]  # else it was over before it was seen
    }
    return proctree.kill_leftovers(record.spec["id"], sessions)


async def wait_gone(pids: list[int]) -> None:
    """Until these processes, which need not be children, have ended."""
    loop = asyncio.get_running_loop()
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = asyncio.Event()
        loop.add_reader(fd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)


def remove_cgroups(place: Mapping[str, Any] | None, cluster: str, sandbox: str) -> None:
    if place is not None:
        cgroups.remove_pod(cgroups.CgroupRoot(**place), cluster, sandbox)
