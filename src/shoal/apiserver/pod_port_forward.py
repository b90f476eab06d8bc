"""Ports of a pod over a websocket that carries SPDY (`kubectl port-forward`)."""

from __future__ import annotations

from shoal.apiserver.responses import Receive, Send
from shoal.cluster.client import NodeServices
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.port_forward import TUNNEL, PortForward
from shoal.kube.errors import bad_request
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj, at_path


def choose_protocol(offered: list[str]) -> str:
    if TUNNEL not in offered:
        raise bad_request(f"none of the subprotocols offered is spoken here; offer {TUNNEL}")
    return TUNNEL


def read_request(cluster: EmbeddedCluster, key: Key) -> tuple[Obj, NodeServices]:
    """Everything that can be refused before the connection is upgraded."""
    pod = cluster.machinery.get(POD, key).obj()
    services = cluster.node_services_of(pod)
    if (phase := at_path(pod, "status", "phase")) != "Running":
        raise bad_request(f"pod {key.name} is not running: its phase is {phase or 'Pending'}")
    return pod, services


async def run_session(receive: Receive, send: Send, *, services: NodeServices, pod: Obj) -> None:
    async def receive_bytes() -> bytes:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return b""
            if data := message.get("bytes"):
                return bytes(data)

    async def send_bytes(data: bytes) -> None:
        await send({"type": "websocket.send", "bytes": data})

    await PortForward(receive_bytes, send_bytes, lambda port: services.connect(pod, port)).run()
