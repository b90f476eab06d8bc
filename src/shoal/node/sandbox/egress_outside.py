"""The way out of an isolated network that needs no root and no tool: a proxy in the machine's own network.

The network process has no route to the outside, but a unix socket crosses network namespaces. For each connection it
hands one end of a socket pair to this process, which stayed outside, and which either serves it as an
HTTP proxy (`http`), connects it to an address of the machine's network (`dial`), or answers a question to a
name server (`name`). As a proxy it honours the proxy variables of the environment it was started in, as any
program of the caller would.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import os
import socket
import ssl
from contextlib import suppress
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from shoal.node.sandbox import external_dns, http_proxy, syscalls, wire
from shoal.node.sandbox.fault_log import FaultLog, fault_of
from shoal.node.sandbox.hosts_lookup import look_up_host
from shoal.node.sandbox.relay import Connection, abort, relay
from shoal.node.sandbox.rpc import RpcConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONNECTED = b"+"
LOG = "doorway.log"
HOSTS_FILE = "/etc/hosts"
_LOCAL = ("localhost", "ip6-localhost")


def main(fd: int, parent: int, folder: str) -> None:
    syscalls.set_title("shoal-egress")
    syscalls.set_parent_death_signal(parent)
    asyncio.run(_serve(fd, FaultLog(f"{folder}/{LOG}")))


async def _serve(fd: int, faults: FaultLog) -> None:
    closed = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()
    faults.attach(asyncio.get_running_loop())

    def on_message(message: dict[str, Any], fds: list[int]) -> None:
        if message.get("do") == "ping":
            with suppress(wire.Closed):  # the network process has ended, and this one does
                parent.send({"n": message["n"]})
            return
        task = asyncio.create_task(_handle_request(message, fds[0], faults))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    parent = RpcConnection(wire.Channel(socket.socket(fileno=fd)), on_message=on_message, on_closed=closed.set)
    await closed.wait()


async def _handle_request(message: dict[str, Any], fd: int, faults: FaultLog) -> None:
    sock = socket.socket(fileno=fd)
    client = await asyncio.open_connection(sock=sock, limit=http_proxy.MAX_HEAD_BYTES)
    try:
        if message["mode"] == "name":
            try:  # one question, one answer; no answer where the machine's name servers have none
                client[1].write(await external_dns.forward(await client[0].read(), host_resolv_conf()))
                await client[1].drain()
            except OSError:
                return
            finally:
                client[1].close()
        elif message["mode"] == "http":
            await _serve_request(client)
        else:
            await _dial(client, message["host"], message["port"], may_be_local=message["mode"] == "dial")
    except Exception as error:
        faults.note(fault_of("a connection that leaves the cluster ended", error))
        abort(client)


async def _dial(client: Connection, host: str, port: int, *, may_be_local: bool) -> None:
    try:
        server = await (asyncio.open_connection(host, port) if may_be_local else _connect_outside(host, port))
    except (OSError, http_proxy.BadRequest):
        client[1].close()
        return
    client[1].write(CONNECTED)
    await relay(client, server)


async def _serve_request(client: Connection) -> None:
    try:
        server = await _proxy(client)
    except http_proxy.BadRequest as error:
        await _send_error(client, 400, "Bad Request", str(error))
    except OSError as error:
        await _send_error(client, 502, "Bad Gateway", f"the way out of the cluster: {error}")
    else:
        await relay(client, server)


def host_resolv_conf() -> str:
    try:
        with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


async def _send_error(client: Connection, status: int, reason: str, text: str) -> None:
    client[1].write(http_proxy.error_response(status, reason, text))
    client[1].close()
    try:
        await client[1].wait_closed()
    except OSError:
        return


async def _proxy(client: Connection) -> Connection:
    """Read a request, connect to its target (by another proxy where the environment requires one), forward it."""
    request = http_proxy.parse(await http_proxy.read_head(client[0]))
    if is_loopback_name(request.host):
        raise _own_address_error(request.host)
    upstream = upstream_for("https" if request.is_tunnel else "http", request.host, request.port)
    if upstream is None:
        server = await _connect_outside(request.host, request.port)
        if request.is_tunnel:
            client[1].write(http_proxy.ESTABLISHED)
        else:
            server[1].write(request.for_server())
        return server
    server = await upstream.connect()
    server[1].write(upstream.head(request))
    return server


async def _connect_outside(host: str, port: int) -> Connection:
    """A connection to the destination of a pod, which is not this machine's loopback, whatever name resolves to it."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as odd:
        raise http_proxy.BadRequest(f"not the name of a host: {host[:80]}") from odd
    outside = [entry for entry in found if not _is_local(entry[4][0])]
    if not outside:
        raise _own_address_error(host)
    last: OSError = ConnectionRefusedError(f"{host}:{port}")
    for family, kind, protocol, _, address in outside:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            last = error
        except BaseException:
            sock.close()
            raise
        else:
            return await asyncio.open_connection(sock=sock)
    raise last


def _own_address_error(host: str) -> http_proxy.BadRequest:
    return http_proxy.BadRequest(
        f"{host[:80]} is the pod itself and is not reached by way of the proxy: add it to no_proxy"
    )


def is_loopback_name(host: str) -> bool:
    """Without asking a name server: a name of the machine itself, or its loopback in any notation (127.1, 2130706433,
    ::ffff:127.0.0.1), which a proxy beyond this one would take for its own as well. That proxy may run on this machine,
    with the same hosts file."""
    name = host.lower().rstrip(".")
    if name in _LOCAL or name.endswith(".localhost"):
        return True
    try:
        address = look_up_host(HOSTS_FILE, name) or host
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return False
    return any(_is_local(str(entry[4][0])) for entry in found)


def _is_local(address: str | int) -> bool:
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_loopback or found.is_unspecified


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

    def head(self, request: http_proxy.ProxyRequest) -> bytes:
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


def start(parent: int, *, folder: str, closing: list[int]) -> socket.socket:
    """Fork the egress process; the socket is the network process's end. `closing`: descriptors that only the network
    process uses. The caller must have a single thread and no loop yet."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            ours.close()
            for fd in closing:
                os.close(fd)
            main(theirs.detach(), parent, folder)
        finally:
            os._exit(0)
    theirs.close()
    return ours
