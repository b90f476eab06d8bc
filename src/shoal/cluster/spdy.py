"""SPDY 3.1 as Kubernetes uses it to forward ports: several streams of bytes over one connection. The server's side.

Kubernetes kept SPDY for this when the rest of the world went on to HTTP/2. There is no flow control: its clients send
no window updates. What a stream has not read is therefore buffered, in memory and on disk.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum

from shoal.cluster.spill_buffer import SpillBuffer

_VERSION = 3
_CONTROL = 0x8000
FIN = 0x01
LARGEST_FRAME = 1 << 20
LARGEST_HEADERS = 1 << 16  # decompressed
MOST_STREAMS = 1_000

# What headers are compressed with: words of HTTP, each behind its length, and a tail of common values.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_CODES = (
    "100 101 201 202 205 206 300 302 303 304 305 306 307 402 405 406 407 408 409 410 411 412 413 414 415 416 417 502 "
    "504 505"
)
_TAIL = (
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug "
    "Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    words = (word.replace("_", " ").encode() for word in _WORDS.split(" "))
    return b"".join(struct.pack(">I", len(word)) + word for word in words) + (_CODES.replace(" ", "") + _TAIL).encode()


class FrameType(IntEnum):
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class ProtocolError(Exception):
    """The other side does not speak SPDY, or more of it than is allowed."""


Headers = dict[str, str]


class HeaderCodec:
    """Header blocks of one connection: each is compressed with what the ones before it have in common."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(zdict=_dictionary())
        self._compressor = zlib.compressobj(zdict=_dictionary())

    def decode(self, block: bytes) -> Headers:
        try:
            plain = self._decompressor.decompress(block, LARGEST_HEADERS)
            if self._decompressor.unconsumed_tail:
                raise ProtocolError(f"headers of more than {LARGEST_HEADERS} bytes")
            (count,), at = struct.unpack_from(">I", plain), 4
            found: Headers = {}
            for _ in range(min(count, LARGEST_HEADERS)):
                name, at = _text(plain, at)
                found[name.lower()], at = _text(plain, at)
        except (zlib.error, struct.error, UnicodeDecodeError) as wrong:
            raise ProtocolError(f"headers that cannot be read: {wrong}") from None
        return found

    def encode(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.lower().encode(), value.encode()):
                plain += struct.pack(">I", len(text)) + text
        return self._compressor.compress(plain) + self._compressor.flush(zlib.Z_SYNC_FLUSH)


def _text(plain: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">I", plain, at)
    end = at + 4 + length
    if end > len(plain):
        raise ProtocolError("headers that end too early")
    return plain[at + 4 : end].decode(), end


class Stream:
    """One stream that the client opened."""

    def __init__(self, number: int, headers: Headers, session: Session) -> None:
        self.number = number
        self.headers = headers
        self._session = session
        self.received = SpillBuffer()

    async def write(self, data: bytes) -> None:
        await self._session.send_data(self.number, data)

    async def close(self) -> None:
        """Nothing more is written or read."""
        self._session.forget(self)
        await self._session.send_data(self.number, b"", flags=FIN)


class Session:
    """One connection. `receive` returns the bytes that arrive, b"" at their end."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[bytes]],
        send: Callable[[bytes], Awaitable[None]],
        on_stream: Callable[[Stream], None],
        on_reset: Callable[[Stream], None] = lambda _: None,
    ) -> None:
        self._receive = receive
        self._send = send
        self._on_stream = on_stream
        self._on_reset = on_reset
        self._headers = HeaderCodec()
        self._buffer = bytearray()
        self._streams: dict[int, Stream] = {}
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Until the connection ends. Raises ProtocolError."""
        while (head := await self._take(8)) is not None:
            first, second, rest = struct.unpack(">HHI", head)
            flags, length = rest >> 24, rest & 0xFFFFFF
            if length > LARGEST_FRAME:
                raise ProtocolError(f"a frame of {length} bytes")
            payload = await self._take(length)
            if payload is None:
                return
            if first & _CONTROL:
                await self._control(second, flags, payload)
            else:
                await self._data((first << 16) | second, flags, payload)

    async def send_data(self, stream: int, data: bytes, *, flags: int = 0) -> None:
        for start in range(0, max(len(data), 1), LARGEST_FRAME):
            part = data[start : start + LARGEST_FRAME]
            async with self._sending:
                await self._send(struct.pack(">II", stream, flags << 24 | len(part)) + part)

    def forget(self, stream: Stream) -> None:
        """What still arrives for the stream is dropped."""
        self._streams.pop(stream.number, None)
        stream.received.close()

    def close(self) -> None:
        """Free what the streams hold."""
        for stream in list(self._streams.values()):
            self.forget(stream)

    async def _take(self, count: int) -> bytes | None:
        """So many bytes; None where the connection ended before."""
        while len(self._buffer) < count:
            data = await self._receive()
            if not data:
                return None
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    async def _control(self, kind: int, flags: int, payload: bytes) -> None:
        try:
            if kind == FrameType.SYN_STREAM:
                await self._open(struct.unpack_from(">I", payload)[0] & 0x7FFFFFFF, flags, payload[10:])
            elif kind == FrameType.PING:
                await self._send_control(FrameType.PING, payload)
            elif kind == FrameType.RST_STREAM:
                stream = self._streams.get(struct.unpack_from(">I", payload)[0] & 0x7FFFFFFF)
                if stream is not None:
                    self.forget(stream)
                    self._on_reset(stream)
            elif kind == FrameType.HEADERS:
                self._headers.decode(payload[4:])  # they are part of the compressed whole
        except struct.error:
            raise ProtocolError("a control frame that ends too early") from None

    async def _open(self, number: int, flags: int, block: bytes) -> None:
        headers = self._headers.decode(block)
        if len(self._streams) >= MOST_STREAMS:
            raise ProtocolError(f"more than {MOST_STREAMS} streams at once")
        if number in self._streams or not number % 2:
            raise ProtocolError(f"a stream may not be opened as number {number}")
        stream = self._streams[number] = Stream(number, headers, self)
        await self._send_control(FrameType.SYN_REPLY, struct.pack(">I", number) + self._headers.encode({}))
        if flags & FIN:
            stream.received.end()
        self._on_stream(stream)

    async def _data(self, number: int, flags: int, data: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return  # closed in the meantime
        if data:
            await stream.received.put(data)
        if flags & FIN:
            stream.received.end()

    async def _send_control(self, kind: FrameType, payload: bytes) -> None:
        async with self._sending:
            await self._send(struct.pack(">HHI", _CONTROL | _VERSION, kind, len(payload)) + payload)
