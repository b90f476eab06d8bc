"""A question and its whole answer, byte by byte: what HTTP allows a server to say, and what one does that breaks."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kit.certificate_authority import Authority
from shoal.cluster.kubeconfig import RequestCredentials
from shoal.cluster.kubeconfig.tls import TlsConfig
from shoal.cluster.kubernetes import connection_pool
from shoal.cluster.kubernetes.api_request import ApiRequest
from shoal.cluster.kubernetes.connection_pool import ConnectFailed, ConnectionPool, StaleConnection
from shoal.cluster.kubernetes.http1 import Response

OURS = Authority.make()
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlast"
CLOSES = b""
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
NOISE = b"HTTP/1.1 408 Request Timeout\r\n"  # said without being asked
PACKED = gzip.compress(b"lo") + gzip.compress(b"ng")
LEAVES = None  # the connection, once the answer before is out


class Raw:
    """Answers with given bytes, whatever is asked: of each connection the next in turn."""

    def __init__(self, connections: Sequence[Sequence[bytes | None]]) -> None:
        self._scripts = iter(connections)
        self.asked: list[list[bytes]] = []
        self.answers, self.left = asyncio.Event(), asyncio.Event()
        self.ends: asyncio.Queue[int] = asyncio.Queue()  # the numbers of connections that the client ended

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received: list[bytes] = []
        number = len(self.asked)
        self.asked.append(received)
        try:
            for step in next(self._scripts):
                if step not in (LEAVES, NOISE):
                    received.append(await reader.readuntil(b"\r\n\r\n"))
                if not step:
                    return
                writer.write(step)
                self.answers.set()
            await reader.read()
            self.ends.put_nowait(number)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.ends.put_nowait(number)
        except asyncio.CancelledError:  # the test is over; asyncio would be surprised
            return
        finally:
            writer.close()
            self.left.set()


@asynccontextmanager
async def raw(
    *connections: Sequence[bytes | None], prefix: str = "", ssl_context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Raw, ConnectionPool]]:
    served = Raw(connections)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=ssl_context)
    where = f"{'http' if ssl_context is None else 'https'}://127.0.0.1:{server.sockets[0].getsockname()[1]}{prefix}"
    asking = ConnectionPool(where, {"User-Agent": "us"}, "server")
    async with server:
        try:
            yield served, asking
        finally:
            asking.close()


async def send(
    asking: ConnectionPool,
    method: str = "GET",
    body: bytes | None = None,
    *,
    path: str = "/api",
    ssl_context: ssl.SSLContext | None = None,
    **more: str,
) -> Response:
    return await asking.send(
        ApiRequest(method, path, body, content_type="text/plain"), RequestCredentials(more, ssl_context)
    )


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        ((OK,), b"ok"),
        ((OK[:9], OK[9:30], OK[30:]), b"ok"),
        ((CHUNKED, b"2\r\nok\r\n", b"3\r\nay.\r\n0\r\n\r\n"), b"okay."),
        ((b"HTTP/1.1 100 Continue\r\n\r\n", OK), b"ok"),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), b""),
        ((LAST,), b"last"),
        ((b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n",), b""),
        ((CHUNKED, b"2\r\nok\r\n0\r\nContent-Encoding: gzip\r\n\r\n"), b"ok"),
        ((b"HTTP/1.1 200 OK\r\nContent-Encoding: GZIP\r\nContent-Length: %d\r\n\r\n" % len(PACKED), PACKED), b"long"),
    ],
    ids=[
        "at once", "in pieces", "in chunks", "after a word in between", "without a body", "the last one",
        "nothing, packed", "with a trailer", "packed in two",
    ],
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
        asking = ConnectionPool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", {})
        answer = await send(asking)
        asking.close()
    assert answer.body == body
    assert 200 <= answer.status < 300


async def test_an_answer_of_unknown_length_ends_with_the_connection() -> None:
    async with raw([b"HTTP/1.0 404 Not Found\r\nContent-Type: text/plain\r\n\r\nnot here", LEAVES]) as (_, asking):
        answer = await send(asking)
    assert (answer.status, answer.headers, answer.body) == (404, {"content-type": "text/plain"}, b"not here")


async def test_one_connection_serves_one_question_after_the_other() -> None:
    async with raw([OK, OK, LAST], [OK], prefix="/behind/b\u00fcro/") as (served, asking):
        data = [(await send(asking, "POST", b"", Authorization=f"Bearer {n}")).body for n in range(4)]
    assert data == [b"ok", b"ok", b"last", b"ok"]
    assert [len(questions) for questions in served.asked] == [3, 1]
    lines = served.asked[0][2].decode().split("\r\n")
    assert lines[0] == "POST /behind/b%C3%BCro/api HTTP/1.1"
    assert {
        "Accept: application/json", "Authorization: Bearer 2", "Content-Length: 0", "Content-Type: text/plain",
        "User-Agent: us",
    } <= {*lines}  # fmt: skip
    assert [line for line in lines if line.startswith("Host: 127.0.0.1:")]


async def test_a_body_is_sent_whole() -> None:
    body, sent = b"x" * 3_000_000, asyncio.get_running_loop().create_future()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sent.set_result((b"Content-Length: 3000000\r\n" in head, await reader.readexactly(len(body))))
        writer.write(LAST)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(read, "127.0.0.1", 0, limit=4_000_000) as server:
        answer = await send(ConnectionPool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", {}), "POST", body)
    assert (answer.body, await sent) == (b"last", (True, body))


async def test_over_tls_it_is_the_same() -> None:
    pair, other = OURS.sign("server"), OURS.sign("somebody")
    ours = TlsConfig(OURS.certificate.decode()).context()
    async with raw([OK, OK, LEAVES], [LAST], ssl_context=pair.context()) as (served, asking):
        data = [(await send(asking, ssl_context=ours)).body for _ in range(2)]
        await served.left.wait()
        data.append((await send(asking, "POST", ssl_context=ours)).body)
    assert (data, [len(questions) for questions in served.asked]) == ([b"ok", b"ok", b"last"], [2, 1])
    async with raw([OK], ssl_context=other.context()) as (_, asking):
        with pytest.raises(ConnectFailed, match="Hostname mismatch"):
            await send(asking, ssl_context=ours)


async def test_questions_at_the_same_time_have_a_connection_each() -> None:
    async with raw([OK], [OK], [OK]) as (served, asking):
        await asyncio.gather(*(send(asking) for _ in range(3)))
        assert len(served.asked) == 3


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_connection_that_ended_while_it_waited_is_not_used(method: str) -> None:
    """Not even where the program was too busy to hear of it."""
    async with raw([OK, LEAVES], [LAST]) as (served, asking):
        await send(asking)
        await served.left.wait()
        assert (await send(asking, method)).body == b"last"


async def test_a_connection_that_broke_before_any_response_is_stale() -> None:
    """Over a connection that had waited; whether to ask again is not decided here. The others waited as long."""
    async with raw([OK, CLOSES], [OK, CLOSES], [LAST]) as (served, asking):
        await asyncio.gather(send(asking), send(asking))
        with pytest.raises(StaleConnection, match="closed the connection"):
            await send(asking)
        assert (await send(asking)).body == b"last"
        assert len(served.asked) == 3


@pytest.mark.parametrize(
    ("before", "data"),
    [(0, (CLOSES,)), (1, (OK, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", LEAVES))],
    ids=["over a new connection", "in the middle of an answer"],
)
async def test_a_request_that_may_have_arrived_is_not_stale(before: int, data: tuple[bytes | None, ...]) -> None:
    async with raw(data) as (_, asking):
        for _ in range(before):
            await send(asking)
        with pytest.raises(ConnectionError, match="closed the connection") as broke:
            await send(asking)
        assert not isinstance(broke.value, StaleConnection)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"220 mail.example ESMTP\r\n", "no HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", "unpacked"),
    ],
    ids=["another protocol", "a wish for another", "no gzip"],
)
async def test_an_unreadable_response_is_an_error(data: bytes, why: str) -> None:
    async with raw([data], [OK]) as (_, asking):
        with pytest.raises(ConnectionError, match=why):
            await send(asking)
        assert (await send(asking)).body == b"ok"


@pytest.mark.parametrize(
    "data",
    [b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"],
    ids=["its head", "its body"],
)
async def test_half_an_answer_is_none(data: bytes) -> None:
    async with raw([data, LEAVES]) as (_, asking):
        with pytest.raises(ConnectionError, match="closed the connection"):
            await send(asking)


@pytest.mark.parametrize("second", [OK + OK, OK + b"more"], ids=["another answer", "noise"])
async def test_an_unexpected_response_ends_the_connection(second: bytes) -> None:
    async with raw([OK, second], [LAST]) as (served, asking):
        assert [(await send(asking)).body for _ in range(3)] == [b"ok", b"ok", b"last"]
        assert [len(questions) for questions in served.asked] == [2, 1]


async def test_data_on_an_idle_connection_ends_it() -> None:
    async with raw([OK, NOISE], [LAST]) as (served, asking):
        await send(asking)
        assert await served.ends.get() == 0
        assert (await send(asking)).body == b"last"


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_an_answer_before_the_question_is_out_is_the_last(secure: bool) -> None:
    """What is left of the question would stand in the way of the next."""
    questions: list[bytes] = []
    over = asyncio.Event()
    theirs, ours = (
        (OURS.sign("server").context(), TlsConfig(OURS.certificate.decode()).context()) if secure else (None, None)
    )

    async def impatient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        questions.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        await over.wait()
        writer.transport.abort()

    async with await asyncio.start_server(impatient, "127.0.0.1", 0, ssl=theirs) as server:
        scheme, port = "https" if secure else "http", server.sockets[0].getsockname()[1]
        asking = ConnectionPool(f"{scheme}://127.0.0.1:{port}", {}, "server")
        bodies = (b"x" * 20_000_000, b"y")
        assert [(await send(asking, "POST", body, ssl_context=ours)).body for body in bodies] == [b"ok", b"ok"]
        asking.close()
        over.set()
    assert len(questions) == 2


async def test_a_cancelled_request_ends_its_connection() -> None:
    async with raw([OK[:30]], [OK]) as (served, asking):
        given_up = asyncio.create_task(send(asking))
        await served.answers.wait()
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert await served.ends.get() == 0
        assert (await send(asking)).body == b"ok"


async def test_connections_that_waited_too_long_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.0)
    async with raw([OK], [OK], [OK]) as (served, asking):
        for number in range(3):
            await send(asking)
            if number:
                assert await served.ends.get() == number - 1


async def test_another_trust_has_connections_of_its_own() -> None:
    async with raw([OK], [OK, OK]) as (served, asking):
        await send(asking)
        other = ssl.create_default_context()
        for _ in range(2):
            await send(asking, ssl_context=other)
        assert await served.ends.get() == 0
        assert [len(questions) for questions in served.asked] == [1, 2]


async def test_at_the_end_connections_end() -> None:
    """Those that wait at once, those in use with their answer."""
    async with raw([OK], [OK]) as (served, asking):
        await send(asking)
        asking.close()
        assert await served.ends.get() == 0
        assert (await send(asking)).body == b"ok"
        assert await served.ends.get() == 1


async def test_a_connection_that_waits_holds_on_to_no_answer() -> None:
    size = 3_000_000
    async with raw([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size]) as (_, asking):
        tracemalloc.start()
        try:
            length = len((await send(asking)).body)
            await asyncio.sleep(0)  # until then the loop holds what it just handed over
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (length, held < size / 2) == (size, True)


async def test_a_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = noting_names(monkeypatch)
    async with raw([OK], [OK], [OK]) as (served, asking):
        await asyncio.gather(*(send(asking) for _ in range(3)))
        assert (len(served.asked), resolved) == (3, ["127.0.0.1"])


async def test_an_invalid_name_is_resolved_once_for_all_waiting_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """And again for whoever asks later: it may have become one."""
    resolved = noting_names(monkeypatch)
    asking = ConnectionPool("http://nowhere.invalid", {})
    for times in (1, 2):
        asked = await asyncio.gather(*(send(asking) for _ in range(3)), return_exceptions=True)
        assert ([type(each) for each in asked], len(resolved)) == ([ConnectFailed] * 3, times)


def noting_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    loop = asyncio.get_running_loop()
    resolved: list[str] = []
    resolve = loop.getaddrinfo

    async def noted(host: str, *rest: Any, **more: Any) -> Any:
        resolved.append(host)
        return await resolve(host, *rest, **more)

    monkeypatch.setattr(loop, "getaddrinfo", noted)
    return resolved


@pytest.mark.parametrize(
    "more",
    [
        {"Authorization": "Bearer x\r\nImpersonate-User: admin"},
        {"path": "/api HTTP/1.1\r\nHost: h\r\n\r\nDELETE /api/v1/namespaces/prod"},
        {"path": "/gr\u00f6\u00dfe"},
    ],
    ids=["a header", "a path", "a path beyond ASCII"],
)
async def test_what_is_sent_cannot_bring_anything_else_along(more: dict[str, str]) -> None:
    async with raw([OK]) as (served, asking):
        with pytest.raises(ConnectFailed):
            await send(asking, **more)
        assert served.asked == []


async def test_without_a_listener_the_connection_fails() -> None:
    with pytest.raises(ConnectFailed, match="Connect call failed"):
        await send(ConnectionPool("http://127.0.0.1:1", {}))
