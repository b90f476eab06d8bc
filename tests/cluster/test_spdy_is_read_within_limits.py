"""Frames of SPDY: streams of one connection, and what is refused of a client that sends too much or nonsense."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import pytest

from shoal.cluster import spdy
from shoal.cluster.spdy import FIN, FrameType, HeaderCodec, ProtocolError, Session, Stream


class Client:
    """The other side: what it would send, as bytes."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(zdict=spdy._dictionary())

    def headers(self, **headers: str) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            plain += b"".join(struct.pack(">I", len(text)) + text.encode() for text in (name, value))
        return self._compressor.compress(plain) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def opens(self, number: int, *, flags: int = 0, **headers: str) -> bytes:
        return control(FrameType.SYN_STREAM, struct.pack(">IIBB", number, 0, 0, 0) + self.headers(**headers), flags)


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload


def data(number: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">II", number, flags << 24 | len(payload)) + payload


async def played(sent: Iterable[bytes], gone: list[int] | None = None) -> tuple[list[Stream], bytes]:
    """The streams that a connection with these bytes opens, and the answer. `gone`: the numbers of reset ones."""
    parts, streams, answered = iter([*sent, b""]), list[Stream](), bytearray()

    async def receive() -> bytes:
        return next(parts)

    async def send(part: bytes) -> None:
        answered.extend(part)

    await Session(
        receive, send, streams.append, lambda each: (gone if gone is not None else []).append(each.number)
    ).run()
    return streams, bytes(answered)


async def read_all(stream: Stream) -> bytes:
    return b"".join([chunk async for chunk in stream.received.read()])


async def test_streams_are_kept_apart_however_the_bytes_arrive() -> None:
    client = Client()
    sent = b"".join(
        [
            client.opens(1, streamtype="error", port="80"),
            client.opens(3, streamtype="data", port="80"),
            data(3, b"he"),
            data(1, b"", FIN),
            data(3, b"llo", FIN),
        ]
    )
    for size in (1, 7, len(sent)):
        streams, _ = await played(sent[start : start + size] for start in range(0, len(sent), size))
        assert [stream.headers["streamtype"] for stream in streams] == ["error", "data"]
        assert [await read_all(stream) for stream in streams] == [b"", b"hello"]


async def test_pings_are_answered() -> None:
    ping = control(FrameType.PING, struct.pack(">I", 7))
    assert (await played([ping]))[1] == ping


async def test_a_reset_stream_is_forgotten_and_reported() -> None:
    client, gone = Client(), list[int]()
    reset = control(FrameType.RST_STREAM, struct.pack(">II", 1, 5))
    (stream,), _ = await played([client.opens(1), data(1, b"x"), reset, data(1, b"y")], gone)
    assert (await read_all(stream), gone) == (b"", [1])


def many_streams() -> Iterable[bytes]:
    client = Client()
    return [client.opens(number) for number in range(1, 2 * spdy.MOST_STREAMS + 3, 2)]


def bomb() -> Iterable[bytes]:
    """A megabyte of headers in a few hundred bytes."""
    return [Client().opens(1, x="y" * (1 << 20))]


REFUSED = {
    "a frame that is too long": lambda: [struct.pack(">HHI", 0x8003, 1, spdy.LARGEST_FRAME + 1)],
    "more streams than are served": many_streams,
    "headers that grow": bomb,
    "no headers": lambda: [control(FrameType.SYN_STREAM, b"\0\0\0\1" + bytes(6) + b"not compressed")],
    "a frame that ends early": lambda: [control(FrameType.SYN_STREAM, b"\0")],
    "a stream opened twice": lambda: [(c := Client()).opens(1), c.opens(1)],
    "a number of the server": lambda: [Client().opens(2)],
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_spdy_ends_the_connection(case: str) -> None:
    with pytest.raises(ProtocolError):
        await played(REFUSED[case]())


async def test_a_stream_that_nobody_reads_holds_up_no_other() -> None:
    client = Client()
    much = b"x" * (1 << 19)
    sent = [client.opens(1), *(data(1, much) for _ in range(8)), client.opens(3), data(3, b"hello", FIN)]
    streams, _ = await played(sent)
    assert await read_all(streams[1]) == b"hello"
    streams[0].received.end()
    assert len(await read_all(streams[0])) == 8 * len(much)


def test_headers_of_the_server_are_read_by_the_same_rules() -> None:
    theirs = zlib.decompressobj(zdict=spdy._dictionary())
    ours = HeaderCodec()
    for _ in range(2):
        assert theirs.decompress(ours.encode({"Status": "200"})) == struct.pack(">II6sI3s", 1, 6, b"status", 3, b"200")
