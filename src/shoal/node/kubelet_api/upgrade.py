"""A connection of aiohttp's server that goes on as plain bytes, after `101 Switching Protocols`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

QUEUED_CHUNKS = 64  # before the connection is not read from


class UpgradedConnection:
    """What arrives after the upgrade, and where the answer goes. aiohttp calls the `feed_` methods."""

    def __init__(self, request: web.Request) -> None:
        assert request.transport is not None, "the client is there"
        self._transport = request.transport
        self._protocol: Any = request.protocol
        self._received: asyncio.Queue[bytes] = asyncio.Queue()

    @classmethod
    async def accept(cls, request: web.Request, protocol: str, headers: Mapping[str, str]) -> UpgradedConnection:
        made = cls(request)
        lines = {"Connection": "Upgrade", "Upgrade": protocol, **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        made._protocol.keep_alive(False)
        made._protocol.set_parser(made)
        await made.send(f"HTTP/1.1 101 Switching Protocols\r\n{head}\r\n".encode())
        return made

    async def receive(self) -> bytes:
        """b"" at the end."""
        data = await self._received.get()
        if self._received.qsize() < QUEUED_CHUNKS:
            self._transport.resume_reading()
        return data

    async def send(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError("the client has closed the connection")
        self._transport.write(data)
        await self._protocol._drain_helper()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._received.put_nowait(data)
        if self._received.qsize() >= QUEUED_CHUNKS:
            self._transport.pause_reading()
        return False, b""

    def feed_eof(self) -> None:
        self._received.put_nowait(b"")

    def set_exception(self, *_: object) -> None:
        self.feed_eof()
