"""Two pods, a headless and a ClusterIP Service: each form of the name leads to the pod that serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kit.pods import container, phase_is, pod, running_agent, wait_for_pod
from shoal.cluster.client import LogOptions
from shoal.cluster.clock import SystemClock
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.registry import RegistrySettings
from shoal.controller_runtime.runnables import run_all
from shoal.kube.conditions import is_true
from shoal.kube.kinds import ENDPOINT_SLICE, POD, SERVICE
from shoal.kube.objects import Obj
from shoal.local.embedded_controllers import standard_loops
from shoal.local.loopback_ranges import reserved_ranges
from shoal.node.config import NodeConfig
from shoal.node.sandbox.interface import Network
from shoal.node.sandbox.sandbox_manager import SandboxManager

pytestmark = pytest.mark.processes

SERVE = """
import http.server, os
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(os.environ["HOSTNAME"].encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer((os.environ["POD_IP"], 8000), Hello).serve_forever()
"""

FETCH = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for name in sys.argv[1:]:
    print(name, opener.open(f"http://{name}", timeout=20).read().decode())
"""

FORMS = [
    "web:8000",
    "web.default:8000",
    "web.default.svc:8000",
    "web.default.svc.cluster.local:8000",
    "first.web:8000",
    "first.web.default:8000",
    "first.web.default.svc.cluster.local:8000",
    "front:8080",
    "front.default:8080",
    "front.default.svc.cluster.local:8080",
]

POD_IP = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
READY = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}


def server(name: str, **more: object) -> Obj:
    serving = container("serve", "python3", "-c", SERVE, env=[POD_IP], readinessProbe=READY)
    made = pod(name, serving, terminationGracePeriodSeconds=0, **more)
    made["metadata"]["labels"] = {"app": name}
    return made


def service(name: str, **spec: object) -> Obj:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(params=list(Network), ids=str)
async def neighbours(
    request: pytest.FixtureRequest, data: Path, real_config: Callable[..., NodeConfig]
) -> AsyncIterator[tuple[EmbeddedCluster, SandboxManager, NodeConfig]]:
    keepers = await SandboxManager.open(data / "sandboxes", network=request.param)
    with reserved_ranges(data / "loopback", is_new=True) as ranges:
        shared = request.param is Network.LOOPBACK
        settings = RegistrySettings(service_network=ranges.services) if shared else RegistrySettings()
        cluster = await EmbeddedCluster.open(":memory:", settings=settings)
        yield cluster, keepers, replace(real_config(), pod_range=ranges.pods if shared else "")
        for sandbox in (await keepers.adopt())[0]:
            await sandbox.close()
        await keepers.close()
        await cluster.close()


async def test_each_form_of_the_name_leads_to_the_pod(
    neighbours: tuple[EmbeddedCluster, SandboxManager, NodeConfig],
) -> None:
    cluster, keepers, settings = neighbours
    await cluster.create(SERVICE, service("web", clusterIP="None", selector={"app": "first"}), "default")
    front = service("front", selector={"app": "first"}, ports=[{"port": 8080, "targetPort": 8000}])
    await cluster.create(SERVICE, front, "default")
    loops = standard_loops(cluster, volumes=settings.data / "volumes", clock=SystemClock())
    control = asyncio.create_task(run_all(loops))
    async with running_agent(cluster, keepers, settings) as agent:
        await cluster.create(POD, server("first", hostname="first", subdomain="web"), "default")
        await cluster.create(POD, server("second"), "default")
        for name in ("first", "second"):
            await wait_for_pod(cluster, name, lambda p: p is not None and is_true(p, "Ready"))
        await until_both_services_have_the_pod(cluster)
        fetcher = pod("fetch", container("main", "python3", "-c", FETCH, *FORMS), restartPolicy="Never")
        await cluster.create(POD, fetcher, "default")
        done = await wait_for_pod(cluster, "fetch", phase_is("Succeeded", "Failed"))
        assert done is not None
        said = b"".join([chunk async for chunk in agent.logs(done, LogOptions())]).decode()
    control.cancel()
    assert said.splitlines() == [f"{form} first" for form in FORMS]


async def until_both_services_have_the_pod(cluster: EmbeddedCluster) -> None:
    """The slices are what names are made of."""
    ready: set[str] = set()
    async for event in cluster.watch(ENDPOINT_SLICE, "default", initial_events=True):
        for endpoint in event.object.get("endpoints") or ():
            if endpoint["conditions"]["ready"]:
                ready.add(event.object["metadata"]["labels"]["kubernetes.io/service-name"])
        if ready == {"web", "front"}:
            return
