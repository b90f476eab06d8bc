"""Lists and watches: chunks split into lines, lines into events, and lists that begin a watch.

A stream that ends is normal, however it ends: the reader resumes from the last version seen. Only what the server
reports itself is an error: 410 where the version is no longer kept, or a rejection. Lists stream where the server
supports that; otherwise they are read in pages and the watch follows from there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import aiohttp
import msgspec

from shoal.cluster.client import Page, WatchEvent, WatchEventType
from shoal.cluster.kubernetes.api_request import JSON, LIST_OF_METADATA, METADATA, ApiRequest
from shoal.cluster.kubernetes.failures import error_from_status, not_json
from shoal.cluster.kubernetes.field_decoders import Decoders, set_type_meta
from shoal.cluster.kubernetes.transport import Transport
from shoal.cluster.kubernetes.url_paths import bool_param, path_of, with_query
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

PAGE = 500
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_TYPES = {each.value: each for each in WatchEventType}
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What is watched."""

    kind: Kind
    namespace: str | None
    labels: str = ""
    fields: str = ""
    bookmarks: bool = True
    timeout_seconds: float | None = None

    def path(self, resource_version: str, *, streaming: bool = False) -> str:
        return with_query(
            path_of(self.kind, self.namespace),
            watch="true",
            labelSelector=self.labels,
            fieldSelector=self.fields,
            resourceVersion=resource_version,
            allowWatchBookmarks=bool_param(self.bookmarks or streaming),
            timeoutSeconds="" if self.timeout_seconds is None else str(int(self.timeout_seconds)),
            sendInitialEvents=bool_param(streaming),
            resourceVersionMatch="NotOlderThan" if streaming else "",
        )


class Watcher:
    """Lists and watches of one server."""

    def __init__(self, transport: Transport, decoders: Decoders) -> None:
        self._transport = transport
        self._decoders = decoders
        self._streams_lists = True  # until the server reports that it does not

    async def page(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Page:
        path = with_query(
            path_of(kind, namespace), labelSelector=labels, fieldSelector=fields, limit=str(limit or ""),
            resourceVersion=resource_version, **{"continue": continue_token},
        )  # fmt: skip
        decoder = self._decoders.of(kind)
        accept = LIST_OF_METADATA if decoder.reads_metadata_only else JSON
        request = ApiRequest("GET", path, accept=accept, repeatable=True, verb="list", resource=kind.plural)
        body = await self._transport.send(request)
        try:
            items, metadata = decoder.items(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise not_json(self._transport.connection, str(request)) from None
        for item in items:  # a list states once what its items are
            item["apiVersion"], item["kind"] = kind.api_version, kind.kind
        return Page(items, metadata.resource_version, metadata.continue_token, metadata.remaining)

    async def watch(self, watch_request: WatchRequest, resource_version: str) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(self._events(watch_request, watch_request.path(resource_version))) as events:
            async for event in events:
                yield event

    async def list_and_watch(
        self, watch_request: WatchRequest, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """First what exists, then a bookmark that marks its end, then what changes."""
        if self._streams_lists:
            try:
                path = watch_request.path(resource_version, streaming=True)
                async with aclosing(self._events(watch_request, path)) as events:
                    async for event in events:
                        yield event
                return
            except ApiError as refused:
                if refused.code != 400 and not (refused.code == 422 and "sendInitialEvents" in refused.message):
                    raise
                self._streams_lists = False
        items, version = await self._list_pages(watch_request)
        for item in items:
            yield WatchEvent(WatchEventType.ADDED, item)
        end = {"annotations": {INITIAL_EVENTS_END: "true"}, "resourceVersion": version}
        yield WatchEvent(WatchEventType.BOOKMARK, {"metadata": end})
        async with aclosing(self.watch(watch_request, version)) as events:
            async for event in events:
                yield event

    async def _list_pages(self, watch_request: WatchRequest) -> tuple[list[Obj], str]:
        """All pages at one revision. Where that is compacted before the last page is read, one list without pages."""
        items: list[Obj] = []
        token, is_first = "", True
        while token or is_first:
            try:
                page = await self._page(watch_request, limit=PAGE, token=token)
            except ApiError as refused:
                if refused.code != 410 or is_first:
                    raise
                items.clear()  # earlier items may be gone by now, without any event
                page = await self._page(watch_request)
            items += page.items
            token, is_first = page.continue_token, False
        return items, page.resource_version

    async def _page(self, watch_request: WatchRequest, *, limit: int = 0, token: str = "") -> Page:
        return await self.page(
            watch_request.kind,
            watch_request.namespace,
            labels=watch_request.labels,
            fields=watch_request.fields,
            limit=limit,
            continue_token=token,
        )

    async def _events(self, watch_request: WatchRequest, path: str) -> AsyncGenerator[WatchEvent, None]:
        decoder = self._decoders.of(watch_request.kind)
        by_metadata = decoder.reads_metadata_only
        request = ApiRequest(
            "GET", path, accept=METADATA if by_metadata else JSON, repeatable=True, urgent=True,
            verb="watch", resource=watch_request.kind.plural,
        )  # fmt: skip
        idle = self._transport.settings.idle_seconds if watch_request.bookmarks else None
        async with self._transport.stream(request, idle_seconds=idle) as content:
            lines = split_lines(content.iter_any())
            while True:
                try:
                    batch = await anext(lines, None)
                except _BROKEN:
                    return
                if batch is None:
                    return
                for line in batch:
                    try:
                        kind, obj = decoder.event(line)
                    except (msgspec.DecodeError, UnicodeDecodeError):
                        raise not_json(self._transport.connection, str(request)) from None
                    if kind == "ERROR":
                        raise error_from_status(obj)
                    yield WatchEvent(_TYPES[kind], set_type_meta(obj, watch_request.kind) if by_metadata else obj)


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """All whole lines of each chunk. A line may be longer than any reader's limit, so it is put together here."""
    pieces: list[bytes] = []
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*pieces, whole[0]))
            pieces = []
            yield [line for line in whole if line]
        if rest:
            pieces.append(rest)
