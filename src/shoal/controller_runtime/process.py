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

from shoal.cluster.kubeconfig import ConnectionConfig, ConnectionConfigError, default_files, from_kubeconfig, in_cluster
from shoal.controller_runtime.health import (
    Address,
    ComponentReadiness,
    GetPage,
    health_pages,
    metrics_pages,
    page_handler,
    serve_http,
)
from shoal.controller_runtime.identity import ProcessIdentity
from shoal.controller_runtime.leader_election import LeaseTimes
from shoal.controller_runtime.metrics import Metrics
from shoal.logs import JsonLines, KeyValues, Logger

log = Logger(__name__)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options that `shoal operator` and `shoal scheduler` share, as given on the command line."""

    kubeconfig: Path | None = None
    context: str = ""
    leader_election: bool = True
    lease_duration: int = 15
    metrics_address: Address | None = None
    health_address: Address | None = None


def connection_config(options: ServerOptions) -> ConnectionConfig:
    """Named on the command line, by KUBECONFIG, given to a pod, or ~/.kube/config: the first there is."""
    if options.kubeconfig is not None:
        return from_kubeconfig(options.kubeconfig, context=options.context)
    if (
        not options.context
        and not os.environ.get("KUBECONFIG")
        and (in_cluster_config := in_cluster(os.environ)) is not None
    ):
        return in_cluster_config
    files = default_files(os.environ)
    if not files:
        raise ConnectionConfigError(
            "there is no cluster to speak to: this is no pod, and neither KUBECONFIG nor ~/.kube/config names one. "
            "Name one with --kubeconfig"
        )
    return from_kubeconfig(files, context=options.context)


def log_to_stderr(form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else KeyValues())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("aiohttp").setLevel(logging.WARNING)


async def run_until_signal(work: Coroutine[Any, Any, None]) -> None:
    """Until SIGTERM or SIGINT; then the Lease is given back."""
    task = asyncio.create_task(work)
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        log.info("stopped")


def process_identity(options: ServerOptions, connection: ConnectionConfig) -> ProcessIdentity:
    name = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    return ProcessIdentity(
        name,
        connection.namespace,
        leader_election=options.leader_election,
        lease_times=LeaseTimes.of(options.lease_duration),
    )


@asynccontextmanager
async def pages(
    options: ServerOptions, readiness: Callable[[], list[ComponentReadiness]], metrics: Metrics
) -> AsyncIterator[None]:
    """On two addresses, or on one where they are the same."""
    configured = (
        ("metrics", options.metrics_address, metrics_pages(metrics)),
        ("health", options.health_address, health_pages(readiness)),
    )
    listeners: list[tuple[Address, list[str], dict[str, GetPage]]] = []
    for what, address, handlers in configured:
        if address is None:
            continue
        shared = next((listener for listener in listeners if listener[0] == address and address.port), None)
        if shared is None:
            listeners.append((address, [what], handlers))
        else:
            shared[1].append(what)
            shared[2].update(handlers)
    async with AsyncExitStack() as stack:
        for address, names, handlers in listeners:
            get = {path: page_handler(get_page) for path, get_page in handlers.items()}
            await stack.enter_async_context(serve_http(" and ".join(names), address, get=get))
        yield
