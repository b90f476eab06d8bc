"""Ports of a pod over one SPDY connection, as `kubectl port-forward` opens it.

For every connection to a forwarded port the client opens two streams with the same request id: one for the bytes, one
on which it is told what went wrong.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from shoal.cluster.spdy import ProtocolError, Session, Stream

PROTOCOL = "portforward.k8s.io"
SPDY = "SPDY/3.1"
TUNNEL = f"{SPDY}+{PROTOCOL}"  # the subprotocol of a websocket that carries SPDY
CHUNK_BYTES = 1 << 15

Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class PortForward:
    """The forwarded ports of one client, until its connection ends."""

    def __init__(
        self, receive: Callable[[], Awaitable[bytes]], send: Callable[[bytes], Awaitable[None]], dial: Dial
    ) -> None:
        """`dial` connects to a port of the pod; what it raises as OSError is reported to the client."""
        self._dial = dial
        self._session = Session(receive, send, self._opened)
        self._waiting: dict[str, dict[str, Stream]] = {}  # by request id, then by type
        self._connections: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        try:
            with suppress(ProtocolError, ConnectionError):
                await self._session.run()
        finally:
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def _opened(self, stream: Stream) -> None:
        pair = self._waiting.setdefault(stream.headers.get("requestid", ""), {})
        pair[stream.headers.get("streamtype", "")] = stream
        if {"data", "error"} <= pair.keys():
            del self._waiting[stream.headers.get("requestid", "")]
            task = asyncio.create_task(self._forward(pair["data"], pair["error"]))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _forward(self, data: Stream, error: Stream) -> None:
        port = data.headers.get("port", "")
        try:
            if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
                raise OSError(f"{port!r} is not a port")
            reader, writer = await self._dial(int(port))
            try:
                await _exchange(data, reader, writer)
            finally:
                writer.close()
        except OSError as failed:
            reason = os.strerror(failed.errno) if failed.errno else str(failed)
            with suppress(ConnectionError):
                await error.write(f"port {port} of the pod: {reason}".encode())
        finally:
            with suppress(ConnectionError):
                await data.close()
                await error.close()
            for stream in (data, error):
                self._session.forget(stream)


async def _exchange(data: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Both directions. The program's end is the end; the client's only closes what the program reads."""

    async def from_client() -> None:
        async for chunk in data.read():
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    sending = asyncio.create_task(from_client())
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            await data.write(chunk)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
