"""Bytes that one side wrote and the other has not read yet."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import AsyncIterator
from tempfile import TemporaryFile
from typing import IO

from shoal.logs import Logger

log = Logger(__name__)

# A client that has to wait is not read from, and its disconnect is noticed only when the other side writes or ends: so
# the file holds more than people send to a program that forgot to read.
MEMORY_BYTES = 1 << 20
SPILLED_BYTES = 1 << 30
CHUNK_BYTES = 1 << 16


class SpillBuffer:
    """The first of it in memory, more in a file without a name. Writers have to wait only if that is full, too."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._held_bytes = 0  # in memory
        self._file: IO[bytes] | None = None
        self._written = self._read = 0  # so far, in the file
        self._is_ended = False
        self._is_closed = False
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()

    async def put(self, data: bytes) -> None:
        while not self._try_put(data):
            self._has_room.clear()
            await self._has_room.wait()
        self._changed.set()

    def end(self) -> None:
        """Nothing more is put."""
        self._is_ended = True
        self._changed.set()

    async def read(self) -> AsyncIterator[bytes]:
        while True:
            self._changed.clear()
            if data := self._pop():
                self._has_room.set()
                yield data
            elif self._is_ended or self._is_closed:
                return
            else:
                await self._changed.wait()

    def close(self) -> None:
        """The reader is gone: what it did not read is of no use, and nobody waits for it."""
        self._is_closed = True
        self._chunks.clear()
        if self._file is not None:
            self._file.close()
        self._has_room.set()
        self._changed.set()

    def _try_put(self, data: bytes) -> bool:
        if self._is_closed:
            return True
        if self._held_bytes < MEMORY_BYTES and self._read == self._written:
            self._chunks.append(data)
            self._held_bytes += len(data)
            return True
        if self._written - self._read >= SPILLED_BYTES:
            return False
        try:
            # Unbuffered: what a full disk refused must not come back at the next seek.
            self._file = self._file or TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the buffer
            self._file.seek(self._written)
            if self._file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as full:
            log.warning("no room for what a client sends: it has to wait", error=str(full))
            return False
        self._written += len(data)
        return True

    def _pop(self) -> bytes:
        if self._chunks:
            data = self._chunks.popleft()
            self._held_bytes -= len(data)
            return data
        if self._file is None or self._is_closed or self._read == self._written:
            return b""
        self._file.seek(self._read)
        data = self._file.read(min(CHUNK_BYTES, self._written - self._read))
        self._read += len(data)
        if self._read == self._written:
            self._file.truncate(0)
            self._read = self._written = 0
        return data
