"""Commands in a container over a websocket (`kubectl exec`). `shoal.cluster.exec_streams` has the framing."""

from __future__ import annotations

from shoal.apiserver import query
from shoal.apiserver.pod_log import container_of
from shoal.apiserver.query import Query
from shoal.apiserver.responses import Receive, Send
from shoal.cluster.client import ExecRequest, NodeServices
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.exec_streams import V4, V5, Session
from shoal.kube.errors import bad_request
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj


def choose_protocol(offered: list[str]) -> str:
    for protocol in (V5, V4):
        if protocol in offered:
            return protocol
    raise bad_request(f"none of the subprotocols offered is spoken here; offer {V5} or {V4}")


def read_request(cluster: EmbeddedCluster, key: Key, asked: Query) -> tuple[Obj, ExecRequest, NodeServices]:
    """Everything that can be refused before the connection is upgraded."""
    pod = cluster.machinery.get(POD, key).obj()
    container = container_of(pod, query.text(asked, "container"))
    command = tuple(asked.get("command", ()))
    if not command:
        raise bad_request("you must specify at least one command for the container")
    tty = query.flag(asked, "tty")
    if tty and query.flag(asked, "stderr"):
        raise bad_request("tty and stderr cannot both be true")
    if not any(query.flag(asked, name) for name in ("stdin", "stdout", "stderr")):
        raise bad_request("you must specify at least one of stdin, stdout, stderr")
    return pod, ExecRequest(container, command, tty), cluster.services_of(pod)


async def converse(
    receive: Receive, send: Send, asked: Query, *, services: NodeServices, pod: Obj, request: ExecRequest
) -> None:
    """The command and its client, until one of them ends."""

    async def hear() -> bytes | None:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        return message.get("bytes") or (message.get("text") or "").encode()

    async def say(data: bytes) -> None:
        await send({"type": "websocket.send", "bytes": data})

    wanted = {name for name in ("stdin", "stdout", "stderr") if query.flag(asked, name)}
    if await Session(hear, say, wanted=wanted, tty=request.tty).run(services, pod, request):
        await send({"type": "websocket.close", "code": 1000})
