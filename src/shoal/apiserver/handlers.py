"""What a request does to stored objects: list, get, watch, create, update, patch, delete, deletecollection.

Each verb reads its options, calls the machinery and waits until a write is durable before it responds. The order of
checks (form of the response, body, options) is that of kube-apiserver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from shoal.apiserver import (
    object_responses,
    query,
    request_body,
    responses,
    watch_stream,
)
from shoal.apiserver.request import Request
from shoal.apiserver.request_body import DecodedBody
from shoal.apiserver.request_info import RequestInfo
from shoal.apiserver.responses import BytesResponse, ListResponse, SharedListResponse, StreamResponse
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.client import PatchType
from shoal.cluster.types import WriteOptions, WriteResult
from shoal.kube.errors import ApiError, bad_request, unsupported_media_type
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj

# Kinds whose delete shows the object a last time; the others answer with a Status.
_RETURNED_WHEN_DELETED = frozenset(
    {"pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims", "namespaces"}
)
_MAX_PATCH_OPERATIONS = 10_000


class ResourceHandlers:
    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery

    async def list_or_watch(
        self, request: Request, kind: Kind, info: RequestInfo
    ) -> BytesResponse | SharedListResponse | ListResponse | StreamResponse:
        params = request.query
        if info.watched or query.flag(params, "watch"):
            return await self._watch(request, kind, info)
        form = request.form()
        page = self.machinery.list(kind, info.namespace, query.list_options(params))
        return object_responses.list_response(kind, page, form, params, self.machinery.clock.now())

    async def get_or_watch(self, request: Request, kind: Kind, info: RequestInfo) -> BytesResponse | StreamResponse:
        params = request.query
        if info.watched or query.flag(params, "watch"):
            return await self._watch(request, kind, info)
        form = request.form()
        stored = self.machinery.get(kind, key_of(info), subresource=info.subresource)
        return object_responses.object_response(kind, stored, form, params, self.machinery.clock.now())

    async def _watch(self, request: Request, kind: Kind, info: RequestInfo) -> StreamResponse:
        form = request.form(streaming=True)
        options = query.watch_options(request.query)
        if info.name:
            only = f"metadata.name={info.name}"
            options = replace(options, fields=f"{options.fields},{only}" if options.fields else only)
        watch = self.machinery.watch(kind, info.namespace, options)
        return await watch_stream.watch_response(watch, kind, form, request.query, self.machinery.clock.now)

    async def create(self, request: Request, kind: Kind, info: RequestInfo) -> BytesResponse:
        form = request.form()
        data = await request.body()
        options = query.write_options(request.query, request.user_agent, "Create")
        body = request_body.decode_object(data, request.content_type, kind)
        warnings = _duplicates(body, kind, options)
        written = self.machinery.create(kind, info.namespace or "", body.value, options)
        await self._wait_durable(options)
        return self._write_response(request, kind, written, form, warnings, status=201)

    async def update(self, request: Request, kind: Kind, info: RequestInfo) -> BytesResponse:
        form = request.form()
        data = await request.body()
        options = query.write_options(request.query, request.user_agent, "Update")
        body = request_body.decode_object(data, request.content_type, kind)
        warnings = _duplicates(body, kind, options)
        written = self.machinery.update(kind, key_of(info), body.value, options, subresource=info.subresource)
        await self._wait_durable(options)
        return self._write_response(request, kind, written, form, warnings, status=201 if written.created else 200)

    async def patch(self, request: Request, kind: Kind, info: RequestInfo) -> BytesResponse:
        patch_type = _patch_type(request, kind)
        form = request.form()
        data = await request.body()
        options = query.write_options(request.query, request.user_agent, "Patch", patch_type)
        body = _decode_patch(data, patch_type)
        warnings = _duplicates(body, kind, options)
        written = self.machinery.patch(
            kind, key_of(info), body.value, patch_type, options, subresource=info.subresource
        )
        await self._wait_durable(options)
        return self._write_response(request, kind, written, form, warnings, status=201 if written.created else 200)

    async def delete(self, request: Request, kind: Kind, info: RequestInfo) -> BytesResponse:
        form = request.form()
        options = query.delete_options(request.query, await _options_body(request))
        outcome = self.machinery.delete(kind, key_of(info), options)
        if not options.dry_run:
            await self.machinery.durable()
        if outcome.removed and (kind.group or kind.plural not in _RETURNED_WHEN_DELETED):
            return responses.object_bytes_response(object_responses.deleted_status(kind, outcome.stored))
        return object_responses.object_response(kind, outcome.stored, form, request.query, self.machinery.clock.now())

    async def delete_many(
        self, request: Request, kind: Kind, info: RequestInfo
    ) -> BytesResponse | SharedListResponse | ListResponse:
        form = request.form()
        body = await _options_body(request)
        selection = query.list_options(request.query)
        options = query.delete_options(request.query, body)
        page = self.machinery.delete_collection(kind, info.namespace, selection, options)
        if not options.dry_run:
            await self.machinery.durable()
        return object_responses.list_response(kind, page, form, request.query, self.machinery.clock.now())

    async def _wait_durable(self, options: WriteOptions) -> None:
        if not options.dry_run:
            await self.machinery.durable()

    def _write_response(
        self, request: Request, kind: Kind, written: WriteResult, form: Any, warnings: tuple[str, ...], *, status: int
    ) -> BytesResponse:
        all_warnings = warnings + written.warnings
        if not form.shape and not all_warnings:
            return BytesResponse(written.stored.raw, status)
        now = self.machinery.clock.now()
        return object_responses.object_response(
            kind, written.stored, form, request.query, now, status=status, warnings=all_warnings
        )


def key_of(info: RequestInfo) -> Key:
    return Key(info.namespace or "", info.name)


def _duplicates(body: DecodedBody, kind: Kind, options: WriteOptions) -> tuple[str, ...]:
    """Duplicate keys: rejected, reported as warnings or ignored, as the client requested."""
    if not body.duplicates or options.field_validation == "Ignore":
        return ()
    if options.field_validation == "Strict":
        request_body.reject_duplicates(body.duplicates, kind)
    return tuple(f'duplicate field "{path}"' for path in body.duplicates)


async def _options_body(request: Request) -> Obj | None:
    data = await request.body()
    return request_body.decode_options(data, request.content_type) if data else None


def _patch_type(request: Request, kind: Kind) -> PatchType:
    supported = [t for t in PatchType if not (kind.custom and t is PatchType.STRATEGIC)]
    content_type = request_body.content_type(request.content_type)
    for patch_type in supported:
        if patch_type.value == content_type:
            return patch_type
    if not kind.custom:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    listed = ", ".join(t.value for t in supported)
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {listed}"
    )


def _decode_patch(data: bytes, patch_type: PatchType) -> DecodedBody:
    if patch_type is PatchType.APPLY:
        try:
            body = request_body.decode_yaml(data)
        except request_body.MalformedBody as problem:
            raise bad_request(f"error decoding YAML: {problem}") from None
        if not isinstance(body.value, dict):
            raise bad_request("error decoding YAML: the applied configuration must be an object")
        return body
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        where = request_body.json_problem(data, error)
        raise bad_request(f"error decoding patch: invalid JSON: {where}") from None
    if patch_type is not PatchType.JSON:
        if not isinstance(value, dict):
            raise bad_request(f"error decoding patch: must be an object, not {request_body.describe_type(value)}")
        return DecodedBody(value)
    if not isinstance(value, list):
        found = request_body.describe_type(value)
        raise bad_request(f"error decoding patch: must be a list of operations, not {found}")
    if len(value) > _MAX_PATCH_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {_MAX_PATCH_OPERATIONS}, got {len(value)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
    return DecodedBody(value)
