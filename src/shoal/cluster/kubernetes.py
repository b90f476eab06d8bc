"""The adapter for any API server: the port's verbs as HTTP requests, with one connection pool.

Thin on purpose: objects stay dictionaries, a refusal is the Status the server sent, and a request that left and was
not answered raises OutcomeUnknown. Watches are read in chunks and split here, because lines may be long. Where a
server does not know streaming lists, the list comes in pages and the watch follows from there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import aiohttp
import msgspec

from shoal.cluster.connecting import Connection
from shoal.cluster.port import (
    DeleteOptions,
    EventType,
    LogOptions,
    OutcomeUnknown,
    Page,
    PatchType,
    WatchEvent,
    uid_is_a_conflict,
)
from shoal.kube.errors import ApiError
from shoal.kube.kinds import BUILT_IN, POD, Kind
from shoal.kube.objects import Obj

PAGE = 500
JSON = "application/json"
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_NEVER_SENT = aiohttp.ClientConnectorError


class KubernetesCluster:
    """`port.Cluster` over HTTP. Use `opened`, or call `close` at the end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        forever = aiohttp.ClientTimeout(total=None, connect=30)
        connector = aiohttp.TCPConnector(limit=0, ssl=connection.trust or False)
        self._session = aiohttp.ClientSession(
            connector=connector, headers=dict(connection.headers), timeout=forever, auto_decompress=True
        )

    async def close(self) -> None:
        await self._session.close()

    # Reading

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return await self._ask("GET", path_of(kind, namespace, name))

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Page:
        asked = _selection(labels, fields) | _given(
            limit=str(limit) if limit else "", **{"continue": continue_token}, resourceVersion=resource_version
        )
        found = await self._ask("GET", path_of(kind, namespace), asked)
        meta = found.get("metadata") or {}
        items = [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in found.get("items") or ()]
        return Page(
            items, meta.get("resourceVersion") or "", meta.get("continue") or "", meta.get("remainingItemCount")
        )

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout_seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        asked = {"watch": "true"} | _selection(labels, fields)
        asked |= _given(
            resourceVersion=resource_version,
            allowWatchBookmarks="true" if bookmarks else "",
            timeoutSeconds=str(int(timeout_seconds)) if timeout_seconds is not None else "",
        )
        streaming = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"} if initial_events else {}
        try:
            async with aclosing(self._events(kind, namespace, asked | streaming)) as events:
                async for event in events:
                    yield event
            return
        except ApiError as refused:
            if not initial_events or refused.code not in (400, 422):
                raise
        async with aclosing(self._listed_then_watched(kind, namespace, labels, fields, asked)) as events:
            async for event in events:
                yield event

    async def _listed_then_watched(
        self, kind: Kind, namespace: str | None, labels: str, fields: str, asked: Mapping[str, str]
    ) -> AsyncGenerator[WatchEvent, None]:
        """For servers without streaming lists: the same events, from pages."""
        token, version = "", ""
        while True:
            page = await self.list(kind, namespace, labels=labels, fields=fields, limit=PAGE, continue_token=token)
            version = page.resource_version
            for item in page.items:
                yield WatchEvent(EventType.ADDED, item)
            token = page.continue_token
            if not token:
                break
        end = {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": version}
        yield WatchEvent(EventType.BOOKMARK, {"metadata": end})
        async with aclosing(self._events(kind, namespace, {**asked, "resourceVersion": version})) as events:
            async for event in events:
                yield event

    async def _events(
        self, kind: Kind, namespace: str | None, asked: Mapping[str, str]
    ) -> AsyncGenerator[WatchEvent, None]:
        async with self._answered("GET", path_of(kind, namespace), asked) as answer:
            try:
                async for line in _lines(answer.content.iter_any()):
                    yield _event(line)
            except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError):
                return  # a stream that ends is normal: it is resumed from the last version seen

    # Writing

    async def create(
        self, kind: Kind, obj: Obj, namespace: str = "", *, field_manager: str = "shoal", dry_run: bool = False
    ) -> Obj:
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return await self._ask("POST", path_of(kind, namespace), _writing(field_manager, dry_run=dry_run), whole)

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        patch: Obj | Sequence[Obj],
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "shoal",
        force: bool = False,
        dry_run: bool = False,
    ) -> Obj:
        asked = _writing(field_manager, dry_run=dry_run) | _given(force="true" if force else "")
        path = path_of(kind, namespace, name, subresource)
        try:
            return await self._ask("PATCH", path, asked, patch, patch_type.value)
        except ApiError as refused:
            raise uid_is_a_conflict(kind, name, refused) from None

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
        options = options or DeleteOptions()
        wanted = options.preconditions
        body: Obj = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if options.grace_seconds is not None:
            body["gracePeriodSeconds"] = options.grace_seconds
        if options.propagation is not None:
            body["propagationPolicy"] = options.propagation.value
        if wanted.uid or wanted.resource_version:
            body["preconditions"] = _given(uid=wanted.uid or "", resourceVersion=wanted.resource_version or "")
        if options.dry_run:
            body["dryRun"] = ["All"]
        return await self._ask("DELETE", path_of(kind, namespace, name), {}, body)

    async def bind(self, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
        meta = _given(name=pod, namespace=namespace, uid=uid)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self._ask("POST", path_of(POD, namespace, pod, "binding"), {}, binding)

    # Pods

    async def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]:
        asked = _given(
            container=options.container,
            follow="true" if options.follow else "",
            previous="true" if options.previous else "",
            timestamps="true" if options.timestamps else "",
            tailLines=_number(options.tail_lines),
            sinceSeconds=_number(options.since_seconds),
            sinceTime=options.since_time or "",
            limitBytes=_number(options.limit_bytes),
        )
        async with self._answered("GET", path_of(POD, namespace, pod, "log"), asked) as answer:
            async for chunk in answer.content.iter_any():
                yield chunk

    # Kinds

    async def find_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind of such manifests, as this server serves it; None where it does not."""
        group, _, version = api_version.rpartition("/")
        known = next((each for each in BUILT_IN if (each.api_version, each.kind) == (api_version, kind)), None)
        if known is not None:
            return known
        try:
            served = await self._ask("GET", f"/apis/{group}/{version}" if group else f"/api/{version}")
        except ApiError as refused:
            if refused.code == 404:
                return None
            raise
        for entry in served.get("resources") or ():
            if entry["kind"] == kind and "/" not in entry["name"]:
                return Kind(group, version, kind, entry["name"], namespaced=entry["namespaced"], custom=True)
        return None

    # Requests

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Obj:
        try:
            async with self._answered(method, path, query, body, content_type) as answer:
                found: Obj = _decode(await answer.read())
                return found
        except _NEVER_SENT as unreachable:
            raise ConnectionError(f"{self._connection.url} cannot be reached: {unreachable.os_error}") from None
        except (aiohttp.ClientError, TimeoutError) as broken:
            raise OutcomeUnknown(f"{method} {path} was not answered: {broken or type(broken).__name__}") from None

    @asynccontextmanager
    async def _answered(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """The response to a request that was not refused."""
        headers = {"Accept": JSON} if body is None else {"Accept": JSON, "Content-Type": content_type}
        data = None if body is None else _encode(body)
        url = f"{self._connection.url}{path}"
        async with self._session.request(method, url, params=dict(query or {}), data=data, headers=headers) as answer:
            if answer.status >= 400:
                raise _refusal(answer.status, await answer.read())
            yield answer


@asynccontextmanager
async def opened(connection: Connection) -> AsyncGenerator[KubernetesCluster, None]:
    cluster = KubernetesCluster(connection)
    try:
        yield cluster
    finally:
        await cluster.close()


def path_of(kind: Kind, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """Where objects of the kind are; `namespace` None or '' means all of them."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
    return "/".join(part for part in (f"{root}{within}/{kind.plural}", name, subresource) if part)


def _given(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _selection(labels: str, fields: str) -> dict[str, str]:
    return _given(labelSelector=labels, fieldSelector=fields)


def _writing(manager: str, *, dry_run: bool) -> dict[str, str]:
    return _given(fieldManager=manager, dryRun="All" if dry_run else "")


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    pieces: list[bytes] = []
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join((*pieces, line))
            pieces.clear()
        if rest:
            pieces.append(rest)


def _event(line: bytes) -> WatchEvent:
    told = cast(dict[str, Any], _decode(line))
    if told["type"] == "ERROR":
        status = told["object"]
        raise ApiError(
            status.get("code") or 500, status.get("reason") or "", status.get("message") or "", status.get("details")
        )
    return WatchEvent(EventType(told["type"]), told["object"])


def _refusal(code: int, body: bytes) -> ApiError:
    try:
        status = cast(dict[str, Any], _decode(body))
        return ApiError(code, status.get("reason") or "", status["message"], status.get("details"))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        text = body.decode(errors="replace").strip()[:500]
        return ApiError(code, "", text or f"the server answered {code} without a word")
