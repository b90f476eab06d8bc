"""Commands in a container over a websocket (`kubectl exec`).

Every binary message begins with a channel: 0 is stdin, 1 stdout, 2 stderr, 3 how it ended (a Status), 4 the
size of the terminal. Version 5 of the protocol adds 255, by which a client says that a channel is closed, so
that a program reading stdin to its end sees that end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from shoal.apiserver import query, replies
from shoal.apiserver.podparts import container_of
from shoal.apiserver.query import Query
from shoal.apiserver.replies import Receive, Send
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.port import ExecRequest, NodeServices, Streams
from shoal.kube.errors import ApiError, bad_request
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj

log = logging.getLogger(__name__)

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _ENDING, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
# What is held of stdin for a command that does not read. While the client has to wait nobody listens to it, and its
# leaving is heard of only when the command writes or ends: so it is more than any person types.
_UNREAD_BYTES = 1 << 20


def choose_protocol(offered: list[str]) -> str:
    for protocol in (V5, V4):
        if protocol in offered:
            return protocol
    raise bad_request(f"none of the subprotocols offered is spoken here; offer {V5} or {V4}")


def read_request(cluster: EmbeddedCluster, key: Key, asked: Query) -> tuple[Obj, ExecRequest, NodeServices]:
    """Everything that can be refused before the connection is upgraded."""
    pod = cluster.machinery.get(POD, key).obj()
    container = container_of(pod, query.text(asked, "container"))
    command = tuple(asked.get("command", ()))
    if not command:
        raise bad_request("you must specify at least one command for the container")
    tty = query.flag(asked, "tty")
    if tty and query.flag(asked, "stderr"):
        raise bad_request("tty and stderr cannot both be true")
    if not any(query.flag(asked, name) for name in ("stdin", "stdout", "stderr")):
        raise bad_request("you must specify at least one of stdin, stdout, stderr")
    return pod, ExecRequest(container, command, tty), cluster.services_of(pod)


class Session:
    """One command and its client."""

    def __init__(self, receive: Receive, send: Send, asked: Query) -> None:
        self._receive = receive
        self._send = send
        self._asked = asked
        self._stdin = _Input()
        self._sizes: asyncio.Queue[tuple[int, int] | None] = asyncio.Queue()

    async def run(self, services: NodeServices, pod: Obj, request: ExecRequest) -> None:
        """Until the command ends or the client goes away, whichever is first; the other is then stopped."""
        command = asyncio.ensure_future(self._execute(services, pod, request))
        listening = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait({command, listening}, return_when=asyncio.FIRST_COMPLETED)
            if command.done():
                await self._channel(_ENDING, replies.encode(command.result()))
                await self._send({"type": "websocket.close", "code": 1000})
        finally:
            for task in (command, listening):
                task.cancel()
            await asyncio.gather(command, listening, return_exceptions=True)

    async def _execute(self, services: NodeServices, pod: Obj, request: ExecRequest) -> Obj:
        try:
            return _ending(await services.execute(pod, request, self._streams()))
        except ApiError as error:
            return error.status()
        except Exception:
            log.exception("exec in pod %s failed", pod["metadata"]["name"])
            return ApiError(500, "InternalError", "Internal error occurred: the command could not be run").status()

    def _streams(self) -> Streams:
        return Streams(
            stdout=lambda data: self._output(_STDOUT, "stdout", data),
            stderr=lambda data: self._output(_STDERR, "stderr", data),
            stdin=self._stdin.read() if query.flag(self._asked, "stdin") else None,
            resize=_until_none(self._sizes) if query.flag(self._asked, "tty") else None,
        )

    async def _output(self, channel: int, name: str, data: bytes) -> None:
        if data and query.flag(self._asked, name):
            await self._channel(channel, data)

    async def _channel(self, channel: int, data: bytes) -> None:
        await self._send({"type": "websocket.send", "bytes": bytes([channel]) + data})

    async def _listen(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            data: bytes = message.get("bytes") or (message.get("text") or "").encode()
            if data:
                await self._take(data[0], data[1:])

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == _STDIN and data:
            await self._stdin.put(data)
        elif channel == _CLOSE and data[:1] == bytes([_STDIN]):
            await self._stdin.put(b"")
        elif channel == _RESIZE and (size := _size(data)) is not None:
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
        if self._unread_bytes < _UNREAD_BYTES:
            self._has_room.set()
        else:
            self._has_room.clear()


async def _until_none(queue: asyncio.Queue[Any]) -> AsyncIterator[Any]:
    while (item := await queue.get()) is not None:
        yield item


def _size(data: bytes) -> tuple[int, int] | None:
    """(columns, rows); anything that is not a size is ignored, as a terminal would."""
    try:
        found = msgspec.json.decode(data)
        return int(found["Width"]), int(found["Height"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        return None


def _ending(code: int) -> Obj:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
