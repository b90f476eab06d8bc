"""Forwarded ports, with a scripted client: programs that end early, clients that vanish, streams without a partner."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cluster.test_spdy_is_read_within_limits import Client, control, data
from shoal.cluster.port_forward import PortForward
from shoal.cluster.spdy import FIN, FrameType


class Conversation:
    """A client that sends what it is told to, and what it was answered."""

    def __init__(self) -> None:
        self.client = Client()
        self._sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.answered = bytearray()
        self.is_gone = False
        self._news = asyncio.Event()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self._sent.put_nowait(part)

    def connect(self, number: int, port: str = "80", request: str = "0") -> None:
        for offset, kind in enumerate(("error", "data")):
            self.send(self.client.opens(number + 2 * offset, streamtype=kind, port=port, requestid=request))

    async def receive(self) -> bytes:
        return await self._sent.get()

    async def write(self, part: bytes) -> None:
        if self.is_gone:
            raise OSError("the client has gone")
        self.answered.extend(part)
        self._news.set()

    async def until(self, wanted: bytes) -> None:
        """Until this is part of the answer."""
        async with asyncio.timeout(60):
            while wanted not in self.answered:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def program(serve: Any) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def forward(talk: Conversation, port: int) -> asyncio.Task[None]:
    async def dial(_: int) -> Any:
        return await asyncio.open_connection("127.0.0.1", port)

    return asyncio.create_task(PortForward(talk.receive, talk.write, dial).run())


async def test_a_program_that_ends_early_holds_up_no_other_connection() -> None:
    over = asyncio.Event()

    async def ends(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """It reads nothing."""
        writer.write(b"bye")
        writer.write_eof()
        await over.wait()
        writer.close()

    talk = Conversation()
    async with program(ends) as port:
        session = forward(talk, port)
        talk.connect(1)
        talk.send(*(data(3, b"x" * 1000) for _ in range(500)))
        await talk.until(b"bye")
        talk.send(*(data(3, b"x" * 1000) for _ in range(500)), control(FrameType.PING, struct.pack(">I", 77)))
        await talk.until(struct.pack(">I", 77))
        talk.send(b"")
        await session
        over.set()


async def test_a_client_that_vanishes_ends_the_connections_of_its_ports() -> None:
    ended = asyncio.Event()

    async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(5))
        await reader.read()
        writer.close()
        ended.set()

    talk = Conversation()
    async with program(waits) as port:
        session = forward(talk, port)
        talk.connect(1)
        talk.send(data(3, b"hello"))
        await talk.until(b"hello")
        talk.is_gone = True
        talk.send(b"")
        await asyncio.wait_for(session, 60)
        await asyncio.wait_for(ended.wait(), 60)


async def test_a_reset_ends_the_connection_to_the_program() -> None:
    ended = asyncio.Event()

    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready")
        await reader.read()
        ended.set()
        writer.close()

    talk = Conversation()
    async with program(talks) as port:
        session = forward(talk, port)
        talk.connect(1)
        await talk.until(b"ready")
        talk.send(control(FrameType.RST_STREAM, struct.pack(">II", 3, 5)))
        await asyncio.wait_for(ended.wait(), 60)
        talk.send(b"")
        await session


@pytest.mark.parametrize("port", ["", "http", "0", "65536", "9" * 5000])
async def test_a_port_that_is_none_is_reported(port: str) -> None:
    talk = Conversation()
    session = forward(talk, 1)
    talk.connect(1, port=port)
    await talk.until(b"is not a port")
    talk.send(b"")
    await session


async def test_streams_without_a_partner_are_not_kept() -> None:
    talk = Conversation()
    forwarding = PortForward(talk.receive, talk.write, lambda _: asyncio.open_connection("127.0.0.1", 1))
    session = asyncio.create_task(forwarding.run())
    for number in range(1, 2001, 2):
        opened = talk.client.opens(number, streamtype="data", requestid=str(number), flags=FIN)
        talk.send(opened, control(FrameType.RST_STREAM, struct.pack(">II", number, 5)))
    talk.send(b"")
    await session
    assert forwarding._unpaired == {}
