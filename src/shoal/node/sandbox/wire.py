"""Messages between the agent, the zygote, the shims and the network process: JSON with file descriptors.

A message is a length, a count of descriptors, and JSON, over a unix stream socket (a datagram would limit a
pod's environment to what fits the socket buffer). Nothing here blocks: a shim must go on copying logs while
an agent is too busy to read. JSON rather than marshal, because a shim started by one Python may be adopted
by another.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

_HEAD = struct.Struct("!IB")
_MAX_FDS = 16
_CHUNK = 1 << 16


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a connection."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._in = bytearray()
        self._in_fds: deque[int] = deque()
        self._out: deque[tuple[memoryview, tuple[int, ...]]] = deque()

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def waiting_to_send(self) -> bool:
        return bool(self._out)

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Queue a message and send what fits at once. The descriptors belong to the channel from here on."""
        body = json.dumps(message, separators=(",", ":")).encode()
        self._out.append((memoryview(_HEAD.pack(len(body), len(fds)) + body), tuple(fds)))
        self.flush()

    def flush(self) -> None:
        while self._out:
            data, fds = self._out[0]
            try:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
                # NOSIGNAL: the other side may be dead, and SIGPIPE would take this process along.
                sent = self._sock.sendmsg([data], ancillary, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError as error:
                self._drop_unsent()
                raise Closed(str(error)) from error
            close_all(fds)  # they went with the first byte, however much of the rest is still to be sent
            if sent == len(data):
                self._out.popleft()
            else:
                self._out[0] = (data[sent:], ())

    def receive(self) -> list[tuple[Message, list[int]]]:
        """Every whole message that has come. Raises Closed when the other side has closed and all was read."""
        ended = self._fill()
        messages: list[tuple[Message, list[int]]] = []
        while len(self._in) >= _HEAD.size:
            length, count = _HEAD.unpack_from(self._in)
            end = _HEAD.size + length
            if len(self._in) < end:
                break
            message = json.loads(bytes(self._in[_HEAD.size : end]))
            del self._in[:end]
            messages.append((message, [self._in_fds.popleft() for _ in range(count)]))
        if ended and not messages:
            raise Closed("the other side closed the connection")
        return messages

    def _fill(self) -> bool:
        while True:
            try:
                data, ancillary, _, _ = self._sock.recvmsg(
                    _CHUNK, socket.CMSG_SPACE(4 * _MAX_FDS), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return False
            except OSError:
                return True
            for level, kind, payload in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    received = array.array("i")
                    received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
                    self._in_fds.extend(received)
            if not data:
                return True
            self._in += data

    def _drop_unsent(self) -> None:
        for _, fds in self._out:
            close_all(fds)
        self._out.clear()

    def close(self) -> None:
        self._drop_unsent()
        close_all(self._in_fds)
        self._in_fds.clear()
        self._sock.close()


def close_all(fds: Sequence[int] | deque[int]) -> None:
    for fd in fds:
        os.close(fd)


def listen(folder: str, name: str) -> socket.socket:
    """A listening socket in `folder`, bound through the folder's descriptor.
    A socket's path may have 107 bytes; a folder's may have more."""
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        server.bind(f"/proc/self/fd/{directory}/{name}")
        os.chmod(name, 0o600, dir_fd=directory)
        server.listen(16)
        server.setblocking(False)
        return server
    finally:
        os.close(directory)


def connect(folder: str, name: str) -> socket.socket:
    """A connection to a socket in `folder`; OSError where no process listens."""
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.connect(f"/proc/self/fd/{directory}/{name}")
    except OSError:
        sock.close()
        raise
    finally:
        os.close(directory)
    return sock
