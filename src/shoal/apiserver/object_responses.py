"""Stored objects as responses: the bytes as stored, or the form the client requested."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from shoal.apiserver import responses, table_conversion
from shoal.apiserver.negotiation import ResponseForm
from shoal.apiserver.query import Query
from shoal.apiserver.responses import BytesResponse, ListResponse, SharedListResponse
from shoal.cluster.types import Stored, StoredPage
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


def object_response(
    kind: Kind,
    stored: Stored,
    form: ResponseForm,
    params: Query,
    now: datetime,
    *,
    status: int = 200,
    warnings: tuple[str, ...] = (),
) -> BytesResponse:
    headers = responses.warning_headers(warnings) if warnings else ()
    if not form.shape:
        return BytesResponse(stored.raw, status, headers=headers)
    return responses.object_bytes_response(convert_object(kind, stored.obj(), form, params, now), status, headers)


def convert_object(
    kind: Kind, obj: Obj, form: ResponseForm, params: Query, now: datetime, *, headers: bool = True
) -> Obj:
    """One object as a Table of one row, or its metadata."""
    if form.shape == "Table":
        version = (obj.get("metadata") or {}).get("resourceVersion")
        meta = {"resourceVersion": version} if version else {}
        include = table_conversion.include_parameter(params)
        return table_conversion.table(kind, [obj], form=form, include=include, meta=meta, now=now, headers=headers)
    if form.shape == "PartialObjectMetadata":
        return table_conversion.metadata_only(obj, form)
    raise ApiError(406, "NotAcceptable", f"you requested {form.shape}, but the requested object is not a list")


def list_response(
    kind: Kind, page: StoredPage, form: ResponseForm, params: Query, now: datetime
) -> BytesResponse | SharedListResponse | ListResponse:
    meta: Obj = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    if not form.shape:
        return _list(kind, page, meta)
    if form.shape == "Table":
        include = table_conversion.include_parameter(params)

        def rows() -> Iterator[bytes]:
            objects = (stored.obj() for stored in page.items)
            return (
                responses.encode(table_conversion.row(kind, obj, form=form, include=include, now=now))
                for obj in objects
            )

        return _send_at_once_if_short(page, ListResponse(table_conversion.table_head(kind, form, meta), "rows", rows))
    if form.shape == "PartialObjectMetadataList":

        def items() -> Iterator[bytes]:
            return (responses.encode(table_conversion.metadata_only(stored.obj(), form)) for stored in page.items)

        return _send_at_once_if_short(
            page, ListResponse(table_conversion.metadata_list_head(form, meta), "items", items)
        )
    raise ApiError(
        406, "NotAcceptable", f"you requested {form.shape}, but the requested object is a list ({kind.list_kind})"
    )


def _send_at_once_if_short(page: StoredPage, response: ListResponse) -> BytesResponse | ListResponse:
    """A short list is made at once."""
    if _size(page) > responses.CHUNK_BYTES:
        return response
    return BytesResponse(b"".join(response.parts()).rstrip(b"\n"))


def _size(page: StoredPage) -> int:
    return sum(len(stored.raw) for stored in page.items)


def _list(kind: Kind, page: StoredPage, meta: Obj) -> BytesResponse | SharedListResponse:
    """A list is its items one after the other: nothing is decoded, and of a long one nothing is copied."""
    head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta}
    # Items of a built-in list omit its apiVersion and kind; stored bytes begin with them.
    prefix_length = 0 if kind.custom else len(b'{"apiVersion":"","kind":"",') + len(kind.api_version) + len(kind.kind)

    def items() -> Iterator[bytes]:
        return (b"{" + stored.raw[prefix_length:] if prefix_length else stored.raw for stored in page.items)

    opening = responses.encode(head)[:-1]
    if _size(page) <= responses.CHUNK_BYTES:
        return BytesResponse(b"".join((opening, b',"items":[', b",".join(items()), b"]}")))
    parts: list[bytes | memoryview] = [opening, b',"items":[']
    for stored in page.items:
        parts += (b"{", memoryview(stored.raw)[prefix_length:], b",") if prefix_length else (stored.raw, b",")
    parts[-1] = b"]}"
    return SharedListResponse(tuple(parts), ListResponse(head, "items", items))


def deleted_status(kind: Kind, stored: Stored) -> Obj:
    """What a delete answers once the object is gone, for kinds that do not show it a last time."""
    details = {"name": stored.key.name}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.plural, "uid": stored.uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
