"""A man in the middle: stands between an operator and a real API server, counts what is asked, and may cut and hold.

He speaks plain HTTP with the operator and passes every request on as it is. A test may have him stop the n-th write
before the server hears of it, or after it was carried out and before its answer is told; whoever is told of that kills
the operator there. Writes that had a lower number are carried out to their end even if nobody hears of it any more,
those with a higher one never leave him: so the server has seen exactly the first n, or the first n - 1.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import aiohttp
from aiohttp import web

from kit.control_plane import ControlPlane
from shoal.kube.objects import Obj

WRITES = ("POST", "PUT", "PATCH", "DELETE")
JOBS = ("frameworks", "pods", "configmaps")
HOP = ("connection", "content-length", "host", "keep-alive", "transfer-encoding")  # between two, and no further


class When(Enum):
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Death:
    """At the n-th write about jobs: before the server hears of it, or after it was carried out."""

    write: int
    when: When

    def __str__(self) -> str:
        return f"killed {self.when.value} write {self.write}"


@dataclass
class Between:
    """`url` is where the operator finds its server. `asked` counts lists and watches by what they were about."""

    url: str
    death: Death | None = None
    on_death: Callable[[], None] = lambda: None
    writes: int = 0
    has_struck: bool = False
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    watching: set[asyncio.Transport] = field(default_factory=set)

    def cut_watches(self) -> int:
        """Tear down every watch that is open, without a word; how many there were."""
        several = list(self.watching)
        for transport in several:
            transport.abort()
        return len(several)

    def note(self, request: web.BaseRequest) -> str:
        """What is asked for: list, watch, get or write."""
        resource, is_named = about(request.path)
        if request.method in WRITES:
            return "write" if resource in JOBS else "review"
        if "watch" in request.query:
            what = "streaming list" if "sendInitialEvents" in request.query else "watch"
        else:
            what = "get" if is_named else "list"
        self.asked[what, resource] += 1
        return what

    async def stands_before(self) -> bool:
        """One more write; whether it is the last one that the server sees. Those that it shall not see end here."""
        self.writes += 1
        death = self.death
        if death is None or self.writes < death.write:
            return False
        if self.writes == death.write and death.when is When.AFTER:
            return True
        if self.writes == death.write:
            self.strike()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    def strike(self) -> None:
        self.has_struck = True
        self.on_death()


def about(path: str) -> tuple[str, bool]:
    """The resource of a path, and whether it names one object of it."""
    words = path.strip("/").split("/")
    words = words[2:] if words[0] == "api" else words[3:]
    if words[:1] == ["namespaces"] and len(words) > 2:
        words = words[2:]
    return (words[0] if words else "", len(words) > 1)


@asynccontextmanager
async def to_server(plane: ControlPlane) -> AsyncIterator[aiohttp.ClientSession]:
    """What many in the middle may share: one pool of connections to the server itself."""
    ssl_context = ssl.create_default_context(cafile=plane.ca_file)
    pool = aiohttp.TCPConnector(ssl=ssl_context, limit=0)
    unlimited = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(plane.url, connector=pool, timeout=unlimited, auto_decompress=False) as session:
        yield session


@asynccontextmanager
async def between(server: aiohttp.ClientSession, death: Death | None = None) -> AsyncIterator[Between]:
    made = Between("", death)

    async def converse(request: web.BaseRequest) -> web.StreamResponse:
        what = made.note(request)
        if what == "write":
            return await _write(made, server, request)
        return await _stream(made, server, request, is_watch="watch" in request.query)

    runner = web.ServerRunner(web.Server(converse, handler_cancellation=True, access_log=None), shutdown_timeout=0.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        made.cut_watches()
        await runner.cleanup()


async def _write(made: Between, server: aiohttp.ClientSession, request: web.BaseRequest) -> web.StreamResponse:
    body = await request.read()
    is_last = await made.stands_before()

    async def carry_out() -> web.Response:
        async with server.request(
            request.method, request.raw_path, data=body, headers=_passed(request.headers)
        ) as told:
            answer = web.Response(status=told.status, body=await told.read(), headers=_passed(told.headers))
        if is_last:
            made.strike()
            await asyncio.Event().wait()
        return answer

    return await asyncio.shield(asyncio.create_task(carry_out()))


async def _stream(
    made: Between, server: aiohttp.ClientSession, request: web.BaseRequest, *, is_watch: bool
) -> web.StreamResponse:
    body: Any = await request.read() or None
    transport = request.transport
    assert isinstance(transport, asyncio.Transport)
    if is_watch:
        made.watching.add(transport)
    try:
        async with server.request(
            request.method, request.raw_path, data=body, headers=_passed(request.headers)
        ) as told:
            answer = web.StreamResponse(status=told.status, headers=_passed(told.headers))
            with suppress(ConnectionError):  # whoever asked has gone
                await answer.prepare(request)
                async for piece in told.content.iter_any():
                    await answer.write(piece)
                await answer.write_eof()
        return answer
    except aiohttp.ClientError:  # the server has gone: its silence is passed on as it is
        transport.abort()
        raise
    finally:
        made.watching.discard(transport)


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in HOP}


def kubeconfig_by(url: str, token: str) -> Obj:
    """The way of a man in the middle."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
