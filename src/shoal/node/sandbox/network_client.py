"""The agent's client of the network process: found from an earlier agent, started if missing, replaced when it dies.

The agent keeps descriptors of the network process's namespaces, gives them to every new shim, and can so put a new
network process into the same network under running pods. After a restart with the network process dead, any shim
has them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from shoal.kube.messages import Message
from shoal.node.sandbox import network_process, shim, wire
from shoal.node.sandbox.egress_inside import PROXY_PORT
from shoal.node.sandbox.interface import ShimLost
from shoal.node.sandbox.rpc import RpcConnection
from shoal.node.sandbox.shim_client import SandboxFailed, ShimClient, wait_gone
from shoal.node.sandbox.zygote_client import Zygote

_log = logging.getLogger(__name__)

PING_SECONDS = 10.0  # between two questions whether the network process still answers
ANSWER_SECONDS = 30.0  # after which it is replaced

ServiceTable = Mapping[tuple[str, int], tuple[tuple[str, int], ...]]


class NetworkClient:
    """The network process of the cluster; one that died is replaced by another."""

    def __init__(self, zygote: Zygote, folder: Path, config: Mapping[str, Any]) -> None:
        self._zygote = zygote
        self._folder = folder
        self._config = dict(config)
        self._rpc: RpcConnection | None = None
        self._hello: asyncio.Future[None] | None = None
        self.pid = 0
        self.is_isolated = False
        self.is_open = False  # whether any TCP connection of a pod finds its way out
        self.namespaces: list[int] = []
        self._services: ServiceTable = {}
        self._pods: dict[str, str] = {}
        self._repair: asyncio.Task[None] | None = None
        self._pinging: asyncio.Task[None] | None = None

    @property
    def proxy_url(self) -> str:
        return f"http://{self._config['gateway']}:{PROXY_PORT}"

    async def find(self) -> None:
        """Connect to the network process of an earlier agent, or start one."""
        try:
            await self._connect(wire.connect(str(self._folder), network_process.SOCKET))
        except (OSError, SandboxFailed):  # none, or one that was just about to end
            if self._config["isolated"]:
                self.namespaces = await self._namespaces_from_shim()
            await self._start()

    async def _namespaces_from_shim(self) -> list[int]:
        """The network of pods that outlived their network process; empty where there are no pods either."""
        for path in sorted(self._folder.glob(f"*/{shim.SOCKET}")):
            try:
                sandbox = ShimClient(wire.connect(str(path.parent), shim.SOCKET), path.parent)
            except OSError:
                continue
            try:
                await sandbox.handshake()
                namespaces = await sandbox.namespaces()
            except ShimLost:
                continue
            sandbox.disconnect()
            if namespaces:
                return namespaces
        return []

    async def ready(self) -> None:
        """Wait for a network process; SandboxFailed where none can be had now.
        A replacement that failed is tried again by the next caller that needs it; the callers have their own
        schedule."""
        if self._repair is not None and self._repair.done():
            self._start_repair()
        if self._repair is not None:
            await asyncio.shield(self._repair)

    async def _start(self) -> None:
        for attempt in (1, 2):
            ours, theirs = socket.socketpair()
            fds = [theirs.detach(), *(os.dup(fd) for fd in self.namespaces)]
            try:
                await self._zygote.send({"do": "fork_network", "config": self._config}, fds)
            except wire.Closed as closed:
                ours.close()
                if attempt == 2:
                    raise SandboxFailed(Message("Network.ForkFailed")) from closed
            else:
                await self._connect(ours)
                return

    async def _ping_forever(self) -> None:
        """Ping at intervals: a process that hangs closes no socket, so no event reports it, and pods would be without
        Services and the way out."""
        while True:
            await asyncio.sleep(PING_SECONDS)
            with suppress(wire.Closed):
                await self._call({"do": "ping"})

    async def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer of the network process. One that does not answer in time is killed, and so replaced: Closed."""
        rpc, pid = self._rpc, self.pid
        assert rpc is not None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer, _ = await rpc.call(message)
        except TimeoutError:
            _log.warning("the pods' network did not answer for %.0f s and is replaced", ANSWER_SECONDS)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise wire.Closed("the network process did not answer") from None
        return answer

    async def _connect(self, sock: socket.socket) -> None:
        self._hello = asyncio.get_running_loop().create_future()
        self._rpc = RpcConnection(wire.Channel(sock), on_message=self._on_message, on_closed=self._on_closed)
        await self._hello
        if self._pinging is None:
            self._pinging = asyncio.get_running_loop().create_task(self._ping_forever())

    def _on_message(self, message: dict[str, Any], fds: list[int]) -> None:
        assert self._hello is not None
        if message.get("event") == "hello":
            wire.close_all(self.namespaces)
            self.namespaces = fds
            self.pid = message["pid"]
            self.is_isolated = message["isolated"]
            self.is_open = message["is_open"]
            if not self._hello.done():
                self._hello.set_result(None)
        elif message.get("event") == "failed" and not self._hello.done():
            self._hello.set_exception(SandboxFailed(Message("Network.NotMade", {"error": message["message"]})))

    def _on_closed(self) -> None:
        assert self._hello is not None
        if not self._hello.done():
            self._hello.set_exception(SandboxFailed(Message("Network.Died")))
        elif not self._hello.cancelled() and self._hello.exception() is None:
            self._start_repair()

    def _start_repair(self) -> None:
        async def restart() -> None:
            await self._start()
            self._repair = None
            self.set_pods(self._pods)
            await self.serve(self._services)

        def log_failure(repair: asyncio.Task[None]) -> None:
            if not repair.cancelled() and (failure := repair.exception()) is not None:
                _log.warning("the pods' network was not replaced: %s", failure)

        self._repair = asyncio.get_running_loop().create_task(restart())
        self._repair.add_done_callback(log_failure)

    def set_pods(self, pods: Mapping[str, str]) -> None:
        """Which pods there are, by address, and where their hosts files lie."""
        self._pods = dict(pods)
        self._send({"do": "pods", "pods": self._pods})

    def add_pod(self, address: str, hosts_file: str) -> None:
        self._pods[address] = hosts_file
        self._send({"do": "pod", "pod": address, "hosts_file": hosts_file})

    def remove_pod(self, address: str) -> None:
        self._pods.pop(address, None)
        self._send({"do": "pod", "pod": address, "hosts_file": None})

    def _send(self, message: dict[str, Any]) -> None:
        if self._rpc is not None and self._rpc.is_open:
            with suppress(wire.Closed):  # its successor will get it
                self._rpc.send(message)

    async def serve(self, services: ServiceTable) -> list[str]:
        self._services = dict(services)
        await self.ready()
        table = [[host, port, [list(end) for end in ends]] for (host, port), ends in services.items()]
        try:
            answer = await self._call({"do": "serve", "table": table})
        except wire.Closed:
            return []  # its successor is being started and will get it
        refused: list[str] = answer["refused"]
        return refused

    async def kill(self, *, replace: bool = True) -> None:
        """End the network process, not its network; another takes over unless `replace` is False."""
        if not replace and self._rpc is not None:
            self._rpc.close()
        os.kill(self.pid, signal.SIGKILL)
        await wait_gone([self.pid])

    async def disconnect(self, *, wait: bool) -> None:
        """`wait`: no pod is left, so the network process ends too; return once it has."""
        for task in (self._repair, self._pinging):
            if task is not None:
                task.cancel()
        if self._rpc is not None:
            self._rpc.close()
        wire.close_all(self.namespaces)
        self.namespaces = []
        if wait and self.pid:
            await wait_gone([self.pid])
