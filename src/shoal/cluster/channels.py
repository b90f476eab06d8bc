"""A command's streams over one websocket, whichever side of it and whichever library carries it.

Every binary message begins with a channel: 0 is stdin, 1 stdout, 2 stderr, 3 how it ended (a Status), 4 the size of
the terminal. Version 5 of the protocol adds 255, by which a client says that a channel is closed, so that a program
reading stdin to its end sees that end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import msgspec

from shoal.cluster.port import ExecRequest, NodeServices, Streams
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.logs import Logger

log = Logger(__name__)

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, ENDING, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
# What is held of stdin for a command that does not read. While the client has to wait nobody listens to it, and its
# leaving is heard of only when the command writes or ends: so it is more than any person types.
UNREAD_BYTES = 1 << 20

Hear = Callable[[], Awaitable[bytes | None]]  # the next message; None when the client has gone
Say = Callable[[bytes], Awaitable[None]]


class Session:
    """One command and its client. `wanted` names the streams asked for: stdin, stdout, stderr."""

    def __init__(self, hear: Hear, say: Say, *, wanted: Collection[str], tty: bool) -> None:
        self._hear = hear
        self._say = say
        self._wanted = wanted
        self._tty = tty
        self._stdin = _Input()
        self._sizes: asyncio.Queue[tuple[int, int] | None] = asyncio.Queue()

    async def run(self, services: NodeServices, pod: Obj, request: ExecRequest) -> bool:
        """Until the command ends or the client goes away, whichever is first; the other is then stopped. Whether it
        was the command."""
        command = asyncio.ensure_future(self._execute(services, pod, request))
        listening = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait({command, listening}, return_when=asyncio.FIRST_COMPLETED)
            if command.done():
                await self._say(bytes([ENDING]) + msgspec.json.encode(command.result()))
            return command.done()
        finally:
            for task in (command, listening):
                task.cancel()
            await asyncio.gather(command, listening, return_exceptions=True)

    async def _execute(self, services: NodeServices, pod: Obj, request: ExecRequest) -> Obj:
        try:
            return ending(await services.execute(pod, request, self._streams()))
        except ApiError as refused:
            return refused.status()
        except Exception:
            log.exception("a command in a pod failed", pod=pod["metadata"]["name"])
            return ApiError(500, "InternalError", "Internal error occurred: the command could not be run").status()

    def _streams(self) -> Streams:
        return Streams(
            stdout=lambda data: self._output(STDOUT, "stdout", data),
            stderr=lambda data: self._output(STDERR, "stderr", data),
            stdin=self._stdin.read() if "stdin" in self._wanted else None,
            resize=_until_none(self._sizes) if self._tty else None,
        )

    async def _output(self, channel: int, name: str, data: bytes) -> None:
        if data and name in self._wanted:
            await self._say(bytes([channel]) + data)

    async def _listen(self) -> None:
        while (message := await self._hear()) is not None:
            if message:
                await self._take(message[0], message[1:])

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data:
            await self._stdin.put(data)
        elif channel == CLOSE and data[:1] == bytes([STDIN]):
            await self._stdin.put(b"")
        elif channel == RESIZE and (size := size_of(data)) is not None:
            await self._sizes.put(size)


class _Input:
    """What the client wrote and the command has not read yet; an empty piece is its end."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._unread_bytes = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def put(self, data: bytes) -> None:
        await self._has_room.wait()
        self._pieces.put_nowait(data)
        self._count(len(data))

    async def read(self) -> AsyncIterator[bytes]:
        while data := await self._pieces.get():
            self._count(-len(data))
            yield data

    def _count(self, change: int) -> None:
        self._unread_bytes += change
        if self._unread_bytes < UNREAD_BYTES:
            self._has_room.set()
        else:
            self._has_room.clear()


async def _until_none(queue: asyncio.Queue[Any]) -> AsyncIterator[Any]:
    while (item := await queue.get()) is not None:
        yield item


def size_of(data: bytes) -> tuple[int, int] | None:
    """(columns, rows); anything that is not a size is ignored, as a terminal would."""
    try:
        found = msgspec.json.decode(data)
        return int(found["Width"]), int(found["Height"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        return None


def ending(code: int) -> Obj:
    """How a command ended, as clients expect to be told."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
