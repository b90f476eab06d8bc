"""The paths an API server requests from a node, over TLS: logs of a container, and a command in one.

    GET  /containerLogs/{namespace}/{pod}/{container}?follow=true&tailLines=10
    GET  /exec/{namespace}/{pod}/{container}?command=ls&output=1          (a websocket)
    POST /portForward/{namespace}/{pod}                                   (SPDY, or a websocket that carries it)

Commands use websockets. An API server from 1.36 on passes a client's websocket through to nodes that declare so, as
this one does; older ones do that for version 4 of the protocol and turn kubectl's version 5 into SPDY, which is refused
here with a message.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol, cast

from aiohttp import WSMsgType, web

from shoal.cluster.client import ExecRequest, LogOptions, NodeServices, OutcomeUnknown
from shoal.cluster.exec_streams import V4, V5, ExecSession
from shoal.cluster.port_forward import PROTOCOL, SPDY, TUNNEL, PortForward
from shoal.kube.errors import ApiError, bad_request
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj
from shoal.logs import Logger
from shoal.node.kubelet_api.authorization import CallerAuthorizer, Forbidden, Unauthenticated
from shoal.node.kubelet_api.upgrade import UpgradedConnection
from shoal.node.messages import text

log = Logger(__name__)

# The streams wanted, by the names an API server gives them.
STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error"}


class NodeBackend(NodeServices, Protocol):
    def find(self, key: Key) -> Obj | None:
        """The pod of that name, where it is here."""
        ...


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class KubeletServer:
    """Answers while `served` on a socket that listens."""

    def __init__(self, node: NodeBackend, authorizer: CallerAuthorizer) -> None:
        self._node = node
        self._authorizer = authorizer

    @asynccontextmanager
    async def served(self, listener: socket.socket, *, tls: ssl.SSLContext) -> AsyncIterator[None]:
        async def health(_: web.Request) -> web.Response:
            return web.Response(text="ok")

        app = web.Application(middlewares=[self._middleware])
        place = "{namespace}/{pod}/{container}"
        app.router.add_get("/healthz", health)
        app.router.add_get(f"/containerLogs/{place}", self._logs)
        app.router.add_route("*", f"/exec/{place}", self._exec)
        app.router.add_route("*", "/exec/{namespace}/{pod}/{uid}/{container}", self._exec)
        app.router.add_route("*", "/portForward/{namespace}/{pod}", self._port_forward)
        app.router.add_route("*", "/portForward/{namespace}/{pod}/{uid}", self._port_forward)
        # A client that disconnects must end its request here: a silent log alone would never detect that.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listener, ssl_context=tls).start()
            yield
        finally:
            await runner.cleanup()

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if request.path != "/healthz":
                certificate = request.transport.get_extra_info("peercert") if request.transport else None
                scheme, _, token = request.headers.get("Authorization", "").partition(" ")
                verb = "create" if request.path.startswith(("/exec/", "/portForward/")) else "get"
                bearer = token.strip() if scheme.lower() == "bearer" else ""
                await self._authorizer.authorize(certificate or None, bearer, verb=verb)
            return await handler(request)
        except Unauthenticated as unknown:
            return web.Response(status=401, text=f"{unknown}\n")
        except Forbidden as forbidden:
            return web.Response(status=403, text=f"{forbidden}\n")
        except ApiError as refused:
            return web.Response(status=refused.code, text=refused.message)
        except (OutcomeUnknown, OSError) as error:
            log.warning("a request to this node failed", path=request.path, error=str(error))
            return web.Response(status=503, text=f"{error}\n")

    def _pod(self, request: web.Request) -> Obj:
        key = Key(request.match_info["namespace"], request.match_info["pod"])
        pod = self._node.find(key)
        if pod is None:
            raise ApiError(404, "NotFound", text(Message("Request.NoPod", {"pod": key.name})))
        return pod

    # Logs

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        pod = self._pod(request)
        chunks = self._node.logs(pod, log_options(request.query, request.match_info["container"]))
        response = web.StreamResponse(headers={"Content-Type": "text/plain", "Transfer-Encoding": "chunked"})
        await response.prepare(request)  # a container may be silent for long; the client gets the status now
        async with aclosing(cast(Any, chunks)) as log_stream:
            async for chunk in log_stream:
                await response.write(chunk)
        await response.write_eof()
        return response

    # Commands

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        pod, query = self._pod(request), request.query
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise bad_request(text(Message("Request.SpdyNotSupported", {"protocol": V4})))
        tty = _is_set(query, "tty")
        command = ExecRequest(request.match_info["container"], tuple(query.getall("command", [])), tty)
        wanted = {ours for ours, theirs in STREAMS.items() if _is_set(query, theirs) or _is_set(query, ours)}
        channel = web.WebSocketResponse(protocols=(V5, V4), compress=False, max_msg_size=1 << 25)
        await channel.prepare(request)

        async def receive() -> bytes | None:
            message = await channel.receive()
            if message.type in (WSMsgType.BINARY, WSMsgType.TEXT):
                return message.data if isinstance(message.data, bytes) else str(message.data).encode()
            return None

        await ExecSession(receive, channel.send_bytes, wanted=wanted, tty=tty).run(self._node, pod, command)
        await channel.close()
        return channel

    # Ports

    async def _port_forward(self, request: web.Request) -> web.StreamResponse:
        pod = self._pod(request)
        wanted = request.headers.get("Upgrade", "").lower()
        if wanted == "websocket":
            channel = web.WebSocketResponse(protocols=(TUNNEL,), compress=False, max_msg_size=1 << 25)
            await channel.prepare(request)

            async def receive() -> bytes:
                async for message in channel:
                    if message.type is WSMsgType.BINARY and message.data:  # an empty message is not the end
                        return bytes(message.data)
                return b""

            await PortForward(receive, channel.send_bytes, lambda port: self._node.connect(pod, port)).run()
            await channel.close()
            return channel
        if wanted != SPDY.lower():
            raise bad_request(text(Message("Request.UpgradeRequired", {"protocol": SPDY})))
        connection = await UpgradedConnection.accept(request, SPDY, {"X-Stream-Protocol-Version": PROTOCOL})
        await PortForward(connection.receive, connection.send, lambda port: self._node.connect(pod, port)).run()
        raise ConnectionResetError  # there is no response to write: aiohttp closes the connection


def log_options(query: Any, container: str) -> LogOptions:
    """As the API server passes them on; it has checked them."""
    return LogOptions(
        container=container,
        follow=_is_set(query, "follow"),
        previous=_is_set(query, "previous"),
        tail_lines=_number(query, "tailLines"),
        since_seconds=_number(query, "sinceSeconds"),
        since_time=query.get("sinceTime") or None,
        timestamps=_is_set(query, "timestamps"),
        limit_bytes=_number(query, "limitBytes"),
    )


def _is_set(query: Any, name: str) -> bool:
    return query.get(name, "") in ("1", "true", "True")


def _number(query: Any, name: str) -> int | None:
    value = query.get(name) or ""
    try:
        return int(value) if value else None
    except ValueError:
        raise bad_request(text(Message("Request.NotANumber", {"parameter": name, "value": value[:40]}))) from None
