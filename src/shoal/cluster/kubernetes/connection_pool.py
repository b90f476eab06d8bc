"""Pooled HTTP/1.1 connections for requests whose response is read whole, which nearly all are.

A general HTTP client spends several times as long on a small request as its bytes need, and an operator makes a dozen
of them per job. Here is only what every request to an API server has in common: HTTP/1.1, one request at a time per
connection, the response read to its end. Proxies, streams and websockets are left to the general client.
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

from shoal.cluster.kubeconfig import RequestCredentials
from shoal.cluster.kubernetes.api_request import ApiRequest
from shoal.cluster.kubernetes.http1 import Http1Connection, Response, keepalive_socket

IDLE_SECONDS = 45  # of idle connections; API servers keep them for 90
_DNS_CACHE_SECONDS = 10  # that the addresses of a name are taken to be the same
_NEXT_ADDRESS_SECONDS = 0.25  # until the next address of a name is tried beside the first
_has_line_break = re.compile(r"[\r\n\0]").search
_is_target = re.compile(r"[!-~]+").fullmatch


class ConnectFailed(Exception):
    """Nothing was sent, because of this: no connection could be made, or nothing may be sent like that."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


class StaleConnection(ConnectionResetError):
    """A kept connection broke before any byte of a response: it was probably closed when it was used."""


class ConnectionPool:
    """With one server. Close it at the end."""

    def __init__(self, url: str, headers: Mapping[str, str], server_name: str = "") -> None:
        """`headers` go with every request."""
        base = URL(url)
        self._secure = base.scheme == "https"
        self._host, self._port = base.raw_host or "", base.port
        self._prefix = base.raw_path.rstrip("/")
        self._server_name = (server_name or self._host).rstrip(".")
        self._headers = {"Host": base.host_port_subcomponent or "", **headers}
        self._common: tuple[RequestCredentials, bytes] | None = None  # the header lines of these credentials
        self._idle: list[Http1Connection] = []  # the one that waits for longest first
        self._trust: ssl.SSLContext | None = None
        self._closed = False
        self._addresses: asyncio.Future[list[Any]] | None = None  # as they were looked up last
        self._addresses_end = 0.0

    def close(self) -> None:
        """Connections that wait end; those in use end with their response."""
        self._closed = True
        self._drop_idle()

    async def send(self, request: ApiRequest, creds: RequestCredentials) -> Response:
        """Raises ConnectFailed, or OSError where the connection broke."""
        data = self._encode_request(request, creds)
        connection = self._idle_connection(creds.ssl_context)
        if connection is None:
            return await self._exchange(await self._connect(creds.ssl_context), data)
        try:
            return await self._exchange(connection, data)
        except OSError as error:
            if connection.has_received:
                raise
            self._drop_idle()  # they waited as it did
            raise StaleConnection(str(error)) from None

    async def _exchange(self, connection: Http1Connection, data: bytes) -> Response:
        response = await connection.send(data)
        if self._closed or connection.ssl_context is not self._trust:
            connection.end()
        elif connection.is_open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            self._drop_idle(before=connection.idle_since - IDLE_SECONDS)
        return response

    def _encode_request(self, request: ApiRequest, creds: RequestCredentials) -> bytes:
        if self._common is None or self._common[0] is not creds:
            headers = {**self._headers, **creds.headers}
            for name, value in headers.items():
                if _has_line_break(name + value):
                    message = f"the header {name!r} would be more than one line. Check the credentials"
                    raise ConnectFailed(ValueError(message))
            self._common = (creds, "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode())
        if not _is_target(request.path):
            raise ConnectFailed(ValueError(f"{request.path!r} is no address"))
        head = f"{request.method} {self._prefix}{request.path} HTTP/1.1\r\nAccept: {request.accept}\r\n"
        body = request.body
        if body is not None:
            head = f"{head}Content-Type: {request.content_type}\r\nContent-Length: {len(body)}\r\n"
        return b"%b%b\r\n%b" % (head.encode("ascii"), self._common[1], body or b"")

    def _idle_connection(self, ssl_context: ssl.SSLContext | None) -> Http1Connection | None:
        """The connection that was used last: the others may grow old."""
        if ssl_context is not self._trust:
            self._drop_idle()
            self._trust = ssl_context
        self._drop_idle(before=asyncio.get_running_loop().time() - IDLE_SECONDS)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable():
                return connection
            connection.end()
        return None

    def _drop_idle(self, *, before: float | None = None) -> None:
        while self._idle and (before is None or self._idle[0].idle_since < before):
            self._idle.pop(0).end()

    async def _connect(self, ssl_context: ssl.SSLContext | None) -> Http1Connection:
        tls_options: dict[str, Any] = (
            {"ssl": ssl_context or True, "server_hostname": self._server_name} if self._secure else {}
        )
        loop = asyncio.get_running_loop()
        try:
            # Addresses are looked up once, for all callers until the lookup expires.
            if self._addresses is None or (self._addresses.done() and self._addresses_end <= loop.time()):
                lookup = loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                self._addresses = asyncio.ensure_future(lookup)
                self._addresses_end = loop.time() + _DNS_CACHE_SECONDS
            addresses = await asyncio.shield(self._addresses)
            sock = await start_connection(
                addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, socket_factory=keepalive_socket
            )
            _, connection = await loop.create_connection(lambda: Http1Connection(ssl_context), sock=sock, **tls_options)
        except (OSError, UnicodeError) as problem:  # UnicodeError: of a host that can be no name
            self._addresses_end = 0.0
            raise ConnectFailed(problem) from None
        return connection
