"""The way out of an isolated network that needs no root and no tool: a proxy in the machine's own network.

The fabric has no route to the outside, but a unix socket crosses network namespaces. For each connection the
fabric hands one end of a socket pair to this process, which stayed outside, and which either serves it as an
HTTP proxy (`http`), connects it to an address of the machine's network (`dial`), or answers a question to a
name server (`name`). As a proxy it honours the proxy variables of the environment it was started in, as any
program of the caller would.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from shoal.node.sandbox import linux, nameserver, proxying, wire
from shoal.node.sandbox.conversing import Conversation
from shoal.node.sandbox.relaying import Connection, relay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONNECTED = b"+"
_LOCAL = ("localhost", "ip6-localhost")


def main(fd: int, fabric: int) -> None:
    linux.set_title("shoal-doorway")
    linux.die_with_parent(fabric)
    asyncio.run(_serve(fd))


async def _serve(fd: int) -> None:
    gone = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    def take(message: dict[str, Any], fds: list[int]) -> None:
        task = asyncio.create_task(_pass_on(message, fds[0]))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    Conversation(wire.Channel(socket.socket(fileno=fd)), on_message=take, on_closed=gone.set)
    await gone.wait()


async def _pass_on(message: dict[str, Any], fd: int) -> None:
    sock = socket.socket(fileno=fd)
    client = await asyncio.open_connection(sock=sock, limit=proxying.MOST_HEAD_BYTES)
    if message["mode"] == "name":
        await _answer_name(client)
        return
    try:
        if message["mode"] == "dial":
            server = await asyncio.open_connection(message["host"], message["port"])
            client[1].write(CONNECTED)
        else:
            server = await _proxy(client)
    except proxying.BadRequest as error:
        await _refuse(client, 400, "Bad Request", str(error))
    except OSError as error:
        if message["mode"] == "dial":
            client[1].close()
        else:
            await _refuse(client, 502, "Bad Gateway", f"the way out of the cluster: {error}")
    else:
        await relay(client, server)


async def _answer_name(client: Connection) -> None:
    """One question, one answer; no answer where the machine's name servers have none."""
    try:
        client[1].write(await nameserver.ask(await client[0].read(), machines_resolv_conf()))
        await client[1].drain()
    except OSError:
        return
    finally:
        client[1].close()


def machines_resolv_conf() -> str:
    try:
        with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


async def _refuse(client: Connection, status: int, reason: str, text: str) -> None:
    client[1].write(proxying.refusal(status, reason, text))
    client[1].close()
    try:
        await client[1].wait_closed()
    except OSError:
        return


async def _proxy(client: Connection) -> Connection:
    """Read a request, connect to where it goes (by another proxy where the environment says so), hand it on."""
    request = proxying.parse(await proxying.read_head(client[0]))
    if request.host in _LOCAL or request.host.startswith("127.") or request.host == "::1":
        raise proxying.BadRequest(
            f"{request.host} is the pod itself and is not reached by way of the proxy: add it to no_proxy"
        )
    upstream = upstream_for("https" if request.is_tunnel else "http", request.host, request.port)
    if upstream is None:
        server = await asyncio.open_connection(request.host, request.port)
        if request.is_tunnel:
            client[1].write(proxying.ESTABLISHED)
        else:
            server[1].write(request.for_server())
        return server
    server = await upstream.connect()
    server[1].write(upstream.head(request))
    return server


class Upstream:
    """A proxy of the machine's own network."""

    def __init__(self, url: str) -> None:
        split = urlsplit(url if "://" in url else f"http://{url}")
        self._is_secure = split.scheme == "https"
        self._host = split.hostname or ""
        self._port = split.port or (443 if self._is_secure else 80)
        secret = f"{unquote(split.username or '')}:{unquote(split.password or '')}" if split.username else ""
        self._secret = base64.b64encode(secret.encode()).decode() if secret else ""

    async def connect(self) -> Connection:
        context = ssl.create_default_context() if self._is_secure else None
        return await asyncio.open_connection(self._host, self._port, ssl=context)

    def head(self, request: proxying.Request) -> bytes:
        known = [("Proxy-Authorization", f"Basic {self._secret}")] if self._secret else []
        if not request.is_tunnel:
            return request.for_proxy(*known)
        host = f"[{request.host}]" if ":" in request.host else request.host
        lines = [f"CONNECT {host}:{request.port} HTTP/1.1", f"Host: {host}:{request.port}"]
        lines += [f"{name}: {value}" for name, value in known]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def upstream_for(scheme: str, host: str, port: int) -> Upstream | None:
    proxies = getproxies_environment()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or proxy_bypass(f"{host}:{port}", proxies):
        return None
    return Upstream(url)


def start(fabric: int, *, closing: list[int]) -> socket.socket:
    """Fork the doorway; the socket is the fabric's end. `closing`: descriptors that are the fabric's alone. The
    caller must have a single thread and no loop yet."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            ours.close()
            for fd in closing:
                os.close(fd)
            main(theirs.detach(), fabric)
        finally:
            os._exit(0)
    theirs.close()
    return ours
