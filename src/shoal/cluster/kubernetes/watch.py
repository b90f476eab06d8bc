"""Changes as they come: chunks split into lines, lines into events, and lists that begin a watch.

A stream that ends is normal, however it ends: whoever reads goes on from the last version seen. Only what the server
says itself is an error: 410 where the version is no longer kept, or a refusal. Lists stream where the server can do
that; where it says it cannot, they come in pages and the watch follows from there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import aiohttp
import msgspec

from shoal.cluster.client import EventType, Page, WatchEvent
from shoal.cluster.kubernetes.errors import no_json, refusal
from shoal.cluster.kubernetes.field_decoders import Decoders, named
from shoal.cluster.kubernetes.paths import asked, path_of, truth
from shoal.cluster.kubernetes.request import JSON, LIST_OF_METADATA, METADATA, Request
from shoal.cluster.kubernetes.transport import Wire
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

PAGE = 500
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_TYPES = {each.value: each for each in EventType}
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is watched."""

    kind: Kind
    namespace: str | None
    labels: str = ""
    fields: str = ""
    bookmarks: bool = True
    timeout_seconds: float | None = None

    def path(self, resource_version: str, *, streaming: bool = False) -> str:
        return asked(
            path_of(self.kind, self.namespace),
            watch="true",
            labelSelector=self.labels,
            fieldSelector=self.fields,
            resourceVersion=resource_version,
            allowWatchBookmarks=truth(self.bookmarks or streaming),
            timeoutSeconds="" if self.timeout_seconds is None else str(int(self.timeout_seconds)),
            sendInitialEvents=truth(streaming),
            resourceVersionMatch="NotOlderThan" if streaming else "",
        )


class Watcher:
    """Lists and watches of one server."""

    def __init__(self, wire: Wire, decoders: Decoders) -> None:
        self._wire = wire
        self._decoders = decoders
        self._streams_lists = True  # until the server says that it does not

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
        path = asked(
            path_of(kind, namespace), labelSelector=labels, fieldSelector=fields, limit=str(limit or ""),
            resourceVersion=resource_version, **{"continue": continue_token},
        )  # fmt: skip
        decoder = self._decoders.of(kind)
        accept = LIST_OF_METADATA if decoder.reads_metadata_only else JSON
        request = Request("GET", path, accept=accept, repeatable=True, verb="list", resource=kind.plural)
        body = await self._wire.ask(request)
        try:
            items, about = decoder.items(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise no_json(self._wire.connection, str(request)) from None
        for item in items:  # a list says once what its items are
            item["apiVersion"], item["kind"] = kind.api_version, kind.kind
        return Page(items, about.resource_version, about.continue_token, about.remaining)

    async def changes(self, wanted: Wanted, resource_version: str) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(self._events(wanted, wanted.path(resource_version))) as events:
            async for event in events:
                yield event

    async def everything(self, wanted: Wanted, resource_version: str) -> AsyncGenerator[WatchEvent, None]:
        """First what there is, then a bookmark that says so, then what changes."""
        if self._streams_lists:
            try:
                path = wanted.path(resource_version, streaming=True)
                async with aclosing(self._events(wanted, path)) as events:
                    async for event in events:
                        yield event
                return
            except ApiError as refused:
                if not _is_no_streaming(refused):
                    raise
                self._streams_lists = False
        async with aclosing(self._from_pages(wanted)) as events:
            async for event in events:
                yield event

    async def _from_pages(self, wanted: Wanted) -> AsyncGenerator[WatchEvent, None]:
        items, version = await self._listed(wanted)
        for item in items:
            yield WatchEvent(EventType.ADDED, item)
        end = {"annotations": {INITIAL_EVENTS_END: "true"}, "resourceVersion": version}
        yield WatchEvent(EventType.BOOKMARK, {"metadata": end})
        async with aclosing(self.changes(wanted, version)) as events:
            async for event in events:
                yield event

    async def _listed(self, wanted: Wanted) -> tuple[list[Obj], str]:
        """All pages of one moment. Where that moment is forgotten before the last is read, all at once instead."""
        items: list[Obj] = []
        token, is_first = "", True
        while token or is_first:
            try:
                page = await self._page(wanted, limit=PAGE, token=token)
            except ApiError as refused:
                if refused.code != 410 or is_first:
                    raise
                items.clear()  # what came already may be gone by now, and nobody would tell
                page = await self._page(wanted)
            items += page.items
            token, is_first = page.continue_token, False
        return items, page.resource_version

    async def _page(self, wanted: Wanted, *, limit: int = 0, token: str = "") -> Page:
        return await self.page(
            wanted.kind, wanted.namespace, labels=wanted.labels, fields=wanted.fields, limit=limit, continue_token=token
        )

    async def _events(self, wanted: Wanted, path: str) -> AsyncGenerator[WatchEvent, None]:
        decoder = self._decoders.of(wanted.kind)
        by_metadata = decoder.reads_metadata_only
        request = Request(
            "GET", path, accept=METADATA if by_metadata else JSON, repeatable=True, urgent=True,
            verb="watch", resource=wanted.kind.plural,
        )  # fmt: skip
        quiet = self._wire.settings.quiet_seconds if wanted.bookmarks else None
        async with self._wire.stream(request, quiet_seconds=quiet) as content:
            lines = lines_of(content.iter_any())
            while (several := await _next(lines)) is not None:
                for line in several:
                    try:
                        kind, obj = decoder.told(line)
                    except (msgspec.DecodeError, UnicodeDecodeError):
                        raise no_json(self._wire.connection, str(request)) from None
                    if kind == "ERROR":
                        raise refusal(obj)
                    yield WatchEvent(_TYPES[kind], named(obj, wanted.kind) if by_metadata else obj)


def _is_no_streaming(refused: ApiError) -> bool:
    return refused.code == 400 or (refused.code == 422 and "sendInitialEvents" in refused.message)


async def _next(lines: AsyncIterator[list[bytes]]) -> list[bytes] | None:
    """None at the end, whether the server closed the stream or it broke."""
    try:
        return await anext(lines, None)
    except _BROKEN:
        return None


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
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
