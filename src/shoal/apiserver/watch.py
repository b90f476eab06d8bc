"""A watch over HTTP: one JSON line per event, one write per batch.

A version that is no longer kept is not an HTTP error: the stream opens and its only event says 410, so that
clients list again. Frames of plain events are made once and shared by all watchers; only Tables and metadata
cost decoding, for each watcher that asks for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime

from shoal.apiserver import object_responses, responses, table_conversion
from shoal.apiserver.negotiation import Form
from shoal.apiserver.query import Query
from shoal.apiserver.responses import Stream, encode
from shoal.cluster.client import EventType
from shoal.cluster.types import RawEvent
from shoal.cluster.watch import Watch
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


async def opened(watch: Watch, kind: Kind, form: Form, asked: Query, clock: Callable[[], datetime]) -> Stream:
    if form.shape == "Table":
        table_conversion.included(asked)  # a wrong parameter is refused before the stream begins
    frames = _plain(watch) if not form.shape else _shaped(watch, kind, form, asked, clock)
    return Stream(frames, watch.close, must_be_read=True)


async def _plain(watch: Watch) -> AsyncIterator[bytes]:
    try:
        async for batch in watch:
            if sum(len(event.stored_raw) for event in batch) <= responses.PIECE_BYTES:
                yield b"".join([event.frame for event in batch]) if len(batch) > 1 else batch[0].frame
                continue
            for event in batch:  # large ones leave in pieces of what is stored: a watch that is not read keeps no copy
                for piece in responses.pieces((event.frame_head, event.stored_raw, event.frame_tail)):
                    yield piece
    except ApiError as error:
        yield _error(error)


async def _shaped(
    watch: Watch, kind: Kind, form: Form, asked: Query, clock: Callable[[], datetime]
) -> AsyncIterator[bytes]:
    first = True
    try:
        async for batch in watch:
            lines = []
            for event in batch:
                lines.append(_line(event, kind, form, asked, clock(), first=first))
                first = False  # the headers of a Table come once
            yield b"".join(lines)
    except ApiError as error:
        yield _error(error)


def _line(event: RawEvent, kind: Kind, form: Form, asked: Query, now: datetime, *, first: bool) -> bytes:
    obj: Obj = event.object()
    if form.shape == "Table" and event.type is EventType.BOOKMARK:
        shaped = table_conversion.table(
            kind, [], form=form, include="None", meta=obj["metadata"], now=now, headers=False
        )
    else:
        shaped = object_responses.shaped(kind, obj, form, asked, now, headers=first)
    return encode({"type": event.type.value, "object": shaped}) + b"\n"


def _error(error: ApiError) -> bytes:
    return encode({"type": "ERROR", "object": error.status()}) + b"\n"
