"""Commands in a container over a websocket (`kubectl exec`). `shoal.cluster.exec_streams` has the framing."""

from __future__ import annotations

from shoal.apiserver import query
from shoal.apiserver.pod_log import container_of
from shoal.apiserver.query import Query
from shoal.apiserver.responses import Receive, Send
from shoal.cluster.client import ExecRequest, NodeServices
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.exec_streams import V4, V5, ExecSession
from shoal.kube.errors import bad_request
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj


def choose_protocol(offered: list[str]) -> str:
    for protocol in (V5, V4):
        if protocol in offered:
            return protocol
    raise bad_request(f"none of the subprotocols offered is spoken here; offer {V5} or {V4}")


def read_request(cluster: EmbeddedCluster, key: Key, params: Query) -> tuple[Obj, ExecRequest, NodeServices]:
    """Everything that can be refused before the connection is upgraded."""
    pod = cluster.machinery.get(POD, key).obj()
    container = container_of(pod, query.text(params, "container"))
    command = tuple(params.get("command", ()))
    if not command:
        raise bad_request("you must specify at least one command for the container")
    tty = query.flag(params, "tty")
    if tty and query.flag(params, "stderr"):
        raise bad_request("tty and stderr cannot both be true")
    if not any(query.flag(params, name) for name in ("stdin", "stdout", "stderr")):
        raise bad_request("you must specify at least one of stdin, stdout, stderr")
    return pod, ExecRequest(container, command, tty), cluster.node_services_of(pod)


async def run_session(
    receive: Receive, send: Send, params: Query, *, services: NodeServices, pod: Obj, request: ExecRequest
) -> None:
    """The command and its client, until one of them ends."""

    async def receive_message() -> bytes | None:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        return message.get("bytes") or (message.get("text") or "").encode()

    async def send_message(data: bytes) -> None:
        await send({"type": "websocket.send", "bytes": data})

    wanted = {name for name in ("stdin", "stdout", "stderr") if query.flag(params, name)}
    if await ExecSession(receive_message, send_message, wanted=wanted, tty=request.tty).run(services, pod, request):
        await send({"type": "websocket.close", "code": 1000})
