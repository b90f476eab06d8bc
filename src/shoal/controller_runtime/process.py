"""A server process on a Kubernetes cluster: its connection, its pages, its identity and its end on a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cluster.kubeconfig import Connection, NoConnection, from_kubeconfig, in_cluster, usual_files
from shoal.controller_runtime.health import (
    Address,
    Answer,
    Readiness,
    answering,
    health_pages,
    metrics_pages,
    serving,
)
from shoal.controller_runtime.identity import Identity
from shoal.controller_runtime.leader_election import Terms
from shoal.controller_runtime.metrics import Metrics
from shoal.logs import JsonLines, KeyValues, Logger

log = Logger(__name__)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options that `shoal operator` and `shoal scheduler` share, as given on the command line."""

    kubeconfig: Path | None = None
    context: str = ""
    elects: bool = True
    lease_duration: int = 15
    metrics_address: Address | None = None
    health_address: Address | None = None


def connection_of(options: ServerOptions) -> Connection:
    """Named on the command line, by KUBECONFIG, given to a pod, or ~/.kube/config: the first there is."""
    if options.kubeconfig is not None:
        return from_kubeconfig(options.kubeconfig, context=options.context)
    if not options.context and not os.environ.get("KUBECONFIG") and (inside := in_cluster(os.environ)) is not None:
        return inside
    files = usual_files(os.environ)
    if not files:
        raise NoConnection(
            "there is no cluster to speak to: this is no pod, and neither KUBECONFIG nor ~/.kube/config names one. "
            "Name one with --kubeconfig"
        )
    return from_kubeconfig(files, context=options.context)


def log_to_stderr(form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else KeyValues())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("aiohttp").setLevel(logging.WARNING)


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Until SIGTERM or SIGINT; then the Lease is given back."""
    working = asyncio.create_task(work)
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        log.info("stopped")


def identity_of(options: ServerOptions, connection: Connection) -> Identity:
    name = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    return Identity(name, connection.namespace, elects=options.elects, terms=Terms.of(options.lease_duration))


@asynccontextmanager
async def pages(
    options: ServerOptions, readiness: Callable[[], list[Readiness]], metrics: Metrics
) -> AsyncIterator[None]:
    """On two addresses, or on one where they are the same."""
    wanted = (
        ("metrics", options.metrics_address, metrics_pages(metrics)),
        ("health", options.health_address, health_pages(readiness)),
    )
    places: list[tuple[Address, list[str], dict[str, Answer]]] = []
    for what, address, pages in wanted:
        if address is None:
            continue
        shared = next((place for place in places if place[0] == address and address.port), None)
        if shared is None:
            places.append((address, [what], pages))
        else:
            shared[1].append(what)
            shared[2].update(pages)
    async with AsyncExitStack() as stack:
        for address, names, pages in places:
            reads = {path: answering(answer) for path, answer in pages.items()}
            await stack.enter_async_context(serving(" and ".join(names), address, reads=reads))
        yield
