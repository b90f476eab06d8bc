"""HTTP/1.1 over one connection, as an asyncio protocol: a request, its whole response, the next request."""

from __future__ import annotations

import asyncio
import gzip
import select
import socket
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httptools

_PROBE_SECONDS, _PROBES = 15, 3  # of a silent connection: a machine that vanished is noticed within a minute


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]  # by names in small letters
    body: bytes


class Http1Connection(asyncio.Protocol):
    """One connection. `ssl_context` is what it was made with."""

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self.ssl_context = ssl_context
        self.idle_since = 0.0
        self.has_received = False  # anything since the last request
        self.is_open = False
        self._response: asyncio.Future[Response] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._reset()

    def _reset(self) -> None:
        self._has_head = False
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    async def send(self, data: bytes) -> Response:
        """Raises OSError where the connection breaks before the response has ended."""
        response: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._response = response
        self.has_received = False
        self._transport.write(data)
        try:
            return await response
        except BaseException:  # a response may still be on its way, which is not read
            self.end()
            raise
        finally:
            self._response = None
            self._reset()  # an idle connection holds no body in memory

    def is_reusable(self) -> bool:
        """Whether nothing was received since the last response, and nothing of the last request is left to send.

        Anything received is the connection's end, even if asyncio has not reported it yet.
        """
        return self.is_open and self._socket.fileno() != -1 and self._poll.poll(0) == self._idle_events

    def end(self) -> None:
        if self.is_open:
            self.is_open = False
            self._transport.abort()

    # asyncio callbacks

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.is_open = True
        self._socket = transport.get_extra_info("socket")
        self._poll = select.poll()
        self._poll.register(self._socket.fileno(), select.POLLIN | select.POLLOUT)
        self._idle_events = [(self._socket.fileno(), select.POLLOUT)]

    def data_received(self, data: bytes) -> None:
        self.has_received = True
        if self._is_unexpected:
            self.end()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            self._fail(ConnectionAbortedError(f"what came is no HTTP: {problem}"))

    def eof_received(self) -> None:
        if self._has_head and not self._headers.keys() & {"content-length", "transfer-encoding"}:
            self._succeed()  # without a length the body ends with the connection
        self._fail(_closed())

    def connection_lost(self, problem: Exception | None) -> None:
        self._fail(problem if isinstance(problem, OSError) else _closed())

    # What the parser finds

    def on_message_begin(self) -> None:
        if self._is_unexpected:
            self.end()  # two responses to one request
        self._reset()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # what follows the head are trailers, which are ignored
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, piece: bytes) -> None:
        self._body.append(piece)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._has_head = False  # an interim response such as 100 Continue: the final one follows
            return
        if not self._parser.should_keep_alive() or self._transport.get_write_buffer_size():
            self.end()  # the server closes it, or the rest of this request would delay the next
        self._succeed()

    @property
    def _is_unexpected(self) -> bool:
        return self._response is None or self._response.done()

    def _succeed(self) -> None:
        if self._response is None or self._response.done():
            return
        body = b"".join(self._body)
        try:
            body = gzip.decompress(body) if self._headers.get("content-encoding", "").lower() == "gzip" else body
        except (OSError, EOFError, zlib.error) as problem:
            self._fail(ConnectionAbortedError(f"what came cannot be unpacked: {problem}"))
            return
        self._response.set_result(Response(self._parser.get_status_code(), self._headers, body))

    def _fail(self, problem: OSError) -> None:
        self.end()
        self.is_open = False
        if self._response is not None and not self._response.done():
            self._response.set_exception(problem)


def _closed() -> ConnectionError:
    return ConnectionResetError("the server closed the connection")


def keepalive_socket(address: Any) -> socket.socket:
    """A socket on which the kernel probes a silent peer (TCP keepalive)."""
    family, kind, protocol, _, _ = address
    sock = socket.socket(family=family, type=kind, proto=protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
