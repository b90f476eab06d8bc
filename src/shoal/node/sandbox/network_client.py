"""The agent's hold on the fabric: found from an earlier life, started where there is none, replaced when it dies.

The agent keeps descriptors of the fabric's namespaces, gives them to every new keeper, and can so put a new
fabric process into the same network under running pods. After a restart with the fabric dead, any keeper
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

from shoal.node.sandbox import messages, network_process, shim
from shoal.node.sandbox.egress_inside import PROXY_PORT
from shoal.node.sandbox.interface import KeeperLost
from shoal.node.sandbox.rpc import Conversation
from shoal.node.sandbox.shim_client import KeptSandbox, SandboxFailed, until_gone
from shoal.node.sandbox.zygote_client import Zygote

_log = logging.getLogger(__name__)

PING_SECONDS = 10.0  # between two questions whether the network process still answers
ANSWER_SECONDS = 30.0  # after which it is replaced

Services = Mapping[tuple[str, int], tuple[tuple[str, int], ...]]


class FabricLink:
    """One fabric, whichever process it is just now."""

    def __init__(self, zygote: Zygote, folder: Path, config: Mapping[str, Any]) -> None:
        self._zygote = zygote
        self._folder = folder
        self._config = dict(config)
        self._talk: Conversation | None = None
        self._hello: asyncio.Future[None] | None = None
        self.pid = 0
        self.is_isolated = False
        self.is_open = False  # whether any TCP connection of a pod finds its way out
        self.namespaces: list[int] = []
        self._services: Services = {}
        self._pods: dict[str, str] = {}
        self._repair: asyncio.Task[None] | None = None
        self._pinging: asyncio.Task[None] | None = None

    @property
    def proxy_url(self) -> str:
        return f"http://{self._config['gateway']}:{PROXY_PORT}"

    async def find(self) -> None:
        """The fabric of an earlier life, or a new one."""
        try:
            await self._meet(messages.connect(str(self._folder), network_process.SOCKET))
        except (OSError, SandboxFailed):  # none, or one that was just about to end
            if self._config["isolated"]:
                self.namespaces = await self._namespaces_of_a_keeper()
            await self._begin()

    async def _namespaces_of_a_keeper(self) -> list[int]:
        """Where a fabric died before its pods: the network they are in. None where there are no pods either."""
        for path in sorted(self._folder.glob(f"*/{shim.SOCKET}")):
            try:
                sandbox = KeptSandbox(messages.connect(str(path.parent), shim.SOCKET), path.parent)
            except OSError:
                continue
            try:
                await sandbox.meet()
                namespaces = await sandbox.namespaces()
            except KeeperLost:
                continue
            sandbox.leave()
            if namespaces:
                return namespaces
        return []

    async def ready(self) -> None:
        """Until there is a fabric; SandboxFailed where there is none to be had now. A replacement that failed is
        tried again by whoever needs it next, and they know when that is."""
        if self._repair is not None and self._repair.done():
            self._begin_repair()
        if self._repair is not None:
            await asyncio.shield(self._repair)

    async def _begin(self) -> None:
        ours = await self._ask_zygote()
        await self._meet(ours)

    async def _ask_zygote(self) -> socket.socket:
        """Have a fabric forked; our end of the conversation with it."""
        for attempt in (1, 2):
            ours, theirs = socket.socketpair()
            fds = [theirs.detach(), *(os.dup(fd) for fd in self.namespaces)]
            try:
                await self._zygote.send({"do": "weave", "config": self._config}, fds)
            except messages.Closed as closed:
                ours.close()
                if attempt == 2:
                    raise SandboxFailed("the process that forks the pods' network died twice") from closed
            else:
                return ours
        raise AssertionError("unreachable: the second attempt returns or raises")

    async def _ping(self) -> None:
        """Ask at intervals: a process that hangs closes no socket, so no event reports it, and pods would be without
        Services and the way out."""
        while True:
            await asyncio.sleep(PING_SECONDS)
            with suppress(messages.Closed):
                await self._ask({"do": "ping"})

    async def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer of the network process. One that does not answer in time is killed, and so replaced: Closed."""
        talk, pid = self._talk, self.pid
        assert talk is not None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer, _ = await talk.ask(message)
        except TimeoutError:
            _log.warning("the pods' network did not answer for %.0f s and is replaced", ANSWER_SECONDS)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise messages.Closed("the network process did not answer") from None
        return answer

    async def _meet(self, sock: socket.socket) -> None:
        self._hello = asyncio.get_running_loop().create_future()
        self._talk = Conversation(messages.Channel(sock), on_message=self._hear, on_closed=self._lose)
        await self._hello
        if self._pinging is None:
            self._pinging = asyncio.get_running_loop().create_task(self._ping())

    def _hear(self, message: dict[str, Any], fds: list[int]) -> None:
        assert self._hello is not None
        if message.get("event") == "hello":
            messages.close_all(self.namespaces)
            self.namespaces = fds
            self.pid = message["pid"]
            self.is_isolated = message["isolated"]
            self.is_open = message["is_open"]
            if not self._hello.done():
                self._hello.set_result(None)
        elif message.get("event") == "failed" and not self._hello.done():
            self._hello.set_exception(SandboxFailed(f"the pods' network could not be made: {message['message']}"))

    def _lose(self) -> None:
        assert self._hello is not None
        if not self._hello.done():
            self._hello.set_exception(SandboxFailed("the process that holds the pods' network died at its start"))
        elif not self._hello.cancelled() and self._hello.exception() is None:
            self._begin_repair()

    def _begin_repair(self) -> None:
        self._repair = asyncio.get_running_loop().create_task(self._begin_again())
        self._repair.add_done_callback(_note_failure)

    async def _begin_again(self) -> None:
        await self._begin()
        self._repair = None
        self.tell_pods(self._pods)
        await self.serve(self._services)

    def tell_pods(self, pods: Mapping[str, str]) -> None:
        """Which pods there are, by address, and where their hosts files lie."""
        self._pods = dict(pods)
        self._tell({"do": "pods", "pods": self._pods})

    def tell_pod(self, address: str, hosts_file: str) -> None:
        self._pods[address] = hosts_file
        self._tell({"do": "pod", "pod": address, "hosts_file": hosts_file})

    def forget_pod(self, address: str) -> None:
        self._pods.pop(address, None)
        self._tell({"do": "pod", "pod": address, "hosts_file": None})

    def _tell(self, message: dict[str, Any]) -> None:
        if self._talk is not None and self._talk.is_open:
            with suppress(messages.Closed):  # its successor will be told
                self._talk.send(message)

    async def serve(self, services: Services) -> list[str]:
        self._services = dict(services)
        await self.ready()
        table = [[host, port, [list(end) for end in ends]] for (host, port), ends in services.items()]
        try:
            answer = await self._ask({"do": "serve", "table": table})
        except messages.Closed:
            return []  # its successor is being started and will be told
        refused: list[str] = answer["refused"]
        return refused

    async def kill(self, *, replace: bool = True) -> None:
        """End the fabric's process, not its network; another takes over unless told otherwise."""
        if not replace and self._talk is not None:
            self._talk.close()
        os.kill(self.pid, signal.SIGKILL)
        await until_gone([self.pid])

    async def leave(self, *, wait: bool) -> None:
        """`wait`: no pod is left, so the fabric ends too; until it has."""
        for task in (self._repair, self._pinging):
            if task is not None:
                task.cancel()
        if self._talk is not None:
            self._talk.close()
        messages.close_all(self.namespaces)
        self.namespaces = []
        if wait and self.pid:
            await until_gone([self.pid])


def _note_failure(repair: asyncio.Task[None]) -> None:
    if not repair.cancelled() and (failure := repair.exception()) is not None:
        _log.warning("the pods' network was not replaced: %s", failure)
