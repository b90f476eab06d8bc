"""What clients send and do not read costs bounded memory, also before they are known."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kit.asgi_client import Answer, Asgi
from shoal.apiserver import http_limits, request_body, responses
from shoal.apiserver.app import build_application
from shoal.apiserver.http_limits import Acceptor
from shoal.apiserver.server import Server
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube import yaml_codec
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP

TESTS = Path(__file__).parents[1]
MEMORY_BYTES = 1024**3
MANY, BYTES = 200, 250_000  # together 50 MB: once for each of the clients would be 17 GB


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    made = await EmbeddedCluster.open(":memory:")
    yield made
    await made.close()


async def served(cluster: EmbeddedCluster, **options: Any) -> Server:
    made = Server(build_application(cluster, token="t"), **options)
    await made.start()
    return made


async def asked(server: Server, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(text.encode())
    return reader, writer


def request(path: str, *headers: str, token: str = "t") -> str:
    return "\r\n".join([f"GET {path} HTTP/1.1", "host: a", f"authorization: Bearer {token}", *headers, "", ""])


@pytest.mark.parametrize(
    "head",
    [request("/api", *(f"x-{n}: {'a' * 1000}" for n in range(200))), "GET / HTTP/1.1\r\nx: " + "a" * 1_000_000,
     "GET /" + "a" * 1_000_000],
    ids=["many headers", "a long header", "a long path"],
)  # fmt: skip
async def test_a_large_head_is_refused(cluster: EmbeddedCluster, head: str) -> None:
    server = await served(cluster)
    reader, writer = await asked(server, head)
    answer = b""
    with contextlib.suppress(ConnectionResetError):  # the server closed while more was on its way
        answer = await reader.read()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
    writer.close()
    await server.stop()


@pytest.mark.parametrize(
    "text",
    ["", "GET /api HTTP/1.1\r\nhost:", request("/api/v1/namespaces", "content-length: 9").replace("GET", "POST", 1)],
    ids=["nothing", "half a head", "no body"],
)
async def test_a_request_that_does_not_come_ends(
    cluster: EmbeddedCluster, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(http_limits, "BODY_SECONDS", 0.05)
    server = await served(cluster)
    reader, writer = await asked(server, text)
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        answer = await reader.read()
    assert answer == b""
    writer.close()
    await server.stop()


async def test_who_is_not_known_keeps_no_connection(cluster: EmbeddedCluster) -> None:
    server = await served(cluster)
    reader, writer = await asked(server, request("/api", token="wrong"))
    assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
    writer.close()
    await server.stop()


async def test_connections_beyond_the_limit_wait_for_another_to_end(cluster: EmbeddedCluster) -> None:
    server = await served(cluster, most_connections=2)
    kept = [await asked(server, request("/version")) for _ in range(2)]
    for reader, _ in kept:
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    reader, writer = await asked(server, request("/version", "connection: close"))
    assert len(server._state.connections) == 2
    kept[0][1].close()
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    for _, each in (*kept, (reader, writer)):
        each.close()
    await server.stop()


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(1024, 341), (1_000_000, 4096), (resource.RLIM_INFINITY, 4096)]
)
def test_connections_leave_descriptors_to_the_rest_of_the_process(
    descriptors: int, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert http_limits.max_connections() == connections


class Full:
    """A listening socket in a process that has no descriptor left, until it has."""

    def __init__(self, real: socket.socket) -> None:
        self._real = real
        self.refusals = 3
        self.fileno = real.fileno
        self.close = real.close

    def accept(self) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._real.accept()


async def test_a_lack_of_descriptors_pauses_accepting_and_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits, "_RETRY_SECONDS", 0.0)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    begun = asyncio.Event()

    class Once(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            transport.close()
            begun.set()

    acceptor = Acceptor([Full(listener)], Once, tls=None)  # type: ignore[list-item]
    with caplog.at_level(logging.ERROR):
        acceptor.resume()
        _, writer = await asyncio.open_connection(*listener.getsockname())
        await begun.wait()
    writer.close()
    acceptor.close()
    assert [record.getMessage() for record in caplog.records] == [
        "no connection can be accepted for now: Too many open files"
    ]


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def limited(function: str) -> None:
    """A function of this module in a process with bounded memory: more of it ends the process."""
    program = f"import asyncio, sys; sys.path.insert(0, 'attacks'); import {Path(__file__).stem} as it; it.{function}()"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=TESTS, preexec_fn=limit, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]


def read_doubled_keys() -> None:
    """At every level a list of objects with keys that stand twice, as deep as bodies may be."""
    flat = b'{"' + b"k" * 1000 + b'":[' + b",".join([b'{"a":1,"a":2}'] * 200_000) + b"]}"
    deep = b'{"a":0,"a":' * 120 + b"[" + b",".join([b'{"b":1,"b":2}'] * 150_000) + b"]" + b"}" * 120
    for data in (flat, deep):
        assert len(request_body.decode_json(data).duplicates) == 100


def test_keys_that_stand_twice_are_found_in_bounded_memory() -> None:
    limited("read_doubled_keys")


async def _answer_nobody(path: str, clients: int, *, headers: tuple[str, ...] = ()) -> None:
    cluster = await EmbeddedCluster.open(":memory:")
    for number in range(MANY):
        await cluster.create(CONFIG_MAP, {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * BYTES}}, "default")
    server = await served(cluster)
    connections = []
    for _ in range(clients):
        made = socket.create_connection(("127.0.0.1", server.port))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.sendall(request(path, *headers).encode())
        made.setblocking(False)
        connections.append(made)
        await asyncio.sleep(0)
    # One that reads gets it all: by then the others have what they are given.
    reader, writer = await asked(server, request("/api/v1/configmaps", "connection: close"))
    assert len(await reader.read()) > MANY * BYTES
    for each in connections:
        each.close()
    writer.close()
    await server.stop()
    await cluster.close()


def answer_300_watches() -> None:
    asyncio.run(_answer_nobody("/api/v1/configmaps?watch=1", 300))


def answer_40_lists() -> None:
    asyncio.run(_answer_nobody("/api/v1/configmaps", 40))


def answer_40_packed_lists() -> None:
    asyncio.run(_answer_nobody("/api/v1/configmaps", 40, headers=("accept-encoding: gzip",)))


TABLE = "accept: application/json;as=Table;v=v1;g=meta.k8s.io"


def answer_40_lists_as_yaml() -> None:
    asyncio.run(_answer_nobody("/api/v1/configmaps", 40, headers=("accept: application/yaml",)))


def answer_40_indented_lists() -> None:
    asyncio.run(_answer_nobody("/api/v1/configmaps?pretty=true", 40))


def answer_40_tables() -> None:
    asyncio.run(_answer_nobody("/api/v1/configmaps?includeObject=Object", 40, headers=(TABLE,)))


@pytest.mark.parametrize(
    "function",
    ["answer_300_watches", "answer_40_lists", "answer_40_packed_lists", "answer_40_lists_as_yaml",
     "answer_40_indented_lists", "answer_40_tables"],
)  # fmt: skip
def test_answers_that_are_not_read_cost_bounded_memory(function: str) -> None:
    limited(function)


SHAPES = {"as it is": "", "Table": ";as=Table", "metadata": ";as=PartialObjectMetadataList"}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("times", [1, 30_000], ids=["short", "long"])
async def test_a_list_is_the_same_in_every_form(
    cluster: EmbeddedCluster, times: int, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = cluster.machinery.clock.now()
    monkeypatch.setattr(type(cluster.machinery.clock), "now", lambda _: now)  # ages in Tables stay the same
    for number in range(3):
        made = {"metadata": {"name": f"c{number}"}, "data": {"a": 'é\n"' * times, "b": "yes"}}
        await cluster.create(CONFIG_MAP, made, "default")
    http = Asgi(build_application(cluster, token="t"), "t")

    async def got(form: str, **query: str) -> Answer:
        accept = f"{form}{shape};v=v1;g=meta.k8s.io" if shape else form
        return await http("GET", "/api/v1/configmaps", None, {"accept": accept}, includeObject="Object", **query)

    plain = await got("application/json")
    indented = await got("application/json", pretty="true")
    yaml = await got("application/yaml")

    is_indented = indented.body.rstrip() == msgspec.json.format(plain.body, indent=2).rstrip()
    is_yaml = yaml.body.decode() == yaml_codec.encode(plain.json)
    assert len(plain.json.get("items") or plain.json["rows"]) >= 3
    assert (is_indented, is_yaml, yaml.header("content-type")) == (True, True, "application/yaml")


async def test_an_answer_that_is_not_read_ends_with_its_connection(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "STALL_SECONDS", 0.1)
    for number in range(80):
        await cluster.create(CONFIG_MAP, {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * BYTES}}, "default")
    server = await served(cluster)
    _, writer = await asked(server, request("/api/v1/configmaps"))
    while server._state.connections:  # events of the loop alone: the reader takes 64 kB and no more
        await asyncio.wait(server._state.tasks or {asyncio.ensure_future(asyncio.sleep(0))})
    writer.close()
    await server.stop()


async def test_a_watch_that_falls_behind_what_is_kept_ends_with_410(cluster: EmbeddedCluster) -> None:
    for number in range(4):
        await cluster.create(CONFIG_MAP, {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * BYTES}}, "default")
    watch = cluster.machinery.watch(CONFIG_MAP, "default")
    assert len(await anext(watch)) == 1  # a batch is small, and the rest of the beginning has not been read
    for number in range(60):
        await cluster.patch(CONFIG_MAP, "c0", "default", patch={"data": {"a": str(number) * BYTES}})
    with pytest.raises(ApiError) as ended:
        _ = [batch async for batch in watch]
    assert ended.value.code == 410
