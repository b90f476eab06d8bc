"""A command's streams over one websocket, for either side of it and any library that carries it.

Every binary message begins with a channel: 0 is stdin, 1 stdout, 2 stderr, 3 how it ended (a Status), 4 the size of
the terminal. Version 5 of the protocol adds 255, by which a client reports that a channel is closed, so that a program
reading stdin to its end sees that end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import msgspec

from shoal.cluster.client import ExecRequest, NodeServices, Streams
from shoal.cluster.spill_buffer import SpillBuffer
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.logs import Logger

log = Logger(__name__)

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255

ReceiveMessage = Callable[[], Awaitable[bytes | None]]  # the next message; None when the client has gone
SendMessage = Callable[[bytes], Awaitable[None]]


class ExecSession:
    """One command and its client. `wanted` names the requested streams: stdin, stdout, stderr."""

    def __init__(self, receive: ReceiveMessage, send: SendMessage, *, wanted: Collection[str], tty: bool) -> None:
        self._receive = receive
        self._send = send
        self._wanted = wanted
        self._tty = tty
        self._stdin = SpillBuffer()
        self._terminal_sizes: asyncio.Queue[tuple[int, int] | None] = asyncio.Queue()

    async def run(self, services: NodeServices, pod: Obj, request: ExecRequest) -> bool:
        """Run until the command ends or the client disconnects, whichever is first; the other is then stopped.
        Returns whether it was the command."""
        command = asyncio.ensure_future(self._execute(services, pod, request))
        receiving = asyncio.ensure_future(self._receive_all())
        try:
            await asyncio.wait({command, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if command.done():
                await self._send(bytes([ERROR]) + msgspec.json.encode(command.result()))
            return command.done()
        finally:
            for task in (command, receiving):
                task.cancel()
            await asyncio.gather(command, receiving, return_exceptions=True)
            self._stdin.close()

    async def _execute(self, services: NodeServices, pod: Obj, request: ExecRequest) -> Obj:
        streams = Streams(
            stdout=lambda data: self._output(STDOUT, "stdout", data),
            stderr=lambda data: self._output(STDERR, "stderr", data),
            stdin=self._stdin.read() if "stdin" in self._wanted else None,
            resize=_until_none(self._terminal_sizes) if self._tty else None,
        )
        try:
            return exit_status(await services.execute(pod, request, streams))
        except ApiError as refused:
            return refused.status()
        except Exception:
            log.exception("a command in a pod failed", pod=pod["metadata"]["name"])
            return ApiError(500, "InternalError", "Internal error occurred: the command could not be run").status()

    async def _output(self, channel: int, name: str, data: bytes) -> None:
        if data and name in self._wanted:
            await self._send(bytes([channel]) + data)

    async def _receive_all(self) -> None:
        while (message := await self._receive()) is not None:
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel == STDIN and data:
                await self._stdin.put(data)
            elif channel == CLOSE and data[:1] == bytes([STDIN]):
                self._stdin.end()
            elif channel == RESIZE and (size := decode_terminal_size(data)) is not None:
                await self._terminal_sizes.put(size)


async def _until_none(queue: asyncio.Queue[Any]) -> AsyncIterator[Any]:
    while (item := await queue.get()) is not None:
        yield item


def decode_terminal_size(data: bytes) -> tuple[int, int] | None:
    """(columns, rows); anything that is not a size is ignored, as a terminal would."""
    try:
        found = msgspec.json.decode(data)
        return int(found["Width"]), int(found["Height"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        return None


def exit_status(code: int) -> Obj:
    """How a command ended, in the form that clients expect."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
