"""Stored objects as answers: the bytes as they lie in the store, or the shape the client asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from shoal.apiserver import responses, table_conversion
from shoal.apiserver.negotiation import Form
from shoal.apiserver.query import Query
from shoal.apiserver.responses import LongReply, Reply, ShapedList
from shoal.cluster.types import Stored, StoredPage
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


def one(
    kind: Kind,
    stored: Stored,
    form: Form,
    asked: Query,
    now: datetime,
    *,
    status: int = 200,
    warnings: tuple[str, ...] = (),
) -> Reply:
    headers = responses.warning_headers(warnings) if warnings else ()
    if not form.shape:
        return Reply(stored.raw, status, headers=headers)
    return responses.of_object(shaped(kind, stored.obj(), form, asked, now), status, headers)


def shaped(kind: Kind, obj: Obj, form: Form, asked: Query, now: datetime, *, headers: bool = True) -> Obj:
    """One object as a Table of one row, or its metadata."""
    if form.shape == "Table":
        version = (obj.get("metadata") or {}).get("resourceVersion")
        meta = {"resourceVersion": version} if version else {}
        include = table_conversion.included(asked)
        return table_conversion.table(kind, [obj], form=form, include=include, meta=meta, now=now, headers=headers)
    if form.shape == "PartialObjectMetadata":
        return table_conversion.metadata_only(obj, form)
    raise ApiError(406, "NotAcceptable", f"you requested {form.shape}, but the requested object is not a list")


def many(kind: Kind, page: StoredPage, form: Form, asked: Query, now: datetime) -> Reply | LongReply | ShapedList:
    meta: Obj = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    if not form.shape:
        return _list(kind, page, meta)
    if form.shape == "Table":
        include = table_conversion.included(asked)

        def rows() -> Iterator[bytes]:
            objects = (stored.obj() for stored in page.items)
            return (
                responses.encode(table_conversion.row(kind, obj, form=form, include=include, now=now))
                for obj in objects
            )

        return _made(page, ShapedList(table_conversion.table_head(kind, form, meta), "rows", rows))
    if form.shape == "PartialObjectMetadataList":

        def items() -> Iterator[bytes]:
            return (responses.encode(table_conversion.metadata_only(stored.obj(), form)) for stored in page.items)

        return _made(page, ShapedList(table_conversion.metadata_list_head(form, meta), "items", items))
    raise ApiError(
        406, "NotAcceptable", f"you requested {form.shape}, but the requested object is a list ({kind.list_kind})"
    )


def _made(page: StoredPage, answer: ShapedList) -> Reply | ShapedList:
    """A short list is made at once."""
    if _size(page) > responses.PIECE_BYTES:
        return answer
    return Reply(b"".join(answer.parts()).rstrip(b"\n"))


def _size(page: StoredPage) -> int:
    return sum(len(stored.raw) for stored in page.items)


def _list(kind: Kind, page: StoredPage, meta: Obj) -> Reply | LongReply:
    """A list is its items one after the other: nothing is decoded, and of a long one nothing is copied."""
    head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta}
    # An item of a built-in list does not repeat what the list says; stored bytes begin with it.
    said = 0 if kind.custom else len(b'{"apiVersion":"","kind":"",') + len(kind.api_version) + len(kind.kind)

    def items() -> Iterator[bytes]:
        return (b"{" + stored.raw[said:] if said else stored.raw for stored in page.items)

    opening = responses.encode(head)[:-1]
    if _size(page) <= responses.PIECE_BYTES:
        return Reply(b"".join((opening, b',"items":[', b",".join(items()), b"]}")))
    parts: list[bytes | memoryview] = [opening, b',"items":[']
    for stored in page.items:
        parts += (b"{", memoryview(stored.raw)[said:], b",") if said else (stored.raw, b",")
    parts[-1] = b"]}"
    return LongReply(tuple(parts), ShapedList(head, "items", items))


def deleted(kind: Kind, stored: Stored) -> Obj:
    """What a delete answers once the object is gone, for kinds that do not show it a last time."""
    details = {"name": stored.key.name}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.plural, "uid": stored.uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
