"""Names of the outside world for isolated pods: a name server at the bridge's address that hands questions on.

Pods see a resolv.conf that points here (the machine's own may name an address that means nothing in a pod, such
as 127.0.0.53). Questions go by the doorway to the machine's name servers; the answer goes back as it came.
The cluster's own names are in the pods' hosts files, which programs ask first.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import cast

from shoal.node.sandbox.connection_limits import ConnectionLimits, TooMany

PORT = 53
SECONDS_TO_ANSWER = 4.0
_HEAD = struct.Struct(">HHHHHH")
_FAILED = 0x8182  # an answer, recursion wanted and to be had, server failure
_SETTINGS = ("search", "domain", "options", "sortlist")


def resolv_conf(machines: str, gateway: str) -> str:
    """The pods' resolv.conf: the machine's, with another name server."""
    kept = [line for line in machines.splitlines() if line.split(maxsplit=1)[:1] and line.split()[0] in _SETTINGS]
    return "\n".join([f"nameserver {gateway}", *kept, ""])


def servers(machines: str) -> list[str]:
    """The name servers of a resolv.conf."""
    lines = [line.split() for line in machines.splitlines()]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def failure(question: bytes) -> bytes | None:
    """The answer that there will be none; None for what is no question."""
    if len(question) < _HEAD.size:
        return None
    number, _, count, *_ = _HEAD.unpack_from(question)
    end = _HEAD.size
    while count == 1 and end < len(question) and question[end]:
        end += question[end] + 1
    if count != 1 or end + 5 > len(question):
        return None
    return _HEAD.pack(number, _FAILED, 1, 0, 0, 0) + question[_HEAD.size : end + 5]


class NameServer(asyncio.DatagramProtocol):
    """Answers datagrams by asking `outside`."""

    def __init__(self, outside: Callable[[bytes], Awaitable[bytes]], limits: ConnectionLimits) -> None:
        self._outside = outside
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        task = asyncio.create_task(self._answer(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, question: bytes, asker: tuple[str, int]) -> None:
        try:
            with self._limits.connection(asker[0]):
                answer: bytes | None = await self._outside(question)
        except TooMany:
            return  # as a datagram that got lost: the asker asks again
        except OSError:
            answer = failure(question)
        if answer:
            self._transport.sendto(answer, asker)


class _Question(asyncio.DatagramProtocol):
    """One question to one server, from a port of its own."""

    def __init__(self, question: bytes) -> None:
        self._question = question
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.DatagramTransport, transport).sendto(self._question)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002 - asyncio's signature
        if data[:2] == self._question[:2] and not self.answer.done():
            self.answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def ask(question: bytes, machines: str) -> bytes:
    """The first answer of the machine's name servers, asked in their order; OSError where none answers."""
    last: OSError = ConnectionRefusedError("this machine names no name server")
    for server in servers(machines):
        loop = asyncio.get_running_loop()
        try:
            transport, asked = await loop.create_datagram_endpoint(
                lambda: _Question(question), remote_addr=(server, PORT)
            )
            try:
                async with asyncio.timeout(SECONDS_TO_ANSWER):
                    return await asked.answer
            finally:
                transport.close()
        except OSError as error:  # refused, unreachable, or a time-out
            last = error
    raise last
