"""The story of one request, as an ASGI application.

    authenticate → what place does the path name → what does the method mean there → answer

Every refusal is a Kubernetes Status. An exception nobody foresaw is logged with its trace and told to the client
without it. `build` is the way in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from shoal.apiserver import (
    authorization,
    negotiation,
    paths,
    pod_exec,
    pod_log,
    query,
    responses,
)
from shoal.apiserver.auth import Gate, pod_tokens
from shoal.apiserver.handlers import Verbs, key_of
from shoal.apiserver.nonresource import Exposition, FixedPaths
from shoal.apiserver.paths import Place
from shoal.apiserver.request import Request
from shoal.apiserver.responses import (
    Impatience,
    LongReply,
    Receive,
    Reply,
    Scope,
    Send,
    ShapedList,
    Stream,
)
from shoal.apiserver.virtual_resources import Unstored
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.service_account_tokens import TokenSigner
from shoal.kube.errors import ApiError, bad_request, method_not_allowed, no_such_path
from shoal.kube.kinds import NAMESPACE, POD, Kind

log = logging.getLogger(__name__)

Answer = Reply | LongReply | ShapedList | Stream
Verb = Callable[[Request, Kind, Place], Awaitable[Answer]]


def build(
    cluster: EmbeddedCluster,
    *,
    token: str | None,
    signer: TokenSigner | None = None,
    metrics: Exposition | None = None,
) -> Application:
    """The API of `cluster`: for the administrator, who holds `token`, and for pods whose tokens `signer` signed.
    `metrics` is shown to the administrator at /metrics."""
    gate = Gate(token) if signer is None else Gate(token, pod_tokens(signer, cluster.machinery))
    return Application(cluster, gate, metrics)


class Application:
    def __init__(self, cluster: EmbeddedCluster, gate: Gate, metrics: Exposition | None = None) -> None:
        self._cluster = cluster
        self._gate = gate
        self._fixed = FixedPaths(cluster.machinery, metrics)
        self._unstored = Unstored(cluster)
        self._streams: set[asyncio.Task[None]] = set()
        verbs = Verbs(cluster.machinery)
        self._on_many: dict[str, Verb] = {"GET": verbs.read_many, "POST": verbs.create, "DELETE": verbs.delete_many}
        self._on_one: dict[str, Verb] = {
            "GET": verbs.read_one, "PUT": verbs.update, "PATCH": verbs.patch, "DELETE": verbs.delete,
        }  # fmt: skip
        data: dict[str, Verb] = {"GET": verbs.read_one, "PUT": verbs.update, "PATCH": verbs.patch}
        self._on_part: dict[str, dict[str, Verb]] = {
            "status": data,
            "scale": data,
            "finalize": {"PUT": verbs.update},
            "binding": {"POST": self._unstored.bind},
            "eviction": {"POST": self._unstored.evict},
            "log": {"GET": self._logs},
            "exec": {"GET": self._needs_upgrade, "POST": self._needs_upgrade},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(Request(scope, receive), send, Impatience(send, scope))
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await _lifespan(receive, send)

    def end_streams(self) -> None:
        """End watches, logs and commands in progress, as a server that closes does; clients come back later."""
        for task in self._streams:
            task.cancel()

    # One HTTP request

    async def _http(self, request: Request, send: Send, impatient: Send) -> None:
        try:
            answer = await self.answer(request)
        except Exception as error:
            answer = _refusal(error, request)
        if isinstance(answer, Stream) and request.method == "HEAD":
            answer = await responses.head_of(answer)
        if isinstance(answer, Stream):
            writing = impatient if answer.must_be_read else send
            await self._streaming(responses.write_stream(answer, request.receive, writing))
            return
        without_body = request.method == "HEAD"
        answer = _for_reader(answer, request)
        if isinstance(answer, LongReply):
            await responses.write_long(answer, impatient, request.headers, without_body=without_body)
        elif isinstance(answer, ShapedList):
            await responses.write_shaped(answer, impatient, request.headers, without_body=without_body)
        else:
            await responses.write(answer, impatient, request.headers, without_body=without_body)

    async def answer(self, request: Request) -> Answer:
        user = self._gate.check(request.path, request.headers)
        authorization.check(user, request)
        place = paths.read(request.path)
        if place is None or not place.plural:
            return self._fixed.answer(request)
        if place.group in Unstored.GROUPS:
            return await self._unstored.answer(request, place, user)
        kind = self._cluster.machinery.find(place.group, place.version, place.plural)
        if kind is None or (place.namespace is not None and not kind.namespaced):
            raise no_such_path()
        choices = self._choices(kind, place)
        verb = choices.get("GET" if request.method == "HEAD" else request.method)
        if verb is None:
            return _not_allowed(request, choices)
        return await verb(request, kind, place)

    def _choices(self, kind: Kind, place: Place) -> dict[str, Verb]:
        """What the methods mean at this place."""
        everywhere = kind.namespaced and place.namespace is None
        if not place.name:
            if everywhere:
                return {"GET": self._on_many["GET"]}
            return self._on_many if kind != NAMESPACE else {m: v for m, v in self._on_many.items() if m != "DELETE"}
        if everywhere:
            raise no_such_path()
        if not place.subresource:
            return self._on_one
        if place.subresource not in kind.subresources:
            raise no_such_path()
        return self._on_part.get(place.subresource, {})

    async def _logs(self, request: Request, _: Kind, place: Place) -> Answer:
        return await pod_log.logs(self._cluster, key_of(place), request.query)

    async def _needs_upgrade(self, request: Request, _: Kind, place: Place) -> Answer:
        """A command comes over a websocket. What else is wrong with it is said first: an older kubectl whose
        websocket was refused asks again this way and shows the second answer."""
        pod_exec.read_request(self._cluster, key_of(place), request.query)
        if b"upgrade" in request.headers:
            wanted = request.headers[b"upgrade"].decode("latin-1")
            raise bad_request(f"commands run over websockets here, not {wanted}; kubectl does so from version 1.31 on")
        raise bad_request("Upgrade request required")

    # One websocket

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await receive()  # the connect event
        try:
            authorization.check(self._gate.check(request.path, request.headers), request)
            place = paths.read(request.path)
            if place is None or (place.group, place.plural, place.subresource) != ("", POD.plural, "exec"):
                raise no_such_path()
            asked = query.read(request.query_string)
            pod, command, services = pod_exec.read_request(self._cluster, key_of(place), asked)
            protocol = pod_exec.choose_protocol(scope.get("subprotocols") or [])
        except Exception as error:
            await _refuse_websocket(_refusal(error, request), send)
            return
        await send({"type": "websocket.accept", "subprotocol": protocol})
        await self._streaming(pod_exec.converse(receive, send, asked, services=services, pod=pod, request=command))

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


def _not_allowed(request: Request, choices: dict[str, Verb]) -> Reply:
    allow = ((b"allow", ", ".join(sorted({*choices, "OPTIONS"})).encode()),)
    if request.method == "OPTIONS":
        return Reply(b"", 204, headers=allow)
    refusal = responses.of_error(method_not_allowed())
    return Reply(refusal.body, refusal.status, headers=allow)


def _refusal(error: Exception, request: Request) -> Reply:
    if isinstance(error, ApiError):
        return responses.of_error(error)
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    told = "Internal error occurred: the server ran into something it does not handle; its log says what"
    return responses.of_error(ApiError(500, "InternalError", told))


def _for_reader(answer: Reply | LongReply | ShapedList, request: Request) -> Reply | LongReply | ShapedList:
    """YAML or indented, for those who ask. An Accept header we cannot serve gets its refusal as JSON."""
    accept = request.headers.get(b"accept", b"")
    is_yaml = False
    if b"yaml" in accept:
        try:
            is_yaml = negotiation.read(accept).yaml
        except ApiError:
            return answer
    if not is_yaml and not request.is_for_people():
        return answer
    if isinstance(answer, Reply):
        return responses.as_yaml(answer) if is_yaml else responses.indented(answer) if answer.body else answer
    shaped = answer.shaped if isinstance(answer, LongReply) else answer
    return replace(shaped, content_type=responses.YAML) if is_yaml else replace(shaped, is_indented=True)


async def _refuse_websocket(reply: Reply, send: Send) -> None:
    headers = [(b"content-type", reply.content_type), (b"content-length", b"%d" % len(reply.body))]
    await send({"type": "websocket.http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": reply.body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
