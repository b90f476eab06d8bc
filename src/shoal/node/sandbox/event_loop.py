"""A shim's event loop: descriptors and their callbacks. Single-threaded, wakes only when something happened."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
WRITABLE = select.POLLOUT


class EventLoop:
    """Calls `callback(events)` for every descriptor that is ready."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self.is_running = True

    def watch(self, fd: int, callback: Callable[[int], None], *, also_writable: bool = False) -> None:
        self._callbacks[fd] = callback
        self._poll.register(fd, READABLE | (WRITABLE if also_writable else 0))

    def unwatch(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def on_child(self, callback: Callable[[], None]) -> None:
        """Call back when children have ended (one call may stand for several)."""
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler no byte is written to the wake-up pipe
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

        def on_wakeup(_: int) -> None:
            os.read(read, 4096)
            callback()

        self.watch(read, on_wakeup)

    def run(self) -> None:
        while self.is_running:
            for fd, events in self._poll.poll():
                callback = self._callbacks.get(fd)
                if callback is not None:  # an earlier callback of this round may have let it go
                    callback(events)
