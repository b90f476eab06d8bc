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
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from shoal.apiserver.app import Application

# Longer than the 90 s after which Go clients drop an idle connection: the side that closes first must be the
# client, else a request may meet a connection that is just being closed.
_KEEP_ALIVE_SECONDS = 120
_DRAIN_SECONDS = 5.0
_BACKLOG = 1024


class ServingRefused(Exception):
    """The server will not listen there; the message says why and what to do."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise ServingRefused(f"cannot use the certificate {certificate} with the key {key}: {problem}") from problem
    return context


class Server:
    """`await start()`, then `url` says where; `await stop()` ends every connection."""

    def __init__(
        self, app: Application, host: str = "127.0.0.1", port: int = 0, *, ssl: ssl.SSLContext | None = None
    ) -> None:
        check_address(host, encrypted=ssl is not None)
        self._app = app
        self._host = host
        self._port = port
        self._ssl = ssl
        self._state = ServerState()
        self._listener: asyncio.Server | None = None

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

        def connection() -> asyncio.Protocol:
            protocol: Any = config.http_protocol_class
            made: asyncio.Protocol = protocol(config=config, server_state=self._state, app_state={}, _loop=loop)
            return made

        try:
            self._listener = await loop.create_server(
                connection, self._host, self._port, ssl=self._ssl, backlog=_BACKLOG, reuse_address=True
            )
        except OSError as problem:
            raise ServingRefused(_why_not(self._host, self._port, problem)) from problem
        self._port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Take no more requests, end streams, let what is being answered finish, then close."""
        if self._listener is None:
            return
        self._listener.close()
        self._app.end_streams()
        for protocol in list(self._state.connections):
            protocol.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_DRAIN_SECONDS)
        for protocol in list(self._state.connections):
            transport = getattr(protocol, "transport", None)
            if transport is not None:
                transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)
        self._listener = None


def _why_not(host: str, port: int, problem: OSError) -> str:
    """asyncio puts sentences of its own around the kernel's; the number is what tells."""
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
    raise ServingRefused(
        f"{host} can be reached from other machines, and without TLS everybody on the way could read the token. "
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
        raise ServingRefused(f"{host} is no address of this machine: {problem.strerror}") from problem
    return bool(host) and all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
