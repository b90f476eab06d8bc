"""What `shoal operator` is asked to do, and the process that does it: connecting, serving pages, stopping cleanly."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from shoal.cluster.kubeconfig import Connection, NoConnection, from_kubeconfig, in_cluster, usual_files
from shoal.cluster.kubernetes import KubernetesCluster, opened
from shoal.cluster.kubernetes.field_decoders import Nameplate, Ordinary
from shoal.controller_runtime.health import (
    Address,
    Answer,
    Readiness,
    answering,
    health_pages,
    metrics_pages,
    serving,
)
from shoal.controller_runtime.leader_election import Terms
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects import load
from shoal.dialects.redaction import without_secrets
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.logs import JsonLines, KeyValues, Logger
from shoal.operator.history_redaction import dropped, to_log_covered
from shoal.operator.job_events import History, to_log
from shoal.operator.manager import Duties, Identity, Operator

log = Logger(__name__)

HISTORIES: Mapping[str, History] = {"covered": to_log_covered, "whole": to_log, "off": dropped}


@dataclass(frozen=True, slots=True)
class Orders:
    """The command line, read."""

    kubeconfig: Path | None = None
    context: str = ""
    dialects: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = "shoal"
    namespace: str = ""
    job_class: str = ""
    shards: int = 1
    elects: bool = True
    lease_duration: int = 15
    gang_scheduler: str = "auto"
    gang_scheduler_name: str = ""
    ssh_plugin: bool = False
    history: str = "covered"
    metrics_address: Address | None = None
    health_address: Address | None = None
    webhook_address: Address | None = None


def connection_of(orders: Orders) -> Connection:
    """Named on the command line, by KUBECONFIG, given to a pod, or ~/.kube/config: the first there is."""
    if orders.kubeconfig is not None:
        return from_kubeconfig(orders.kubeconfig, context=orders.context)
    if not orders.context and not os.environ.get("KUBECONFIG") and (inside := in_cluster(os.environ)) is not None:
        return inside
    files = usual_files(os.environ)
    if not files:
        raise NoConnection(
            "there is no cluster to speak to: this is no pod, and neither KUBECONFIG nor ~/.kube/config names one. "
            "Name one with --kubeconfig"
        )
    return from_kubeconfig(files, context=orders.context)


def log_to_stderr(form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else KeyValues())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("aiohttp").setLevel(logging.WARNING)


async def operate(orders: Orders) -> None:
    connection = connection_of(orders)
    await until_stopped(_work(orders, connection))


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Until SIGTERM or SIGINT; then the Lease is given back."""
    working = asyncio.create_task(work)
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        log.info("stopped")


async def _work(orders: Orders, connection: Connection) -> None:
    metrics = Metrics(CollectorRegistry())
    async with _opened(orders, connection, metrics) as cluster, AsyncExitStack() as stack:
        beside = await stack.enter_async_context(_webhook(orders, cluster, connection.namespace))
        operator = Operator(
            cluster, _duties(orders), identity_of(orders, connection),
            metrics=metrics, history=HISTORIES[orders.history], beside=beside,
            silence=cluster.wire.hearing.silence,
        )  # fmt: skip
        await stack.enter_async_context(pages(orders, operator.readiness, metrics))
        await operator.prepare()
        log.info("prepared", cluster=connection.url, namespace=orders.namespace or "all", dialects=orders.dialects)
        await operator.run()


def _opened(orders: Orders, connection: Connection, metrics: Metrics) -> AbstractAsyncContextManager[KubernetesCluster]:
    """Of pods and jobs nobody reads who wrote what, of ConfigMaps nobody here reads the content, and of what is
    answered about pods and ConfigMaps nobody reads more than the metadata."""
    jobs = dict.fromkeys((load(name).kind for name in orders.dialects), Ordinary)
    shapes = {POD: Ordinary, CONFIG_MAP: Nameplate, **jobs}
    answers = {POD: Nameplate, CONFIG_MAP: Nameplate, **jobs}
    return opened(connection, shapes=shapes, answers=answers, note=metrics.requested)


def _duties(orders: Orders) -> Duties:
    return Duties(
        {name: load(name) if orders.ssh_plugin else without_secrets(load(name)) for name in orders.dialects},
        name=orders.name,
        namespace=orders.namespace or None,
        job_class=orders.job_class,
        shards=orders.shards,
        settings=orders.settings,
        gang_scheduler=orders.gang_scheduler,
        scheduler_name=orders.gang_scheduler_name,
    )


def identity_of(orders: Orders, connection: Connection) -> Identity:
    name = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    return Identity(name, connection.namespace, elects=orders.elects, terms=Terms.of(orders.lease_duration))


@asynccontextmanager
async def pages(orders: Orders, readiness: Callable[[], list[Readiness]], metrics: Metrics) -> AsyncIterator[None]:
    """On two addresses, or on one where they are the same."""
    wanted = (
        ("metrics", orders.metrics_address, metrics_pages(metrics)),
        ("health", orders.health_address, health_pages(readiness)),
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


@asynccontextmanager
async def _webhook(orders: Orders, cluster: KubernetesCluster, namespace: str) -> AsyncIterator[Any]:
    """Answers in every process; its certificate is kept by the one that leads."""
    if orders.webhook_address is None:
        yield None
        return
    from shoal.operator.gang_scheduler_detection import handed_over
    from shoal.operator.webhook_certs import Certifier, webhook_served

    certifier = Certifier(orders.name, namespace)
    dialects = await handed_over(
        cluster, _duties(orders).dialects, orders.gang_scheduler, scheduler=orders.gang_scheduler_name
    )
    async with webhook_served(cluster, certifier, orders.webhook_address, dialects.values()):
        yield certifier
