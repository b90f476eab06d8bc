"""Requests that are answered without keeping an object: reviews, measurements, bindings and evictions."""

from __future__ import annotations

from shoal.apiserver import (
    access_review,
    discovery,
    metrics_api,
    object_responses,
    query,
    request_body,
    responses,
    table_conversion,
)
from shoal.apiserver.auth import User
from shoal.apiserver.handlers import key_of
from shoal.apiserver.request import Request
from shoal.apiserver.request_info import RequestInfo
from shoal.apiserver.responses import BytesResponse
from shoal.cluster import object_validation
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.types import ListOptions
from shoal.kube.errors import method_not_allowed, no_such_path
from shoal.kube.kinds import NODE, POD, Kind
from shoal.kube.objects import Obj

_KINDS = {(kind.group, kind.version, kind.plural): kind for kind in (*discovery.REVIEW_KINDS, *discovery.METRIC_KINDS)}
_BINDING = Kind("", "v1", "Binding", "bindings")
_EVICTION = Kind("policy", "v1", "Eviction", "evictions")


class VirtualResources:
    GROUPS = frozenset(group for group, _, _ in _KINDS)

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    async def respond(self, request: Request, info: RequestInfo, user: User) -> BytesResponse:
        kind = _KINDS.get((info.group, info.version, info.plural))
        if kind is None or info.subresource or (info.namespace is not None and not kind.namespaced):
            raise no_such_path()
        if kind in discovery.REVIEW_KINDS:
            if request.method != "POST" or info.name:
                raise method_not_allowed()
            review = await _decode_body(request, kind)
            return responses.object_bytes_response(access_review.respond(kind, review, user), 201)
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return await self._metrics(request, kind, info)

    async def _metrics(self, request: Request, kind: Kind, info: RequestInfo) -> BytesResponse:
        form = request.form()
        items = await self._metrics_objects(request, kind, info)
        now = self._cluster.machinery.clock.now()
        if info.name:
            if not items:
                raise metrics_api.missing(kind, info.name)
            return responses.object_bytes_response(
                object_responses.convert_object(kind, items[0], form, request.query, now) if form.shape else items[0]
            )
        if form.shape == "Table":
            include = table_conversion.include_parameter(request.query)
            return responses.object_bytes_response(
                table_conversion.table(kind, items, form=form, include=include, meta={}, now=now)
            )
        return responses.object_bytes_response(metrics_api.as_list(kind, items))

    async def _metrics_objects(self, request: Request, kind: Kind, info: RequestInfo) -> list[Obj]:
        machinery = self._cluster.machinery
        measured_kind = NODE if kind.kind == "NodeMetrics" else POD
        if info.name:
            objects = [machinery.get(measured_kind, key_of(info)).obj()]
        else:
            selection = ListOptions(labels=query.text(request.query, "labelSelector"))
            objects = [stored.obj() for stored in machinery.list(measured_kind, info.namespace, selection).items]
        usages = await metrics_api.gather(self._cluster.nodes)
        now = machinery.clock.now()
        if measured_kind is NODE:
            known = [node for node in objects if node["metadata"]["name"] in usages]
            return [metrics_api.node_metrics(kind, node, usages[node["metadata"]["name"]], now) for node in known]
        found = (metrics_api.pod_metrics(kind, pod, usages, now) for pod in objects)
        return [item for item in found if item is not None]

    async def bind(self, request: Request, _: Kind, info: RequestInfo) -> BytesResponse:
        binding = await _decode_body(request, _BINDING)
        self._cluster.machinery.bind(key_of(info), binding, dry_run=_is_dry(request))
        await self._cluster.machinery.durable()
        return responses.object_bytes_response(_SUCCESS, 201)

    async def evict(self, request: Request, _: Kind, info: RequestInfo) -> BytesResponse:
        eviction = await _decode_body(request, _EVICTION)
        self._cluster.machinery.evict(key_of(info), eviction, dry_run=_is_dry(request))
        await self._cluster.machinery.durable()
        return responses.object_bytes_response(_SUCCESS, 201)


_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def _decode_body(request: Request, kind: Kind) -> Obj:
    """The object in the body, each value of the type its kind has there."""
    body = request_body.decode_object(await request.body(), request.content_type, kind)
    return object_validation.decode_object(kind, body.value, "Ignore").obj


def _is_dry(request: Request) -> bool:
    return query.write_options(request.query, request.user_agent, "Create").dry_run
