"""The inner side of egress: accepts pods' connections to the outside and passes them to the outer side.

Where the kernel can redirect them (`netfilter`), connections to any outside address arrive here with that address on
them. Besides there is always an HTTP proxy at the bridge's address, for callers that use a proxy themselves and for
kernels that cannot redirect. Programs send a proxy everything that their own rules for `no_proxy` do not exclude, also
requests for other pods and Services. So it first checks whether a name or address is the cluster's own, as the
requesting pod itself would see it in its hosts file, and connects inside; everything else is passed to the outer side.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import struct
from collections.abc import Callable

from shoal.node.sandbox import egress_outside, external_dns, http_proxy, wire
from shoal.node.sandbox.fault_log import FaultLog
from shoal.node.sandbox.hosts_lookup import look_up_host
from shoal.node.sandbox.netfilter import SO_ORIGINAL_DST
from shoal.node.sandbox.relay import CHUNK, Connection, abort, relay
from shoal.node.sandbox.rpc import RpcConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from shoal.node.sandbox.service_proxy import ServiceProxy

PROXY_PORT = 3128
REDIRECT_PORT = 3129


class OwnAddress(ConnectionRefusedError):
    """An address at which this process itself listens: connecting to it would never end."""


class EgressProxy:
    """Connections of pods to the outside, and of the network process to backends outside of it."""

    def __init__(
        self,
        config: dict[str, Any],
        outside: socket.socket | None,
        pods: dict[str, str],
        *,
        services: Callable[[], ServiceProxy],
        faults: FaultLog,
    ) -> None:
        self._pods = pods
        self._services = services
        self._faults = faults
        self._gateway: str = config["gateway"]
        self._range = ipaddress.ip_network(f"{config['gateway']}/{config['prefix']}", strict=False)
        self._outside: RpcConnection | None = None
        if outside is not None:
            # Without egress there is no way out: the agent replaces a network process that has no egress process.
            self._outside = RpcConnection(
                wire.Channel(outside), on_message=lambda *_: None, on_closed=lambda: os._exit(1)
            )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a pod."""
        client = (reader, writer)
        try:
            head = await http_proxy.read_head(reader)
            request = http_proxy.parse(head)
            # The cluster's own address behind the name or address, as the pod itself would see it; None: outside.
            inside = request.host if self._is_inside(request.host) else None
            hosts_file = self._pods.get(writer.get_extra_info("peername")[0])
            if inside is None and hosts_file is not None:
                found = look_up_host(hosts_file, request.host)
                inside = found if found is not None and self._is_inside(found) else None
            if inside is None:
                server = await self._open_outside({"mode": "http"})
                server[1].write(head)
            else:
                services = self._services()
                if services.has(inside):
                    server = await services.connect((inside, request.port))
                else:
                    server = await self.dial(inside, request.port)
                if request.is_tunnel:
                    writer.write(http_proxy.ESTABLISHED)
                else:
                    server[1].write(request.for_server())
        except http_proxy.BadRequest as error:
            writer.write(http_proxy.error_response(400, "Bad Request", str(error)))
            writer.close()
        except OSError as error:
            writer.write(http_proxy.error_response(502, "Bad Gateway", f"inside the cluster: {error}"))
            writer.close()
        else:
            await relay(client, server)

    async def forward_redirected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection on its way out, redirected here: on to where it was going."""
        sock = writer.get_extra_info("socket")
        client = (reader, writer)
        try:
            # Fails where the connection was not redirected but made to this port itself.
            _, port, address = struct.unpack_from("!HH4s", sock.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16))
            server = await self.dial(socket.inet_ntoa(address), port, mode="leave")
        except OSError:
            abort(client)
        else:
            await relay(client, server)

    async def forward_dns_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A DNS exchange over TCP, for answers that are too long for a datagram."""
        for server in external_dns.servers(egress_outside.host_resolv_conf()):
            try:
                connection = await self.dial(server, external_dns.PORT)
            except OSError:
                continue
            await relay((reader, writer), connection)
            return
        abort((reader, writer))

    async def query_dns(self, query: bytes) -> bytes:
        """The machine's answer to a question about a name; OSError where it has none."""
        reader, writer = await self._open_outside({"mode": "name"})
        writer.write(query)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        if not answer:
            raise ConnectionRefusedError("no name server answered")
        return answer

    def _is_inside(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return address in self._range or self._services().has(host)

    async def dial(self, host: str, port: int, *, mode: str = "dial") -> Connection:
        """A backend: a pod directly, anything else from the machine's own network. `mode` "leave" is for what a pod
        chose: it does not reach the machine's loopback."""
        if host == self._gateway or self._services().has(host):
            # Without the port, which the pod chooses: each would be a fault of its own with a line of its own.
            self._faults.note(f"not connected: {host} is an address of the pods' network itself")
            raise OwnAddress(f"{host}:{port} is an address of the pods' network itself")
        if self._outside is None or self._is_inside(host):
            return await asyncio.open_connection(host, port, limit=CHUNK)
        connection = await self._open_outside({"mode": mode, "host": host, "port": port})
        if await connection[0].read(1) != egress_outside.CONNECTED:
            connection[1].close()
            raise ConnectionRefusedError(f"{host}:{port} refused the connection")
        return connection

    async def ping(self) -> None:
        """Returns once the egress process has responded, where there is one."""
        if self._outside is not None:
            await self._outside.call({"do": "ping"})

    async def _open_outside(self, message: dict[str, Any]) -> Connection:
        assert self._outside is not None
        ours, theirs = socket.socketpair()
        self._outside.send(message, [theirs.detach()])
        return await asyncio.open_connection(sock=ours, limit=CHUNK)
