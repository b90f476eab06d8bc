"""The application on a socket.

uvicorn's HTTP protocol is used without its server: that one wakes up ten times a second to see whether it should
stop, and an idle cluster should cost nothing. Here listening, stopping and ending streams are calls.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from shoal.apiserver.app import Application
from shoal.apiserver.http_limits import Acceptor, LimitedHttp, max_connections

# Longer than the 90 s after which Go clients drop an idle connection: the side that closes first must be the
# client, else a request may be sent over a closing connection.
_KEEP_ALIVE_SECONDS = 120
_DRAIN_SECONDS = 5.0
_BACKLOG = 1024


class ServerListenError(Exception):
    """The server cannot listen at that address; the message has the reason and what to do."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise ServerListenError(f"cannot use the certificate {certificate} with the key {key}: {problem}") from problem
    return context


class Server:
    """`await start()`, then `url` is the address; `await stop()` closes every connection."""

    def __init__(
        self,
        app: Application,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        ssl: ssl.SSLContext | None = None,
        most_connections: int | None = None,
    ) -> None:
        check_address(host, encrypted=ssl is not None)
        self._app = app
        self._host = host
        self._port = port
        self._ssl = ssl
        self._state = ServerState()
        self._max_connections = max_connections() if most_connections is None else most_connections
        self._acceptor: Acceptor | None = None

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._ssl else 'http'}://{host}:{self.port}"

    @property
    def port(self) -> int:
        return self._port

    async def start(self) -> None:
        config = uvicorn.Config(
            self._app,
            http="httptools",
            ws="websockets-sansio",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            ws_per_message_deflate=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            interface="asgi3",
            proxy_headers=False,
        )
        config.load()
        loop = asyncio.get_running_loop()

        def ended() -> None:
            if self._acceptor is not None:
                self._acceptor.ended()

        def connection() -> asyncio.Protocol:
            return LimitedHttp(config, self._state, {}, loop, on_end=ended)

        config.ws_protocol_class = _with_end_callback(config.ws_protocol_class, ended)
        try:
            # asyncio resolves and binds; connections are accepted by `Acceptor`, which limits them.
            bound = await loop.create_server(
                asyncio.Protocol, self._host, self._port, reuse_address=True, start_serving=False
            )
            listeners = [each.dup() for each in bound.sockets]
            bound.close()
            for listener in listeners:
                listener.setblocking(False)
                listener.listen(_BACKLOG)
        except OSError as problem:
            raise ServerListenError(_listen_error(self._host, self._port, problem)) from problem
        self._port = listeners[0].getsockname()[1]
        self._acceptor = Acceptor(listeners, connection, tls=self._ssl, limit=self._max_connections)
        self._acceptor.resume()

    async def stop(self) -> None:
        """Take no more requests, end streams, let what is being answered finish, then close."""
        if self._acceptor is None:
            return
        self._acceptor.close()
        self._app.end_streams()
        for protocol in list(self._state.connections):
            protocol.shutdown()  # closes idle connections now, and the others after their response
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_DRAIN_SECONDS)
        for protocol in list(self._state.connections):
            transport = getattr(protocol, "transport", None)
            if transport is not None:
                transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)
        self._acceptor = None


def _with_end_callback(protocol: Any, ended: Callable[[], None]) -> Any:
    """The websocket protocol, which takes over the connection of the upgrade request, with a callback at its end."""

    class Counted(protocol):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            # The application chooses: the library would reject SPDY/3.1+portforward.k8s.io for its slash.
            self.conn.process_subprotocol = lambda _: None

        def connection_lost(self, problem: Exception | None) -> None:
            super().connection_lost(problem)
            ended()

    return Counted


def _listen_error(host: str, port: int, problem: OSError) -> str:
    """Explain the error by its number, because asyncio wraps the kernel's text in text of its own."""
    if problem.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use by another program (`ss -ltnp sport = :{port}` shows which). "
            "Choose another with --port, or leave it out for any that is free."
        )
    if problem.errno == errno.EACCES:
        return f"port {port} of {host} is kept for root. Choose one above 1023 with --port."
    if problem.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine. Choose another with --bind, or leave it out for 127.0.0.1."
    return f"cannot listen on port {port} of {host}: {os.strerror(problem.errno) if problem.errno else problem}"


def check_address(host: str, *, encrypted: bool) -> None:
    """Anything but this machine's own addresses needs TLS: the token would cross the network in the clear."""
    if encrypted or is_loopback(host):
        return
    raise ServerListenError(
        f"{host} can be reached from other machines, and without TLS the token could be read on the way. "
        "Listen on 127.0.0.1, or give --tls-cert and --tls-key. A certificate for trying things out: "
        "openssl req -x509 -newkey rsa:2048 -nodes -days 365 -keyout key.pem -out cert.pem "
        f'-subj /CN=shoal -addext "subjectAltName=IP:{host if _is_address(host) else "ADDRESS"}"'
    )


def is_loopback(host: str) -> bool:
    if _is_address(host):
        return ipaddress.ip_address(host).is_loopback
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as problem:
        raise ServerListenError(f"{host} is no address of this machine: {problem.strerror}") from problem
    return bool(host) and all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
