"""The embedded API on a real port, on a thread of its own, for tests that drive it with real clients.

`serve()` gives a `Running`: the address, the kubeconfig, and `call` to do something on the server's own loop.
The store is in memory and thrown away.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kit.scripted_node import ScriptedNode
from shoal.apiserver import kubeconfig_file as kubeconfig
from shoal.apiserver import serving_certificate
from shoal.apiserver.app import build_application
from shoal.apiserver.server import Server
from shoal.cluster.embedded import EmbeddedCluster

T = TypeVar("T")
NODE = "node-1"
DEADLINE_SECONDS = 120


@dataclass(frozen=True)
class Running:
    url: str
    token: str
    ca_file: Path
    kubeconfig: Path
    cluster: EmbeddedCluster
    node: ScriptedNode
    loop: asyncio.AbstractEventLoop

    def call(self, work: Callable[[EmbeddedCluster], Awaitable[T]]) -> T:
        """Run `work` on the server's loop and wait for what it returns."""

        async def run() -> T:
            return await work(self.cluster)

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(DEADLINE_SECONDS)

    def place(self, pod: str, namespace: str) -> None:
        """Do what a scheduler does."""
        self.call(lambda cluster: cluster.bind(pod, namespace, node=NODE))


@contextlib.contextmanager
def serve(folder: Path, *, behind: Callable[[Any], Any] = lambda app: app) -> Iterator[Running]:
    """`behind` puts something between the clients and the API."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="api-server", daemon=True)
    thread.start()
    token = secrets.token_hex(16)
    certificate = serving_certificate.ensure(folder / "certificates", "127.0.0.1")
    node = ScriptedNode()

    async def start() -> tuple[EmbeddedCluster, Server]:
        cluster = await EmbeddedCluster.open(":memory:")
        cluster.nodes[NODE] = node
        server = Server(behind(build_application(cluster, token=token)), "127.0.0.1", 0, ssl=certificate.context())
        await server.start()
        return cluster, server

    async def stop() -> None:
        await server.stop()
        await cluster.close()

    try:
        cluster, server = asyncio.run_coroutine_threadsafe(start(), loop).result(DEADLINE_SECONDS)
        file = folder / "kubeconfig"
        kubeconfig.write(file, server=server.url, token=token, ca_pem=certificate.authority())
        yield Running(server.url, token, certificate.certificate, file, cluster, node, loop)
        asyncio.run_coroutine_threadsafe(stop(), loop).result(DEADLINE_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_SECONDS)
        loop.close()
