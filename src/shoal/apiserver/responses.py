"""Responses: a status, a body of bytes and how it is sent.

Objects are stored as JSON bytes, and most responses are those bytes unchanged. Everything that costs
something (indenting, YAML, gzip) happens here and only where requested.
"""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import msgspec

from shoal.kube import yaml_codec
from shoal.kube.errors import ApiError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
YAML = b"application/yaml"
TEXT = b"text/plain; charset=utf-8"

encode = msgspec.json.Encoder().encode

# Below this a body is not worth compressing (the threshold of kube-apiserver); above the second it would hold
# up the other requests for too long, so a thread does it.
_GZIP_FROM_BYTES = 128 * 1024
_THREAD_FROM_BYTES = 1024 * 1024

# What leaves at once; the next piece leaves when the connection has room. An answer that is not read costs no more.
CHUNK_BYTES = 64 * 1024
# An answer of which nothing is read for this long ends, and its connection.
STALL_SECONDS = 60.0
ABORT = "shoal.abort"  # the extension of the ASGI scope that ends the connection at once

# The limits of kube-apiserver: of all warnings together, and of each where together they are longer.
_WARNINGS_CHARACTERS = 4096
_WARNING_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class BytesResponse:
    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class ListResponse:
    """A long list that is not sent as it is stored. Its items are made while it is sent, so that an answer that is not
    read costs no more than one of them."""

    head: Any  # the fields beside the items
    field: str  # the name of the field with the items
    items: Callable[[], Iterable[bytes]]  # as JSON
    content_type: bytes = JSON
    is_indented: bool = False

    def parts(self) -> Iterator[bytes]:
        if self.content_type == YAML:
            return _list_as_yaml(self)
        return _list_as_json(self, indent=2 if self.is_indented else -1)


@dataclass(frozen=True, slots=True)
class SharedListResponse:
    """A JSON list of chunks that are shared with the store: it is never joined.
    `converted` is the same list for clients that request another form."""

    parts: tuple[bytes | memoryview, ...]
    converted: ListResponse


@dataclass(frozen=True, slots=True)
class StreamResponse:
    """A response without an end known in advance; `close` is called once the client no longer reads.

    A source that `can_fail_at_start` does so at its first chunk: the response is then the error and no stream. One that
    `has_send_timeout` ends where its reader stalls.
    """

    chunks: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None] | None]
    content_type: bytes = JSON
    can_fail_at_start: bool = False
    has_send_timeout: bool = False


def chunks_of(parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """The same bytes in pieces of at most CHUNK_BYTES; small chunks are joined, large ones are cut."""
    small: list[bytes | memoryview] = []
    size = 0
    for part in parts:
        if size + len(part) > CHUNK_BYTES and small:
            yield b"".join(small)
            small, size = [], 0
        if len(part) > CHUNK_BYTES:
            view = memoryview(part)
            for start in range(0, len(part), CHUNK_BYTES):
                yield bytes(view[start : start + CHUNK_BYTES])
            continue
        small.append(part)
        size += len(part)
    if small:
        yield b"".join(small)


class SendWithTimeout:
    """Ends a connection when one write takes longer than STALL_SECONDS."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send = send
        self._abort: Callable[[], None] = scope.get("extensions", {}).get(ABORT, lambda: None)
        self._call_later = asyncio.get_running_loop().call_later

    async def __call__(self, message: Message) -> None:
        timer = self._call_later(STALL_SECONDS, self._abort)
        try:
            await self._send(message)
        finally:
            timer.cancel()


def object_bytes_response(obj: Any, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> BytesResponse:
    return BytesResponse(encode(obj), status, headers=headers)


def error_response(error: ApiError) -> BytesResponse:
    headers: tuple[tuple[bytes, bytes], ...] = ()
    wait = (error.details or {}).get("retryAfterSeconds")
    if wait:
        headers = ((b"retry-after", str(wait).encode()),)
    if error.code == 401:
        headers += ((b"connection", b"close"),)  # an unauthenticated client keeps no connection
    return BytesResponse(encode(error.status()), error.code, headers=headers)


def warning_headers(warnings: tuple[str, ...]) -> tuple[tuple[bytes, bytes], ...]:
    """One `Warning: 299 - "..."` header each, as kubectl prints them; bounded, because clients limit headers."""
    headers = []
    for text in _bounded(warnings):
        clean = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
        headers.append((b"warning", b'299 - "%b"' % clean.encode()))
    return tuple(headers)


def _bounded(warnings: tuple[str, ...]) -> list[str]:
    """Each text once; past the limits of kube-apiserver cut short, then left out and counted."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) <= _WARNINGS_CHARACTERS:
        return texts
    cut = [text[:_WARNING_CHARACTERS] for text in texts]
    kept_count, left = 0, _WARNINGS_CHARACTERS
    while kept_count < len(cut) and len(cut[kept_count]) <= left:
        left -= len(cut[kept_count])
        kept_count += 1
    return [*cut[:kept_count], f"{len(cut) - kept_count} more warnings are not shown"] if kept_count < len(cut) else cut


def with_indent(response: BytesResponse) -> BytesResponse:
    """For people: ?pretty, curl and browsers."""
    if response.content_type != JSON or not response.body:
        return response
    return BytesResponse(msgspec.json.format(response.body, indent=2) + b"\n", response.status, JSON, response.headers)


def as_yaml(response: BytesResponse) -> BytesResponse:
    if response.content_type != JSON or not response.body:
        return response
    return BytesResponse(
        yaml_codec.encode(msgspec.json.decode(response.body)).encode(), response.status, YAML, response.headers
    )


def _list_as_json(response: ListResponse, *, indent: int) -> Iterator[bytes]:
    is_indented = indent > 0
    head = msgspec.json.format(encode(response.head), indent=indent)
    opening = b',\n  "%b": [\n    ' if is_indented else b',"%b":['
    yield head.removesuffix(b"}").removesuffix(b"\n") + opening % response.field.encode()
    for position, item in enumerate(response.items()):
        if position:
            yield b",\n    " if is_indented else b","
        # No text in JSON contains a line break as it is.
        yield msgspec.json.format(item, indent=indent).replace(b"\n", b"\n    ") if is_indented else item
    yield b"\n  ]\n}\n" if is_indented else b"]}\n"


def _list_as_yaml(response: ListResponse) -> Iterator[bytes]:
    """Fields in alphabetical order, as in other answers."""
    before = {name: value for name, value in response.head.items() if name < response.field}
    after = {name: value for name, value in response.head.items() if name > response.field}
    yield (yaml_codec.encode(before) if before else "").encode() + b"%b:\n" % response.field.encode()
    for item in response.items():
        yield yaml_codec.encode([msgspec.json.decode(item)]).encode()
    yield yaml_codec.encode(after).encode() if after else b""


async def write(
    response: BytesResponse, send: Send, request_headers: Mapping[bytes, bytes], *, without_body: bool = False
) -> None:
    headers: Headers = [(b"date", _date()), (b"content-type", response.content_type), *response.headers]
    # JSON ends with a line break, as the encoder of kube-apiserver writes it.
    body = response.body + b"\n" if response.content_type == JSON and response.body[-1:] == b"}" else response.body
    if len(body) >= _GZIP_FROM_BYTES and b"gzip" in request_headers.get(b"accept-encoding", b""):
        is_long = len(body) >= _THREAD_FROM_BYTES
        body = await asyncio.to_thread(gzip.compress, body, 1) if is_long else gzip.compress(body, 1)
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if without_body or len(body) <= CHUNK_BYTES:
        await send({"type": "http.response.body", "body": b"" if without_body else body})
        return
    await _send_pieces(chunks_of((body,)), send)


async def write_long(
    response: SharedListResponse, send: Send, request_headers: Mapping[bytes, bytes], *, without_body: bool = False
) -> None:
    headers: Headers = [(b"date", _date()), (b"content-type", JSON)]
    size = sum(map(len, response.parts)) + 1
    bodies = chunks_of((*response.parts, b"\n"))
    if size >= _GZIP_FROM_BYTES and b"gzip" in request_headers.get(b"accept-encoding", b""):
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        bodies = _compressed_pieces(bodies)
    else:
        headers.append((b"content-length", b"%d" % size))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if without_body:
        await send({"type": "http.response.body", "body": b""})
        return
    await _send_pieces(bodies, send)


async def write_shaped(
    response: ListResponse, send: Send, request_headers: Mapping[bytes, bytes], *, without_body: bool = False
) -> None:
    headers: Headers = [(b"date", _date()), (b"content-type", response.content_type)]
    bodies = chunks_of(response.parts())
    if b"gzip" in request_headers.get(b"accept-encoding", b""):
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        bodies = _compressed_pieces(bodies)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if without_body:
        await send({"type": "http.response.body", "body": b""})
        return
    await _send_pieces(bodies, send)


async def _send_pieces(bodies: Iterator[bytes], send: Send) -> None:
    for body in bodies:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await asyncio.sleep(0)  # other requests have their turn
    await send({"type": "http.response.body", "body": b""})


def _compressed_pieces(bodies: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=31)  # level 1, as kube-apiserver; 31 bits: with the header of gzip
    for body in bodies:
        if packed := packer.compress(body):
            yield packed
    yield packer.flush()


async def write_stream(stream: StreamResponse, receive: Receive, send: Send) -> None:
    """Send chunk after chunk until the source ends or the client disconnects, whichever is first."""
    headers: Headers = [(b"date", _date()), (b"content-type", stream.content_type), (b"cache-control", b"no-cache")]
    disconnected = asyncio.ensure_future(_disconnected(receive))
    pumping = asyncio.ensure_future(_pump(stream, headers, send))
    try:
        await asyncio.wait({disconnected, pumping}, return_when=asyncio.FIRST_COMPLETED)
        if pumping.done():
            await pumping
    finally:
        for task in (disconnected, pumping):
            task.cancel()
        await asyncio.gather(disconnected, pumping, return_exceptions=True)
        await _closed(stream)


async def head_of(stream: StreamResponse) -> BytesResponse:
    """The response without a body for a stream, for HEAD."""
    await _closed(stream)
    return BytesResponse(b"", content_type=stream.content_type)


async def _closed(stream: StreamResponse) -> None:
    closing = stream.close()
    if closing is not None:
        await closing


async def _pump(stream: StreamResponse, headers: Headers, send: Send) -> None:
    first = b""
    head: Message = {"type": "http.response.start", "status": 200, "headers": headers}
    if stream.can_fail_at_start:
        try:
            first = await anext(stream.chunks, b"")
        except ApiError as error:
            await write(error_response(error), send, {})
            return
        except asyncio.CancelledError:
            # A server that stops before then has rejected nothing: the log of a silent pod begins, and is cut.
            await send(head)
            raise
    await send(head)
    # Even an empty body message makes the headers leave now: a watcher may wait long for its first event.
    await send({"type": "http.response.body", "body": first, "more_body": True})
    async for chunk in stream.chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


_date_now = (0, b"")


def _date() -> bytes:
    """The Date header, made once per second."""
    global _date_now
    second = int(time.time())
    if _date_now[0] != second:
        _date_now = (second, formatdate(second, usegmt=True).encode())
    return _date_now[1]
