"""A watch over HTTP: one JSON line per event, one write per batch.

A version that is no longer kept is not an HTTP error: the stream opens and its only event is a 410, so that
clients list again. Frames of plain events are made once and shared by all watchers; only Tables and metadata
cost decoding, for each watcher that requests them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime

from shoal.apiserver import object_responses, responses, table_conversion
from shoal.apiserver.negotiation import ResponseForm
from shoal.apiserver.query import Query
from shoal.apiserver.responses import StreamResponse, encode
from shoal.cluster.client import WatchEventType
from shoal.cluster.watch import Watch
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


async def watch_response(
    watch: Watch, kind: Kind, form: ResponseForm, params: Query, clock: Callable[[], datetime]
) -> StreamResponse:
    if form.shape == "Table":
        table_conversion.include_parameter(params)  # a wrong parameter is refused before the stream begins
    frames = _plain(watch) if not form.shape else _converted(watch, kind, form, params, clock)
    return StreamResponse(frames, watch.close, has_send_timeout=True)


async def _plain(watch: Watch) -> AsyncIterator[bytes]:
    try:
        async for batch in watch:
            if sum(len(event.stored_raw) for event in batch) <= responses.CHUNK_BYTES:
                yield b"".join([event.frame for event in batch]) if len(batch) > 1 else batch[0].frame
                continue
            for event in batch:  # large ones leave in pieces of what is stored: a watch that is not read keeps no copy
                for piece in responses.chunks_of((event.frame_head, event.stored_raw, event.frame_tail)):
                    yield piece
    except ApiError as error:
        yield _error(error)


async def _converted(
    watch: Watch, kind: Kind, form: ResponseForm, params: Query, clock: Callable[[], datetime]
) -> AsyncIterator[bytes]:
    first = True
    try:
        async for batch in watch:
            lines = []
            for event in batch:
                obj: Obj = event.object()
                if form.shape == "Table" and event.type is WatchEventType.BOOKMARK:
                    shaped = table_conversion.table(
                        kind, [], form=form, include="None", meta=obj["metadata"], now=clock(), headers=False
                    )
                else:
                    shaped = object_responses.convert_object(kind, obj, form, params, clock(), headers=first)
                lines.append(encode({"type": event.type.value, "object": shaped}) + b"\n")
                first = False  # the headers of a Table come once
            yield b"".join(lines)
    except ApiError as error:
        yield _error(error)


def _error(error: ApiError) -> bytes:
    return encode({"type": "ERROR", "object": error.status()}) + b"\n"
