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
from shoal.logs import Logger

log = Logger(__name__)

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
        self._session = Session(receive, send, self._on_stream, self._on_reset)
        self._unpaired: dict[str, dict[str, Stream]] = {}  # by request id, then by type
        self._connections: dict[Stream, asyncio.Task[None]] = {}  # by the stream of the bytes

    async def run(self) -> None:
        try:
            await self._session.run()
        except ProtocolError as wrong:
            log.warning("a client that forwards ports was disconnected", error=str(wrong))
        except OSError:
            pass  # it is gone
        finally:
            tasks = list(self._connections.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._session.close()

    def _on_stream(self, stream: Stream) -> None:
        request = stream.headers.get("requestid", "")
        pair = self._unpaired.setdefault(request, {})
        pair[stream.headers.get("streamtype", "")] = stream
        if {"data", "error"} <= pair.keys():
            del self._unpaired[request]
            task = asyncio.create_task(self._forward(pair["data"], pair["error"]))
            self._connections[pair["data"]] = task
            task.add_done_callback(lambda _: self._connections.pop(pair["data"], None))

    def _on_reset(self, stream: Stream) -> None:
        """The client has given the connection up: the pod's side is closed, too."""
        if (task := self._connections.get(stream)) is not None:
            task.cancel()
        request = stream.headers.get("requestid", "")
        pair = self._unpaired.get(request, {})
        if stream in pair.values():
            self._unpaired[request] = {kind: each for kind, each in pair.items() if each is not stream}
            if not self._unpaired[request]:
                del self._unpaired[request]

    async def _forward(self, data: Stream, error: Stream) -> None:
        port = data.headers.get("port", "")
        with suppress(OSError):  # of a client that is gone
            try:
                if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
                    raise OSError(f"{port[:20]!r} is not a port")
                reader, writer = await self._dial(int(port))
            except OSError as failed:
                reason = os.strerror(failed.errno) if failed.errno else str(failed)
                await error.write(f"port {port[:20]} of the pod: {reason}".encode())
            else:
                try:
                    await _exchange(data, reader, writer)
                finally:
                    writer.close()
        for stream in (data, error):
            with suppress(OSError):
                await stream.close()


async def _exchange(data: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Both directions. The program's end is the end; the client's only closes what the program reads."""

    async def from_client() -> None:
        async for chunk in data.received.read():
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
