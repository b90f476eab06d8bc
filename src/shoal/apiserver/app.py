"""The handling of one request, as an ASGI application.

    authenticate → resolve the path to a place → find the handler of the method → response

Every error is a Kubernetes Status. An unexpected exception is logged with its traceback and reported to the client
without it. `build_application` is the entry point.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from shoal.apiserver import (
    authorization,
    negotiation,
    pod_exec,
    pod_log,
    pod_port_forward,
    query,
    request_info,
    responses,
)
from shoal.apiserver.auth import Authenticator, pod_token_reader
from shoal.apiserver.handlers import ResourceHandlers, key_of
from shoal.apiserver.nonresource import Exposition, NonResourcePaths
from shoal.apiserver.request import Request
from shoal.apiserver.request_info import RequestInfo
from shoal.apiserver.responses import (
    BytesResponse,
    ListResponse,
    Receive,
    Scope,
    Send,
    SendWithTimeout,
    SharedListResponse,
    StreamResponse,
)
from shoal.apiserver.virtual_resources import VirtualResources
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.token_signer import TokenSigner
from shoal.kube.errors import ApiError, bad_request, method_not_allowed, no_such_path
from shoal.kube.kinds import NAMESPACE, POD, Kind

log = logging.getLogger(__name__)

Response = BytesResponse | SharedListResponse | ListResponse | StreamResponse
ResourceHandler = Callable[[Request, Kind, RequestInfo], Awaitable[Response]]


def build_application(
    cluster: EmbeddedCluster,
    *,
    token: str | None,
    signer: TokenSigner | None = None,
    metrics: Exposition | None = None,
) -> Application:
    """The API of `cluster`: for the administrator, who holds `token`, and for pods whose tokens `signer` signed.
    `metrics` is shown to the administrator at /metrics."""
    authenticator = (
        Authenticator(token) if signer is None else Authenticator(token, pod_token_reader(signer, cluster.machinery))
    )
    return Application(cluster, authenticator, metrics)


class Application:
    def __init__(
        self, cluster: EmbeddedCluster, authenticator: Authenticator, metrics: Exposition | None = None
    ) -> None:
        self._cluster = cluster
        self._authenticator = authenticator
        self._nonresource = NonResourcePaths(cluster.machinery, metrics)
        self._virtual = VirtualResources(cluster)
        self._streams: set[asyncio.Task[None]] = set()
        handlers = ResourceHandlers(cluster.machinery)
        self._collection_handlers: dict[str, ResourceHandler] = {
            "GET": handlers.list_or_watch,
            "POST": handlers.create,
            "DELETE": handlers.delete_many,
        }
        self._object_handlers: dict[str, ResourceHandler] = {
            "GET": handlers.get_or_watch, "PUT": handlers.update, "PATCH": handlers.patch, "DELETE": handlers.delete,
        }  # fmt: skip
        part_handlers: dict[str, ResourceHandler] = {
            "GET": handlers.get_or_watch,
            "PUT": handlers.update,
            "PATCH": handlers.patch,
        }
        self._subresource_handlers: dict[str, dict[str, ResourceHandler]] = {
            "status": part_handlers,
            "scale": part_handlers,
            "finalize": {"PUT": handlers.update},
            "binding": {"POST": self._virtual.bind},
            "eviction": {"POST": self._virtual.evict},
            "log": {"GET": self._logs},
            "exec": {"GET": self._require_upgrade, "POST": self._require_upgrade},
            "portforward": {"GET": self._require_upgrade, "POST": self._require_upgrade},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(Request(scope, receive), send, SendWithTimeout(send, scope))
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:  # lifespan
            event = ""
            while event != "lifespan.shutdown":
                event = (await receive())["type"]
                await send({"type": f"{event}.complete"})

    def end_streams(self) -> None:
        """End watches, logs and commands in progress, as a server that closes does; clients come back later."""
        for task in self._streams:
            task.cancel()

    # One HTTP request

    async def _http(self, request: Request, send: Send, send_with_timeout: Send) -> None:
        try:
            response = await self.respond(request)
        except Exception as error:
            response = _error_response(error, request)
        if isinstance(response, StreamResponse) and request.method == "HEAD":
            response = await responses.head_of(response)
        if isinstance(response, StreamResponse):
            writer = send_with_timeout if response.has_send_timeout else send
            await self._streaming(responses.write_stream(response, request.receive, writer))
            return
        without_body = request.method == "HEAD"
        response = _negotiated(response, request)
        if isinstance(response, SharedListResponse):
            await responses.write_long(response, send_with_timeout, request.headers, without_body=without_body)
        elif isinstance(response, ListResponse):
            await responses.write_shaped(response, send_with_timeout, request.headers, without_body=without_body)
        else:
            await responses.write(response, send_with_timeout, request.headers, without_body=without_body)

    async def respond(self, request: Request) -> Response:
        user = self._authenticator.check(request.path, request.headers)
        authorization.check(user, request)
        info = request_info.read(request.path)
        if info is None or not info.plural:
            return self._nonresource.respond(request)
        if info.group in VirtualResources.GROUPS:
            return await self._virtual.respond(request, info, user)
        kind = self._cluster.machinery.find(info.group, info.version, info.plural)
        if kind is None or (info.namespace is not None and not kind.namespaced):
            raise no_such_path()
        method_handlers = self._handlers_for(kind, info)
        handler = method_handlers.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allow = ((b"allow", ", ".join(sorted({*method_handlers, "OPTIONS"})).encode()),)
            if request.method == "OPTIONS":
                return BytesResponse(b"", 204, headers=allow)
            return replace(responses.error_response(method_not_allowed()), headers=allow)
        return await handler(request, kind, info)

    def _handlers_for(self, kind: Kind, info: RequestInfo) -> dict[str, ResourceHandler]:
        """What the methods mean at this place."""
        all_namespaces = kind.namespaced and info.namespace is None
        if not info.name:
            if all_namespaces:
                return {"GET": self._collection_handlers["GET"]}
            if kind == NAMESPACE:  # deleting all namespaces at once would delete everything
                return {method: h for method, h in self._collection_handlers.items() if method != "DELETE"}
            return self._collection_handlers
        if all_namespaces:
            raise no_such_path()
        if not info.subresource:
            return self._object_handlers
        if info.subresource not in kind.subresources:
            raise no_such_path()
        return self._subresource_handlers.get(info.subresource, {})

    async def _logs(self, request: Request, _: Kind, info: RequestInfo) -> Response:
        return await pod_log.logs(self._cluster, key_of(info), request.query)

    async def _require_upgrade(self, request: Request, _: Kind, info: RequestInfo) -> Response:
        """Reject a request without a websocket, after all its other errors.
        An older kubectl whose websocket was rejected retries this way and shows the second response."""
        if info.subresource == "exec":
            pod_exec.read_request(self._cluster, key_of(info), request.query)
        else:
            pod_port_forward.read_request(self._cluster, key_of(info))
        if b"upgrade" in request.headers:
            wanted = request.headers[b"upgrade"].decode("latin-1")
            raise bad_request(
                f"{info.subresource} runs over websockets here, not {wanted}; kubectl uses them from version 1.31 on"
            )
        raise bad_request("Upgrade request required")

    # One websocket

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await receive()  # the connect event
        try:
            authorization.check(self._authenticator.check(request.path, request.headers), request)
            info = request_info.read(request.path)
            if info is None or (info.group, info.plural) != ("", POD.plural):
                raise no_such_path()
            offered = scope.get("subprotocols") or []
            if info.subresource == "exec":
                params = query.read(request.query_string)
                pod, command, services = pod_exec.read_request(self._cluster, key_of(info), params)
                protocol = pod_exec.choose_protocol(offered)
                session = pod_exec.run_session(receive, send, params, services=services, pod=pod, request=command)
            elif info.subresource == "portforward":
                pod, services = pod_port_forward.read_request(self._cluster, key_of(info))
                protocol = pod_port_forward.choose_protocol(offered)
                session = pod_port_forward.run_session(receive, send, services=services, pod=pod)
            else:
                raise no_such_path()
        except Exception as error:
            rejection = _error_response(error, request)
            headers = [(b"content-type", rejection.content_type), (b"content-length", b"%d" % len(rejection.body))]
            await send({"type": "websocket.http.response.start", "status": rejection.status, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": rejection.body})
            return
        await send({"type": "websocket.accept", "subprotocol": protocol})
        await self._streaming(session)

    async def _streaming(self, work: Awaitable[None]) -> None:
        """Run what may last long as a task of its own, so that a closing server can end it."""
        task = asyncio.ensure_future(work)
        self._streams.add(task)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                raise
        finally:
            self._streams.discard(task)


def _error_response(error: Exception, request: Request) -> BytesResponse:
    if isinstance(error, ApiError):
        return responses.error_response(error)
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    message = "Internal error occurred: the server met an error it does not handle; its log has the details"
    return responses.error_response(ApiError(500, "InternalError", message))


def _negotiated(
    response: BytesResponse | SharedListResponse | ListResponse, request: Request
) -> BytesResponse | SharedListResponse | ListResponse:
    """YAML or indented, where requested. An Accept header that cannot be served is rejected with a JSON error."""
    accept = request.headers.get(b"accept", b"")
    is_yaml = False
    if b"yaml" in accept:
        try:
            is_yaml = negotiation.read(accept).yaml
        except ApiError:
            return response
    if not is_yaml and not request.wants_pretty():
        return response
    if isinstance(response, BytesResponse):
        return (
            responses.as_yaml(response) if is_yaml else responses.with_indent(response) if response.body else response
        )
    converted = response.converted if isinstance(response, SharedListResponse) else response
    return replace(converted, content_type=responses.YAML) if is_yaml else replace(converted, is_indented=True)
