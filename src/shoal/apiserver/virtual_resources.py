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
from shoal.apiserver.paths import Place
from shoal.apiserver.request import Request
from shoal.apiserver.responses import Reply
from shoal.cluster import object_validation
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.types import ListOptions
from shoal.kube.errors import method_not_allowed, no_such_path
from shoal.kube.kinds import NODE, POD, Kind
from shoal.kube.objects import Obj

_KINDS = {(kind.group, kind.version, kind.plural): kind for kind in (*discovery.REVIEW_KINDS, *discovery.METRIC_KINDS)}
_BINDING = Kind("", "v1", "Binding", "bindings")
_EVICTION = Kind("policy", "v1", "Eviction", "evictions")


class Unstored:
    GROUPS = frozenset(group for group, _, _ in _KINDS)

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    async def answer(self, request: Request, place: Place, user: User) -> Reply:
        kind = _KINDS.get((place.group, place.version, place.plural))
        if kind is None or place.subresource or (place.namespace is not None and not kind.namespaced):
            raise no_such_path()
        if kind in discovery.REVIEW_KINDS:
            return await self._review(request, kind, place, user)
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return await self._metrics(request, kind, place)

    async def _review(self, request: Request, kind: Kind, place: Place, user: User) -> Reply:
        if request.method != "POST" or place.name:
            raise method_not_allowed()
        return responses.of_object(access_review.answer(kind, await _decoded(request, kind), user), 201)

    async def _metrics(self, request: Request, kind: Kind, place: Place) -> Reply:
        form = request.form()
        items = await self._measured(request, kind, place)
        now = self._cluster.machinery.clock.now()
        if place.name:
            if not items:
                raise metrics_api.missing(kind, place.name)
            return responses.of_object(
                object_responses.shaped(kind, items[0], form, request.query, now) if form.shape else items[0]
            )
        if form.shape == "Table":
            include = table_conversion.included(request.query)
            return responses.of_object(
                table_conversion.table(kind, items, form=form, include=include, meta={}, now=now)
            )
        return responses.of_object(metrics_api.as_list(kind, items))

    async def _measured(self, request: Request, kind: Kind, place: Place) -> list[Obj]:
        machinery = self._cluster.machinery
        measured = NODE if kind.kind == "NodeMetrics" else POD
        if place.name:
            objects = [machinery.get(measured, key_of(place)).obj()]
        else:
            selection = ListOptions(labels=query.text(request.query, "labelSelector"))
            objects = [stored.obj() for stored in machinery.list(measured, place.namespace, selection).items]
        usages = await metrics_api.gather(self._cluster.nodes)
        now = machinery.clock.now()
        if measured is NODE:
            known = [node for node in objects if node["metadata"]["name"] in usages]
            return [metrics_api.node_metrics(kind, node, usages[node["metadata"]["name"]], now) for node in known]
        found = (metrics_api.pod_metrics(kind, pod, usages, now) for pod in objects)
        return [item for item in found if item is not None]

    async def bind(self, request: Request, _: Kind, place: Place) -> Reply:
        binding = await _decoded(request, _BINDING)
        self._cluster.machinery.bind(key_of(place), binding, dry_run=_is_dry(request))
        await self._cluster.machinery.durable()
        return responses.of_object(_SUCCESS, 201)

    async def evict(self, request: Request, _: Kind, place: Place) -> Reply:
        eviction = await _decoded(request, _EVICTION)
        self._cluster.machinery.evict(key_of(place), eviction, dry_run=_is_dry(request))
        await self._cluster.machinery.durable()
        return responses.of_object(_SUCCESS, 201)


_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def _decoded(request: Request, kind: Kind) -> Obj:
    """The object in the body, each value of the type its kind has there."""
    body = request_body.decode_object(await request.body(), request.content_type, kind)
    return object_validation.decoded(kind, body.value, "Ignore").obj


def _is_dry(request: Request) -> bool:
    return query.write_options(request.query, request.user_agent, "Create").dry_run
