"""The agent's hold on its zygote: started when first needed, started again when it was killed."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import shoal
from shoal.kube.messages import Message
from shoal.node.sandbox import wire
from shoal.node.sandbox.rpc import RpcConnection
from shoal.node.sandbox.shim_client import SandboxFailed, wait_gone

# The folder at the end is for people who look at the list of processes.
# Isolated and without site packages: fast, small, and nothing of the caller's environment gets in.
_BOOTSTRAP = (
    "import sys; sys.path.append(sys.argv[1]); from shoal.node.sandbox.zygote import main; main(int(sys.argv[2]))"
)


class ZygoteFailed(SandboxFailed):
    """The zygote did not start; its own errors are on standard error."""


class Zygote:
    """A zygote and the conversation with it."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._rpc: RpcConnection | None = None
        self._starting = asyncio.Lock()
        self.allowed: Mapping[str, Any] = {}

    @property
    def pid(self) -> int:
        assert self._process is not None, "start the zygote first"
        return self._process.pid

    async def start(self) -> None:
        async with self._starting:
            if self._rpc is not None and self._rpc.is_open:
                return
            await self.stop()
            ours, theirs = socket.socketpair()
            root = str(Path(shoal.__file__).parents[1])
            command = [self._python, "-I", "-S", "-c", _BOOTSTRAP, root, str(theirs.fileno()), str(self._folder)]
            # Popen returns within a millisecond; asyncio's way would bring a watcher for a child that is never awaited.
            self._process = subprocess.Popen(  # noqa: ASYNC220
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
            theirs.close()
            hello: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()

            def on_message(message: dict[str, Any], _: list[int]) -> None:
                if message.get("event") == "hello" and not hello.done():
                    hello.set_result(message["allowed"])

            def on_closed() -> None:
                if not hello.done():
                    hello.set_exception(ZygoteFailed(Message("Sandbox.ZygoteFailed", {"python": self._python})))

            self._rpc = RpcConnection(wire.Channel(ours), on_message=on_message, on_closed=on_closed)
            self.allowed = await hello

    async def send(self, message: dict[str, Any], fds: Sequence[int]) -> None:
        """To a zygote that lives; Closed where it died just now, and the next call starts another. The descriptors
        are the zygote's from here on, also where it did not get them."""
        try:
            await self.start()
        except BaseException:
            wire.close_all(fds)
            raise
        assert self._rpc is not None
        try:
            self._rpc.send(message, fds)
        except wire.Closed:
            self._rpc.close()
            raise

    async def stop(self) -> None:
        """Shims and network process continue to run."""
        if self._rpc is not None:
            self._rpc.close()
        if self._process is not None:
            await wait_gone([self._process.pid])
            self._process.wait()
            self._process = None
