"""Virtual addresses: the network process accepts connections to each (address, port) of the table for its pods.

A connection is passed to the next backend in turn; one that refuses is skipped. The table is replaced as a whole: what
it no longer holds stops listening, what is new in it begins, and connections already open continue. TCP only.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable

from shoal.node.sandbox import rtnetlink
from shoal.node.sandbox.connection_limits import ConnectionLimits
from shoal.node.sandbox.relay import CHUNK, Connection, abort, relay

Address = tuple[str, int]
Table = dict[Address, list[Address]]

_CONNECT_TIMEOUT_SECONDS = 10.0


class ServiceProxy:
    """The table, and a listening socket for each of its lines. `bridge` None: the addresses are there already."""

    def __init__(
        self, bridge: int | None, dial: Callable[[str, int], Awaitable[Connection]], limits: ConnectionLimits
    ) -> None:
        self._net = rtnetlink.Netlink() if bridge is not None else None
        self._bridge = bridge or 0
        self._dial = dial
        self._limits = limits
        self._table: Table = {}
        self._next_backends: dict[Address, int] = {}
        self._servers: dict[Address, asyncio.Server] = {}
        self._addresses: set[str] = set()
        self._open: Counter[str] = Counter()  # connections by address
        self._lock = asyncio.Lock()

    def has(self, ip: str) -> bool:
        return ip in self._addresses

    async def replace(self, table: Table) -> list[str]:
        """Serve this table from now on; returns a message for each line that cannot be served."""
        async with self._lock:
            self._table = table
            for gone in self._servers.keys() - table.keys():
                self._servers.pop(gone).close()
                self._next_backends.pop(gone, None)
            self._set_addresses({host for host, _ in table})
            refused = []
            for address in table.keys() - self._servers.keys():
                try:
                    self._servers[address] = await self._listen(address)
                except OSError as error:
                    refused.append(f"{address[0]}:{address[1]} cannot be served: {os.strerror(error.errno or 0)}")
            # Connections to a backend that is a virtual address itself would never end.
            loops = [
                f"{host}:{port} leads to the virtual address {end}:{end_port}; that backend is passed over"
                for (host, port), ends in table.items()
                for end, end_port in ends
                if self.has(end)
            ]
            return sorted([*refused, *loops])

    def _set_addresses(self, wanted: set[str]) -> None:
        """Have these addresses on the bridge, and those that open connections still use."""
        if self._net is not None:
            wanted = wanted | {ip for ip in self._addresses if self._open[ip]}
            for ip in self._addresses - wanted:
                self._net.delete_address(self._bridge, ip, 32)
            for ip in wanted - self._addresses:
                self._net.add_address(self._bridge, ip, 32)
        self._addresses = wanted

    async def _listen(self, address: Address) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._open[address[0]] += 1
            try:
                server = await self.connect(address)
            except OSError:
                abort((reader, writer))  # a reset: the nearest thing to the refusal of a real address
            else:
                await relay((reader, writer), server)
            finally:
                self._open[address[0]] -= 1
                if address not in self._table:
                    self._set_addresses({host for host, _ in self._table})

        return await asyncio.start_server(self._limits.limited(serve), *address, limit=CHUNK, backlog=1024)

    async def connect(self, address: Address) -> Connection:
        """A connection to the next backend that accepts one; OSError where none does."""
        backends = self._table.get(address, [])
        turn = self._next_backends.get(address, 0)
        self._next_backends[address] = turn + 1
        for step in range(len(backends)):
            host, port = backends[(turn + step) % len(backends)]
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_SECONDS):
                    return await self._dial(host, port)
            except OSError:  # TimeoutError is one
                continue
        raise ConnectionRefusedError(f"no backend of {address[0]}:{address[1]} accepts a connection")
