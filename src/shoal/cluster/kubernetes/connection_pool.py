"""Questions and their whole answers over kept connections: the way that nearly all requests take.

A general HTTP client spends several times as long on a small request as its bytes need, and an operator makes a dozen
of them per job. Here is only what every question to an API server has in common: HTTP/1.1, one question at a time per
connection, the answer read to its end. Proxies, streams and conversations are left to the general client.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from aiohappyeyeballs import start_connection
from yarl import URL

from shoal.cluster.kubeconfig import Shown
from shoal.cluster.kubernetes.http1 import Answer, Http1, probed_socket
from shoal.cluster.kubernetes.request import Request

KEPT_SECONDS = 45  # of idle connections; API servers keep them for 90
_NAMES_SECONDS = 10  # that the addresses of a name are taken to be the same
_NEXT_ADDRESS_SECONDS = 0.25  # until the next address of a name is tried beside the first
_has_a_break = re.compile(r"[\r\n\0]").search
_is_target = re.compile(r"[!-~]+").fullmatch


class NoWay(Exception):
    """Nothing was sent, because of this: no connection could be made, or nothing may be sent like that."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Unheard(ConnectionResetError):
    """A connection that had waited broke before anything was heard: it was probably over when it was used."""


class Exchange:
    """With one server. Close it at the end."""

    def __init__(self, url: str, headers: Mapping[str, str], server_name: str = "") -> None:
        """`headers` go with every question."""
        where = URL(url)
        self._secure = where.scheme == "https"
        self._host, self._port = where.raw_host or "", where.port
        self._prefix = where.raw_path.rstrip("/")
        self._server_name = (server_name or self._host).rstrip(".")
        self._headers = {"Host": where.host_port_subcomponent or "", **headers}
        self._common: tuple[Shown, bytes] | None = None  # the lines of headers that go with what is shown
        self._idle: list[Http1] = []  # the one that waits for longest first
        self._trust: ssl.SSLContext | None = None
        self._closed = False
        self._addresses: asyncio.Future[list[Any]] | None = None  # as they were looked up last
        self._addresses_end = 0.0

    def close(self) -> None:
        """Connections that wait end; those in use end with their answer."""
        self._closed = True
        self._drop_idle()

    async def ask(self, request: Request, shown: Shown) -> Answer:
        """Raises NoWay, or OSError where it broke."""
        question = self._question(request, shown)
        kept = self._kept(shown.trust)
        if kept is None:
            return await self._over(await self._connected(shown.trust), question)
        try:
            return await self._over(kept, question)
        except OSError as broke:
            if kept.has_heard:
                raise
            self._drop_idle()  # they waited as it did
            raise Unheard(str(broke)) from None

    async def _over(self, connection: Http1, question: bytes) -> Answer:
        answer = await connection.ask(question)
        if self._closed or connection.trust is not self._trust:
            connection.end()
        elif connection.is_open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            self._drop_idle(before=connection.idle_since - KEPT_SECONDS)
        return answer

    def _question(self, request: Request, shown: Shown) -> bytes:
        if self._common is None or self._common[0] is not shown:
            self._common = (shown, _lines({**self._headers, **shown.headers}))
        if not _is_target(request.path):
            raise NoWay(ValueError(f"{request.path!r} is no address"))
        head = f"{request.method} {self._prefix}{request.path} HTTP/1.1\r\nAccept: {request.accept}\r\n"
        body = request.body
        if body is not None:
            head = f"{head}Content-Type: {request.content_type}\r\nContent-Length: {len(body)}\r\n"
        return b"%b%b\r\n%b" % (head.encode("ascii"), self._common[1], body or b"")

    def _kept(self, trust: ssl.SSLContext | None) -> Http1 | None:
        """The connection that was used last: the others may grow old."""
        if trust is not self._trust:
            self._drop_idle()
            self._trust = trust
        self._drop_idle(before=asyncio.get_running_loop().time() - KEPT_SECONDS)
        while self._idle:
            found = self._idle.pop()
            if found.is_quiet():
                return found
            found.end()
        return None

    def _drop_idle(self, *, before: float | None = None) -> None:
        while self._idle and (before is None or self._idle[0].idle_since < before):
            self._idle.pop(0).end()

    async def _connected(self, trust: ssl.SSLContext | None) -> Http1:
        secured: dict[str, Any] = {"ssl": trust or True, "server_hostname": self._server_name} if self._secure else {}
        try:
            made = await start_connection(
                await self._found(), happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, socket_factory=probed_socket
            )
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Http1(trust), sock=made, **secured
            )
        except (OSError, UnicodeError) as problem:  # UnicodeError: of a host that can be no name
            self._addresses_end = 0.0
            raise NoWay(problem) from None
        return connection

    async def _found(self) -> list[Any]:
        """Where the server is: looked up once, however many ask meanwhile or soon after."""
        loop = asyncio.get_running_loop()
        if self._addresses is None or (self._addresses.done() and self._addresses_end <= loop.time()):
            looking = loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            self._addresses = asyncio.ensure_future(looking)
            self._addresses_end = loop.time() + _NAMES_SECONDS
        return await asyncio.shield(self._addresses)


def _lines(headers: Mapping[str, str]) -> bytes:
    for name, value in headers.items():
        if _has_a_break(name + value):
            raise NoWay(ValueError(f"the header {name!r} would be more than one line. Check the credentials"))
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
