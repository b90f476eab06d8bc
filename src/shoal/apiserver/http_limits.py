"""What a client may cost before it is known: connections, and the size and time of a request's head and body.

`LimitedHttp` is uvicorn's HTTP protocol with deadlines and a limit for the head. `Acceptor` accepts connections up to
a number, and pauses while there is no descriptor for another.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shoal.apiserver.responses import ABORT, CHUNK_BYTES

log = logging.getLogger(__name__)

HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
BODY_SECONDS = 60.0
MAX_CONNECTIONS = 4096
_RETRY_SECONDS = 1.0
_AT_ONCE = 64
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def max_connections() -> int:
    """At most a third of the descriptors that this process may have: its store and its pods need others, and a second
    server of the same process as many. Where a process may have 1024, MAX_CONNECTIONS would never be reached."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, max(soft // 3, 1))


class LimitedHttp(HttpToolsProtocol):
    """One connection. A deadline runs from its first moment, and from the first byte of each later request."""

    def __init__(self, *arguments: Any, on_end: Callable[[], None], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._on_end = on_end
        self._deadline: asyncio.TimerHandle | None = None
        self._is_in_head = True
        self._head_bytes = 0
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=CHUNK_BYTES)  # what a client that does not read keeps in memory
        self._expect_within(HEAD_SECONDS)

    def connection_lost(self, problem: Exception | None) -> None:
        self._expect_within(None)
        super().connection_lost(problem)
        self._on_end()

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._is_in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._head_bytes > HEAD_BYTES:
            self._refuse()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.transport.abort}  # type: ignore[dict-item]
        if self._deadline is None:
            self._expect_within(HEAD_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return  # a trailer of a chunked body: ignored
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        self._is_in_head = False
        if size > HEAD_BYTES:
            self._refuse()
            return
        self._expect_within(BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        self._expect_within(None)
        if not self._is_refused:
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._expect_within(None)
        if not self._is_refused:
            super().handle_websocket_upgrade()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()  # what is still unread of the last answer will not be read any more

    def _expect_within(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    def _refuse(self) -> None:
        self._is_refused = True
        self.transport.write(_TOO_LARGE)
        self.transport.close()


class Acceptor:
    """Accepts on listening sockets. Beyond `limit` connections the next ones wait for one of them to end."""

    def __init__(
        self,
        listeners: list[socket.socket],
        protocol: Callable[[], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None,
        limit: int = MAX_CONNECTIONS,
    ) -> None:
        self._listeners = listeners
        self._protocol = protocol
        self._tls = tls
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._open = 0
        self._opening: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._is_paused = True
        self._lacks_descriptors = False

    def resume(self) -> None:
        if not self._is_paused:
            return
        self._is_paused = False
        for listener in self._listeners:
            self._loop.add_reader(listener, self._accept, listener)

    def ended(self) -> None:
        """A connection has ended: there is room for another."""
        self._open -= 1
        if self._listeners and self._retry is None:
            self.resume()

    def close(self) -> None:
        self._pause()
        if self._retry is not None:
            self._retry.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners = []
        for task in self._opening:
            task.cancel()

    def _pause(self) -> None:
        self._is_paused = True
        for listener in self._listeners:
            self._loop.remove_reader(listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            if self._open >= self._limit:
                self._pause()
                return
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                self._lacks_descriptors = False  # all that waited have been accepted
                return
            except OSError as problem:
                if problem.errno not in _NO_ROOM:
                    raise
                # Other components free descriptors without notice, so accepting is retried after a moment.
                if not self._lacks_descriptors:
                    log.error("no connection can be accepted for now: %s", problem.strerror)
                self._lacks_descriptors = True
                self._pause()
                self._retry = self._loop.call_later(_RETRY_SECONDS, self._try_again)
                return
            connection.setblocking(False)
            self._open += 1
            task = self._loop.create_task(self._begin(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _try_again(self) -> None:
        self._retry = None
        self.resume()

    async def _begin(self, connection: socket.socket) -> None:
        handshake = {"ssl_handshake_timeout": HEAD_SECONDS} if self._tls is not None else {}
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=self._tls, **handshake)
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            with contextlib.suppress(OSError):
                connection.close()
            self.ended()
