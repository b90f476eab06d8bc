"""On a cluster that runs elsewhere the Service of the API leads where the node itself found it."""

from __future__ import annotations

import asyncio
from typing import Any

from kit.fake_sandbox import FakeSandboxes
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import SERVICE
from shoal.node.hosts_files import HostsFiles

PORTS = [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}]


async def test_the_service_of_the_api_leads_where_the_node_found_it() -> None:
    cluster = await EmbeddedCluster.open(":memory:")
    api = {"metadata": {"name": "kubernetes"}, "spec": {"clusterIP": "10.96.0.1", "ports": PORTS}}
    await cluster.create(SERVICE, api, "default")
    sandboxes = FakeSandboxes()
    served: asyncio.Queue[Any] = asyncio.Queue()

    async def serve(table: Any) -> None:
        served.put_nowait(table)

    sandboxes.serve = serve  # type: ignore[method-assign]
    names = HostsFiles(cluster, sandboxes, api=("api.example.com", 6443))
    running = asyncio.create_task(names.run())
    try:
        assert await served.get() == {("10.96.0.1", 443): (("api.example.com", 6443),)}
        assert [service["metadata"]["name"] for service in names.services("elsewhere")] == ["kubernetes"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await cluster.close()
