"""A question and its whole answer over kept connections: the way that nearly all requests take.

A general HTTP client spends several times as long on a small request as its bytes need, and an operator makes a dozen
of them per job. Here is only what every question to an API server has in common: HTTP/1.1, one question at a time per
connection, the answer read to its end. Proxies, streams, conversations, and servers to which there is no way are left
to the general client, which also knows what to say about them.
"""

from __future__ import annotations

import asyncio
import re
import select
import socket
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httptools

from shoal.cluster.connecting import Shown
from shoal.cluster.kubernetes.request import Request

KEPT_SECONDS = 45  # of idle connections; API servers keep them for 90
_PROBE_SECONDS, _PROBES = 15, 3  # of a silent connection: a machine that vanished is noticed within a minute
_IDEMPOTENT = frozenset({"GET", "DELETE"})
_has_a_break = re.compile(r"[\r\n\0]").search
_GZIP = 16 + zlib.MAX_WBITS


class NoWay(Exception):
    """Nothing was sent: no connection could be made, or not with such headers."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # by names in small letters
    body: bytes


class Exchange:
    """With one server. Close it at the end."""

    def __init__(self, url: str, headers: Mapping[str, str], server_name: str = "") -> None:
        """`headers` go with every question."""
        where = urlsplit(url)
        self._secure = where.scheme == "https"
        self._host, self._port = where.hostname or "", where.port or (443 if self._secure else 80)
        self._prefix = where.path.rstrip("/")
        self._server_name = server_name or self._host
        self._headers = {"Host": where.netloc.rpartition("@")[2], **headers}
        self._common: tuple[Shown, bytes] | None = None  # the lines of headers that go with what is shown
        self._idle: list[_Kept] = []
        self._trust: ssl.SSLContext | None = None
        self._closed = False

    def close(self) -> None:
        """Connections that wait end; those in use end with their answer."""
        self._closed = True
        self._drop_idle()

    async def ask(self, request: Request, shown: Shown) -> Answer:
        """Raises NoWay, or OSError where it broke.

        A connection may have ended while it waited, unnoticed: a question that is the same twice as once is asked once
        more then, over a new one.
        """
        question = self._question(request, shown)
        kept = self._kept(shown.trust)
        if kept is not None:
            try:
                return await self._over(kept, question)
            except OSError:
                if request.method not in _IDEMPOTENT or kept.has_heard:
                    raise
        return await self._over(await self._connected(shown.trust), question)

    async def _over(self, connection: _Kept, question: bytes) -> Answer:
        answer = await connection.ask(question)
        if self._closed or connection.trust is not self._trust:
            connection.end()
        elif connection.is_open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        return answer

    def _question(self, request: Request, shown: Shown) -> bytes:
        if self._common is None or self._common[0] is not shown:
            self._common = (shown, _lines({**self._headers, **shown.headers}))
        first, body = (
            f"{request.method} {self._prefix}{request.path} HTTP/1.1\r\nAccept: {request.accept}\r\n",
            request.body,
        )
        if body is not None:
            first = f"{first}Content-Type: {request.content_type}\r\nContent-Length: {len(body)}\r\n"
        return b"%b%b\r\n%b" % (first.encode("ascii"), self._common[1], body or b"")

    def _kept(self, trust: ssl.SSLContext | None) -> _Kept | None:
        """The connection that was used last: the others may grow old."""
        if trust is not self._trust:
            self._drop_idle()
            self._trust = trust
        oldest = asyncio.get_running_loop().time() - KEPT_SECONDS
        while self._idle:
            found = self._idle.pop()
            if found.idle_since > oldest and found.is_quiet():
                return found
            found.end()
        return None

    async def _connected(self, trust: ssl.SSLContext | None) -> _Kept:
        secured: dict[str, Any] = {"ssl": trust or True, "server_hostname": self._server_name} if self._secure else {}
        try:
            _, made = await asyncio.get_running_loop().create_connection(
                lambda: _Kept(trust), self._host, self._port, **secured
            )
        except (OSError, ValueError) as problem:  # ValueError: an address or a name that can be none
            raise NoWay(str(problem)) from None
        return made

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().end()


class _Kept(asyncio.Protocol):
    """One connection: a question, its answer, the next question."""

    def __init__(self, trust: ssl.SSLContext | None) -> None:
        self.trust = trust
        self.idle_since = 0.0
        self.has_heard = False  # anything since the last question
        self.is_open = False
        self._answered: asyncio.Future[Answer] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._has_head = False
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    async def ask(self, question: bytes) -> Answer:
        if not self.is_open:
            raise _closed()
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answered = answered
        self.has_heard = False
        self._begin_anew()
        self._transport.write(question)
        try:
            return await answered
        except BaseException:  # an answer may still be on its way, which nobody will read
            self.end()
            raise
        finally:
            self._answered = None

    def is_quiet(self) -> bool:
        """Whether nothing came since the last answer: whatever did is its end, even if asyncio has not told it yet."""
        return self.is_open and not self._looked_at.poll(0)

    def end(self) -> None:
        if self.is_open:
            self.is_open = False
            self._transport.abort()

    # What asyncio tells

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.is_open = True
        made = transport.get_extra_info("socket")
        make_probed(made)
        self._looked_at = select.poll()
        self._looked_at.register(made.fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        self.has_heard = True
        if self._answered is None or self._answered.done():
            self.end()  # nothing was asked
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            self._fail(ConnectionAbortedError(f"what came is no HTTP: {problem}"))

    def eof_received(self) -> None:
        if self._has_head and not self._headers.keys() & {"content-length", "transfer-encoding"}:
            self._succeed()  # its head did not say how long it is: it ends where the connection does
        self._fail(_closed())

    def connection_lost(self, problem: Exception | None) -> None:
        self._fail(problem if isinstance(problem, OSError) else _closed())

    # What the parser finds

    def on_message_begin(self) -> None:
        if self._answered is None or self._answered.done():
            self.end()  # two answers to one question
        self._begin_anew()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, piece: bytes) -> None:
        self._body.append(piece)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._has_head = False  # a word in between, such as 100 Continue: the answer follows
            return
        if not self._parser.should_keep_alive():
            self.end()
        self._succeed()

    def _succeed(self) -> None:
        if self._answered is None or self._answered.done():
            return
        body = b"".join(self._body)
        try:
            body = zlib.decompress(body, _GZIP) if self._headers.get("content-encoding") == "gzip" else body
        except zlib.error as problem:
            self._fail(ConnectionAbortedError(f"what came cannot be unpacked: {problem}"))
            return
        self._answered.set_result(Answer(self._parser.get_status_code(), self._headers, body))

    def _fail(self, problem: Exception) -> None:
        self.end()
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(problem)


def _closed() -> ConnectionError:
    return ConnectionResetError("the server closed the connection")


def _lines(headers: Mapping[str, str]) -> bytes:
    if any(_has_a_break(name + value) for name, value in headers.items()):
        raise NoWay("a header of more than one line")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("utf-8")


def make_probed(made: socket.socket) -> None:
    """Have the kernel ask a silent other side whether it is still there."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
