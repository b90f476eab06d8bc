"""A question and its whole answer, byte by byte: what HTTP allows a server to say, and what one does that breaks."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from shoal.cluster.connecting import Shown
from shoal.cluster.kubernetes import exchange
from shoal.cluster.kubernetes.exchange import Answer, Exchange, NoWay
from shoal.cluster.kubernetes.request import Request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlast"
CLOSES = b""
LEAVES = None  # the connection, once the answer before is out


class Raw:
    """Answers with given bytes, whatever is asked: of each connection the next in turn."""

    def __init__(self, connections: Sequence[Sequence[bytes | None]]) -> None:
        self._scripts = iter(connections)
        self.asked: list[list[bytes]] = []
        self.answers, self.left = asyncio.Event(), asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard: list[bytes] = []
        self.asked.append(heard)
        for step in next(self._scripts):
            if step is not LEAVES:
                heard.append(await reader.readuntil(b"\r\n\r\n"))
            if not step:
                break
            writer.write(step)
            await writer.drain()
            self.answers.set()
        else:
            await reader.read()
        writer.close()
        self.left.set()


@asynccontextmanager
async def raw(*connections: Sequence[bytes | None], prefix: str = "") -> AsyncIterator[tuple[Raw, Exchange]]:
    served = Raw(connections)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    asking = Exchange(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{prefix}", {"User-Agent": "us"})
    async with server:
        try:
            yield served, asking
        finally:
            asking.close()


async def ask(
    asking: Exchange, method: str = "GET", body: bytes | None = None, trust: ssl.SSLContext | None = None, **more: str
) -> Answer:
    request = Request(method, "/api", body, content_type="text/plain")
    return await asking.ask(request, Shown(more, trust))


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        ((OK,), b"ok"),
        ((OK[:9], OK[9:30], OK[30:]), b"ok"),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", b"3\r\nay.\r\n0\r\n\r\n"), b"okay."),
        ((b"HTTP/1.1 100 Continue\r\n\r\n", OK), b"ok"),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), b""),
        ((LAST,), b"last"),
        (
            (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzip.compress(b"long")),
             gzip.compress(b"long")),
            b"long",
        ),
    ],
    ids=["at once", "in pieces", "in chunks", "after a word in between", "without a body", "the last one", "packed"],
)  # fmt: skip
async def test_an_answer_is_read_to_its_end(pieces: tuple[bytes, ...], body: bytes) -> None:
    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(slowly, "127.0.0.1", 0) as server:
        asking = Exchange(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", {})
        answer = await ask(asking)
        asking.close()
    assert answer.body == body
    assert 200 <= answer.status < 300


async def test_an_answer_of_unknown_length_ends_with_the_connection() -> None:
    async with raw([b"HTTP/1.0 404 Not Found\r\nContent-Type: text/plain\r\n\r\nnot here", LEAVES]) as (_, asking):
        answer = await ask(asking)
    assert (answer.status, answer.headers, answer.body) == (404, {"content-type": "text/plain"}, b"not here")


async def test_one_connection_serves_one_question_after_the_other() -> None:
    async with raw([OK, OK, LAST], [OK], prefix="/behind") as (served, asking):
        said = [(await ask(asking, "POST", b"", Authorization="Bearer x")).body for _ in range(4)]
    assert said == [b"ok", b"ok", b"last", b"ok"]
    assert [len(questions) for questions in served.asked] == [3, 1]
    lines = served.asked[0][0].decode().split("\r\n")
    assert lines[0] == "POST /behind/api HTTP/1.1"
    assert {"User-Agent: us", "Authorization: Bearer x", "Content-Length: 0", "Content-Type: text/plain"} <= {*lines}
    assert [line for line in lines if line.startswith("Host: 127.0.0.1:")]


async def test_questions_at_the_same_time_have_a_connection_each() -> None:
    async with raw([OK], [OK], [OK]) as (served, asking):
        await asyncio.gather(*(ask(asking) for _ in range(3)))
        assert len(served.asked) == 3


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_connection_that_ended_while_it_waited_is_not_used(method: str) -> None:
    """Not even where the program was too busy to hear of it."""
    async with raw([OK, LEAVES], [LAST]) as (served, asking):
        await ask(asking)
        await served.left.wait()
        assert (await ask(asking, method)).body == b"last"


async def test_a_read_over_a_connection_that_just_ended_is_asked_once_more() -> None:
    async with raw([OK, CLOSES], [LAST]) as (served, asking):
        await ask(asking)
        assert (await ask(asking)).body == b"last"
        assert [len(questions) for questions in served.asked] == [2, 1]


@pytest.mark.parametrize(("first", "method"), [((OK, CLOSES), "POST"), ((CLOSES,), "GET")])
async def test_what_may_have_been_heard_is_not_asked_again(first: tuple[bytes, ...], method: str) -> None:
    """A write over a connection in use, and anything over a new one: who asked decides about that."""
    async with raw(first, [OK]) as (served, asking):
        for _ in first[1:]:
            await ask(asking)
        with pytest.raises(ConnectionError, match="closed the connection"):
            await ask(asking, method)
        assert len(served.asked) == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"220 mail.example ESMTP\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", "unpacked"),
    ],
)
async def test_what_cannot_be_read_is_said(said: bytes, why: str) -> None:
    async with raw([said], [OK]) as (_, asking):
        with pytest.raises(ConnectionError, match=why):
            await ask(asking)
        assert (await ask(asking)).body == b"ok"


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"])
async def test_half_an_answer_is_none(said: bytes) -> None:
    async with raw([said, LEAVES]) as (_, asking):
        with pytest.raises(ConnectionError, match="closed the connection"):
            await ask(asking)


async def test_what_nobody_asked_for_ends_the_connection() -> None:
    async with raw([OK, OK + OK], [LAST]) as (served, asking):
        await ask(asking)
        await ask(asking)
        assert (await ask(asking)).body == b"last"
        assert len(served.asked) == 2


async def test_an_answer_that_nobody_waits_for_is_not_taken_for_the_next() -> None:
    async with raw([OK[:30]], [OK]) as (served, asking):
        given_up = asyncio.create_task(ask(asking))
        await served.answers.wait()
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await ask(asking)).body == b"ok"


async def test_old_connections_and_those_with_other_trust_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw([OK], [OK], [OK]) as (served, asking):
        await ask(asking)
        await ask(asking, trust=ssl.create_default_context())
        monkeypatch.setattr(exchange, "KEPT_SECONDS", -1.0)
        await ask(asking, trust=None)
        assert [len(questions) for questions in served.asked] == [1, 1, 1]


async def test_a_header_cannot_bring_another_along() -> None:
    async with raw([OK]) as (served, asking):
        with pytest.raises(NoWay):
            await ask(asking, Authorization="Bearer x\r\nImpersonate-User: admin")
        assert served.asked == []


async def test_where_nobody_is_there_is_no_way() -> None:
    with pytest.raises(NoWay):
        await ask(Exchange("http://127.0.0.1:1", {}))
