"""External names for isolated pods: a name server at the bridge's address that forwards queries.

Pods see a resolv.conf that points here (the machine's own may name an address that means nothing in a pod, such as
127.0.0.53). Queries pass through the egress process to the machine's name servers; responses are returned as they are.
The cluster's own names are in the pods' hosts files, which programs read first.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import cast

from shoal.node.sandbox.connection_limits import ConnectionLimits, LimitExceeded

PORT = 53
TIMEOUT_SECONDS = 4.0
_HEAD = struct.Struct(">HHHHHH")
_FAILED = 0x8182  # an answer, recursion wanted and to be had, server failure
_SETTINGS = ("search", "domain", "options", "sortlist")


def resolv_conf(host_conf: str, gateway: str) -> str:
    """The pods' resolv.conf: the machine's, with another name server."""
    kept = [line for line in host_conf.splitlines() if line.split(maxsplit=1)[:1] and line.split()[0] in _SETTINGS]
    return "\n".join([f"nameserver {gateway}", *kept, ""])


def servers(host_conf: str) -> list[str]:
    """The name servers of a resolv.conf."""
    lines = [line.split() for line in host_conf.splitlines()]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def failure_reply(query: bytes) -> bytes | None:
    """The answer that there will be none; None for what is no question."""
    if len(query) < _HEAD.size:
        return None
    number, _, count, *_ = _HEAD.unpack_from(query)
    end = _HEAD.size
    while count == 1 and end < len(query) and query[end]:
        end += query[end] + 1
    if count != 1 or end + 5 > len(query):
        return None
    return _HEAD.pack(number, _FAILED, 1, 0, 0, 0) + query[_HEAD.size : end + 5]


class DnsForwarder(asyncio.DatagramProtocol):
    """Answers datagrams by asking `forward_query`."""

    def __init__(self, forward_query: Callable[[bytes], Awaitable[bytes]], limits: ConnectionLimits) -> None:
        self._forward = forward_query
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        task = asyncio.create_task(self._answer(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, query: bytes, client: tuple[str, int]) -> None:
        try:
            with self._limits.connection(client[0]):
                answer: bytes | None = await self._forward(query)
        except LimitExceeded:
            return  # as a datagram that got lost: the client retries
        except OSError:
            answer = failure_reply(query)
        if answer:
            self._transport.sendto(answer, client)


class _Query(asyncio.DatagramProtocol):
    """One question to one server, from a port of its own."""

    def __init__(self, query: bytes) -> None:
        self._query = query
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.DatagramTransport, transport).sendto(self._query)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002 - asyncio's signature
        if data[:2] == self._query[:2] and not self.answer.done():
            self.answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def forward(query: bytes, host_conf: str) -> bytes:
    """The first response of the machine's name servers, queried in their order; OSError where none responds."""
    last: OSError = ConnectionRefusedError("this machine names no name server")
    for server in servers(host_conf):
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await loop.create_datagram_endpoint(lambda: _Query(query), remote_addr=(server, PORT))
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    return await protocol.answer
            finally:
                transport.close()
        except OSError as error:  # refused, unreachable, or a time-out
            last = error
    raise last
