"""An HTTP server that does what a test tells it, down to the byte: slow heads, cut streams, refusals in a row.

Each request is answered by the next step of the script; a step is a coroutine that gets the request and the stream.
When the script is over, requests wait for ever. Everything the server received is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


Step = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


class Hangup(Exception):
    """The step wants the connection closed."""


@dataclass
class ScriptedServer:
    url: str = ""
    received: list[Received] = field(default_factory=list)
    arrived: asyncio.Queue[Received] = field(default_factory=asyncio.Queue)
    _script: Iterator[Step] = field(default_factory=lambda: iter(()))

    def plays(self, *steps: Step) -> None:
        self._script = iter(steps)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, Hangup, ssl.SSLError):
            while True:
                request = await _read(reader)
                self.received.append(request)
                self.arrived.put_nowait(request)
                step = next(self._script, silence)
                await step(request, writer)
                await writer.drain()
        writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Received(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@asynccontextmanager
async def scripted(*steps: Step, ssl_context: ssl.SSLContext | None = None) -> AsyncGenerator[ScriptedServer, None]:
    made = ScriptedServer()
    made.plays(*steps)
    conversations: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        conversations.add(task)
        with contextlib.suppress(asyncio.CancelledError):
            await made._converse(reader, writer)
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0, ssl=ssl_context, limit=2**24)
    made.url = f"{'https' if ssl_context else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in conversations:
            task.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)


# Steps


def answer(code: int, body: Any = None, *, content_type: str = "application/json", **headers: str) -> Step:
    """One whole answer; `retry_after="1"` becomes a header."""
    content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()

    async def step(_: Received, writer: asyncio.StreamWriter) -> None:
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {code} x\r\nContent-Type: {content_type}\r\nContent-Length: {len(content)}\r\n{more}\r\n"
        writer.write(head.encode() + content)

    return step


def refusal(code: int, reason: str, message: str = "no", *, details: Any = None, **headers: str) -> Step:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return answer(code, {**status, "code": code, **({"details": details} if details else {})}, **headers)


def stream(*pieces: bytes, then: Step) -> Step:
    """The head of an endless answer and these pieces as chunks; then what `then` does."""

    async def step(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        await then(request, writer)

    return step


async def end(_: Received, writer: asyncio.StreamWriter) -> None:
    """The proper end of a chunked answer."""
    writer.write(b"0\r\n\r\n")


async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
    """The connection is closed where it is."""
    raise Hangup


async def reset(_: Received, writer: asyncio.StreamWriter) -> None:
    """The connection is torn down without a word."""
    writer.transport.abort()
    raise Hangup


async def half_close(_: Received, writer: asyncio.StreamWriter) -> None:
    """We have said everything, and go on listening for ever."""
    writer.write_eof()
    await asyncio.Event().wait()


async def silence(_: Received, __: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def event(kind: str, name: str, version: int, **more: Any) -> bytes:
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": str(version), **more}}
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    more = {"annotations": {"k8s.io/initial-events-end": "true"}} if ends_list else {}
    return event("BOOKMARK", "", version, **more)
