"""What the operator serves over HTTP: whether it lives, whether it is ready, and its metrics.

Three small pages on one or two addresses. Nothing on them is secret, and nothing can be changed through them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from shoal.controller_runtime.metrics import Metrics
from shoal.logs import Logger

log = Logger(__name__)


class ListenError(Exception):
    """Cannot listen there; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 takes any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """`host:port`, or `:port` for every address of this machine."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r} should be HOST:PORT, for example 127.0.0.1:8080 or :8080")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HttpPage:
    body: bytes | str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


GetPage = Callable[[], HttpPage]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ComponentReadiness:
    """One component of the operator, and what it does or waits for, as text."""

    part: str
    is_ready: bool
    message: str


def health_pages(parts: Callable[[], list[ComponentReadiness]]) -> dict[str, GetPage]:
    """/healthz answers for as long as the process turns; /readyz once every component leads, or waits for its lease.
    The latter also requires that the cluster answers."""

    def ready() -> HttpPage:
        found = parts()
        lines = [f"{part.part}: {part.message}" for part in found] or ["not started: the cluster is being looked at"]
        return HttpPage("\n".join(lines) + "\n", 200 if found and all(part.is_ready for part in found) else 503)

    return {"/healthz": lambda: HttpPage("ok\n"), "/readyz": ready}


def metrics_pages(metrics: Metrics) -> dict[str, GetPage]:
    def page() -> HttpPage:
        body, content_type = metrics.exposition()
        return HttpPage(body, content_type=content_type)

    return {"/metrics": page}


def page_handler(get_page: GetPage) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        page = get_page()
        body = page.body.encode() if isinstance(page.body, str) else page.body
        return web.Response(body=body, status=page.status, headers={"Content-Type": page.content_type})

    return handle


@asynccontextmanager
async def serve_http(
    what: str,
    address: Address,
    *,
    get: Mapping[str, Handler] | None = None,
    post: Mapping[str, Handler] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Answer GETs (`get`) and POSTs (`post`) by path for as long as the body runs; the port."""
    app = web.Application(client_max_size=8 << 20)
    app.router.add_routes([web.get(path, handler) for path, handler in (get or {}).items()])
    app.router.add_routes([web.post(path, handler) for path, handler in (post or {}).items()])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host or None, address.port, ssl_context=tls)
        try:
            await site.start()
        except OSError as problem:
            raise ListenError(f"cannot listen on {address} for {what}: {os.strerror(problem.errno or 0)}") from None
        port: int = runner.addresses[0][1]
        log.info("serving", what=what, host=address.host, port=port)
        yield port
    finally:
        await runner.cleanup()
