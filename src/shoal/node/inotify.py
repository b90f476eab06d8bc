"""Notifications from the kernel that something in a folder changed (inotify), instead of polling."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path

IN_MODIFY = 0x2
IN_CLOSE_WRITE = 0x8
IN_MOVED = 0xC0
IN_CREATE = 0x100
IN_DELETE_SELF = 0x400
_CHANGES = IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED | IN_CREATE | IN_DELETE_SELF

_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """`await changed()` returns after the next change in the folder, or after `notify()`; changes are not lost
    between two calls. Use as a context manager inside a running loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._event = asyncio.Event()
        self._fd = -1

    def __enter__(self) -> FolderWatch:
        self._fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or _libc.inotify_add_watch(self._fd, os.fsencode(self._folder), _CHANGES) < 0:
            number = ctypes.get_errno()
            self._close()
            raise OSError(number, os.strerror(number), str(self._folder))
        asyncio.get_running_loop().add_reader(self._fd, self._drain)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._fd, 64 << 10):
                self._event.set()

    def notify(self) -> None:
        self._event.set()

    async def changed(self) -> None:
        await self._event.wait()
        self._event.clear()
