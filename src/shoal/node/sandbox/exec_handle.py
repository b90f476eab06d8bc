"""A command beside a pod's process, seen from the agent: its streams are the agent's own descriptors."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

_CHUNK = 1 << 16

T = TypeVar("T")


async def result_of(ended: asyncio.Future[T]) -> T:
    """Wait for a shared future; a cancelled waiter does not end it.
    (A shield would do, but it makes a future for every waiter, and a loop that stops before they have read it logs an
    error.)"""
    await asyncio.wait((ended,))
    return ended.result()


class ExecHandle:
    """Implements `interface.Execution`. `kill` is sent to the shim; `ended` resolves by the shim's message."""

    def __init__(self, fds: list[int], *, ended: asyncio.Future[int], kill: Callable[[], Awaitable[None]]) -> None:
        self._is_terminal = len(fds) == 1
        self._stdin: int | None = fds[0]
        self._outputs = {fds[0]: 1} if self._is_terminal else {fds[1]: 1, fds[2]: 2}
        for fd in fds:
            os.set_blocking(fd, False)
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self._kill = kill

    async def write(self, data: bytes) -> None:
        """All of it, or as much as the command was willing to read before it closed its input."""
        view = memoryview(data)
        while view and self._stdin is not None:
            try:
                view = view[os.write(self._stdin, view) :]
            except BlockingIOError:
                fd, ready = self._stdin, asyncio.Event()
                self._loop.add_writer(fd, ready.set)
                try:
                    await ready.wait()
                finally:
                    self._loop.remove_writer(fd)
            except OSError:
                return

    async def close_stdin(self) -> None:
        if self._stdin is None:
            return
        if self._is_terminal:
            await self.write(b"\x04")  # a terminal has one line for both ways: its end of input is a character
        else:
            os.close(self._stdin)
        self._stdin = None

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """(1, data) for stdout, (2, data) for stderr. Ends with the streams, or with the command once all it wrote
        was read: something it left in the background may hold the streams open for ever."""
        while self._outputs:
            is_idle = True
            for fd, name in list(self._outputs.items()):
                data = self._read(fd)
                if data is not None:
                    is_idle = False
                    yield name, data
            if is_idle and self._outputs:
                if self._ended.done():
                    break
                await self._wait_readable()

    def _read(self, fd: int) -> bytes | None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return None
        except OSError:  # the other end of a terminal is gone
            data = b""
        if data:
            return data
        del self._outputs[fd]
        if fd != self._stdin:
            os.close(fd)
        return None

    async def _wait_readable(self) -> None:
        ready = asyncio.Event()
        for fd in self._outputs:
            self._loop.add_reader(fd, ready.set)

        def ended(_: asyncio.Future[int]) -> None:
            ready.set()

        self._ended.add_done_callback(ended)
        try:
            await ready.wait()
        finally:
            self._ended.remove_done_callback(ended)
            for fd in self._outputs:
                self._loop.remove_reader(fd)

    async def resize(self, columns: int, rows: int) -> None:
        if self._is_terminal and self._outputs:
            fcntl.ioctl(next(iter(self._outputs)), termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def wait(self) -> int:
        return await result_of(self._ended)

    async def kill(self) -> None:
        await self._kill()

    def __del__(self) -> None:
        mine = set(self._outputs) | ({self._stdin} if self._stdin is not None else set())
        for fd in mine:
            os.close(fd)
