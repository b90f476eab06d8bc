"""Bytes between two connections, with half-closes carried over.

A client that has sent everything waits for the response, so the server must receive the end too."""

from __future__ import annotations

import asyncio
import socket
import struct

CHUNK = 1 << 18

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def relay(one: Connection, other: Connection) -> None:
    """Until both directions have ended. An error on either side ends both at once, as a reset."""
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(one[0], other[1]))
            tasks.create_task(_copy(other[0], one[1]))
    except* OSError:
        abort(one)
        abort(other)
    finally:
        one[1].close()
        other[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def abort(connection: Connection) -> None:
    """Close with a reset, so that the other side does not take what it has for all there is."""
    # A linger time of 0 makes the kernel send RST instead of FIN.
    connection[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection[1].transport.abort()
