"""`client.Cluster` over HTTP, and what only a real API server has besides.

Thin on purpose: a verb is a path, a query and a body. Reads and applications are sent again where that is safe,
everything else raises OutcomeUnknown when its answer got lost.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from shoal.cluster.client import (
    DeleteOptions,
    ExecRequest,
    LogOptions,
    OutcomeUnknown,
    Page,
    PatchType,
    Streams,
    WatchEvent,
    uid_error_as_conflict,
)
from shoal.cluster.clock import Clock
from shoal.cluster.kubeconfig import ConnectionConfig
from shoal.cluster.kubernetes import discovery_client, exec_client
from shoal.cluster.kubernetes.api_request import JSON, LIST_OF_METADATA, METADATA, ApiRequest
from shoal.cluster.kubernetes.discovery_client import AccessReview, Version
from shoal.cluster.kubernetes.failures import Unreachable
from shoal.cluster.kubernetes.field_decoders import Decoders, set_type_meta
from shoal.cluster.kubernetes.list_watch import Watcher, WatchRequest
from shoal.cluster.kubernetes.transport import OnRequest, Transport, TransportSettings
from shoal.cluster.kubernetes.url_paths import (
    bool_param,
    delete_options_body,
    int_param,
    path_of,
    with_query,
    write_query,
)
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE, POD, Kind
from shoal.kube.objects import Obj

_encode = msgspec.json.Encoder().encode
_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}


class KubernetesCluster:
    """Use `open_client`, or call `close` at the end. `shapes` selects what is decoded of lists and watches of a
    kind. `answers` selects what is decoded of all other responses about it, for a client that writes many pods and
    reads only their uids.
    """

    def __init__(
        self,
        connection: ConnectionConfig,
        *,
        shapes: Mapping[Kind, Any] | None = None,
        answers: Mapping[Kind, Any] | None = None,
        settings: TransportSettings | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        note: OnRequest = lambda _, __: None,
    ) -> None:
        """`note` is called for each request that is sent, with its verb and its resource."""
        self.transport = Transport(connection, settings, clock=clock, rng=rng, note=note)
        self._decoders = Decoders(answers or {})
        self._watcher = Watcher(self.transport, Decoders(shapes or {}))

    async def close(self) -> None:
        await self.transport.close()

    # Reading

    async def get(self, kind: Kind, name: str, namespace: str = "", *, subresource: str = "") -> Obj:
        return await self._request(kind, "GET", path_of(kind, namespace, name, subresource), repeatable=True)

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
        return await self._watcher.page(
            kind, namespace, labels=labels, fields=fields, limit=limit, continue_token=continue_token,
            resource_version=resource_version,
        )  # fmt: skip

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
        wanted = WatchRequest(kind, namespace, labels, fields, bookmarks, timeout_seconds)
        follow = self._watcher.list_and_watch if initial_events else self._watcher.watch
        async with aclosing(follow(wanted, resource_version)) as events:
            async for event in events:
                yield event

    # Writing

    async def create(
        self, kind: Kind, obj: Obj, namespace: str = "", *, field_manager: str = "shoal", dry_run: bool = False
    ) -> Obj:
        manifest = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        path = path_of(kind, namespace) + write_query(field_manager, dry_run=dry_run)
        return await self._request(kind, "POST", path, manifest, repeatable=dry_run)

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
        path = path_of(kind, namespace, name, subresource)
        path += write_query(field_manager, dry_run=dry_run, force=force)
        repeatable = dry_run or patch_type is PatchType.APPLY
        try:
            return await self._request(kind, "PATCH", path, patch, content_type=patch_type.value, repeatable=repeatable)
        except ApiError as refused:
            raise uid_error_as_conflict(kind, name, refused) from None

    async def apply(
        self,
        kind: Kind,
        obj: Obj,
        namespace: str = "",
        *,
        field_manager: str = "shoal",
        force: bool = False,
        dry_run: bool = False,
        subresource: str = "",
    ) -> Obj:
        """Server-side apply: these fields shall be so, and are ours; 409 where another owns one, unless `force`."""
        manifest = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return await self.patch(
            kind, obj["metadata"]["name"], namespace, patch=manifest, patch_type=PatchType.APPLY,
            subresource=subresource, field_manager=field_manager, force=force, dry_run=dry_run,
        )  # fmt: skip

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
        """Retried where a kept connection broke at once; a 404 then also means that it is gone."""
        if not name:
            raise ValueError(f"which {kind.kind} to delete? without a name it would be all of them")
        return await self._request(kind, "DELETE", path_of(kind, namespace, name), delete_options_body(options))

    async def delete_collection(
        self, kind: Kind, namespace: str, *, labels: str = "", fields: str = "", options: DeleteOptions | None = None
    ) -> None:
        """Everything the selectors choose in one namespace; '' where the kind has none."""
        if kind.namespaced and not namespace:
            raise ValueError("a collection is deleted in one namespace at a time: name it")
        path = with_query(path_of(kind, namespace), labelSelector=labels, fieldSelector=fields)
        await self._request(
            kind,
            "DELETE",
            path,
            delete_options_body(options),
            repeatable=True,
            latency_class="",
            metadata=LIST_OF_METADATA,
        )

    async def scale(self, kind: Kind, name: str, namespace: str, replicas: int) -> Obj:
        """The Scale it has then."""
        return await self.patch(kind, name, namespace, patch={"spec": {"replicas": replicas}}, subresource="scale")

    # Pods

    async def bind(self, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
        meta = {"name": pod, "namespace": namespace} | ({"uid": uid} if uid else {})
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self._request(POD, "POST", path_of(POD, namespace, pod, "binding"), binding)

    async def evict(self, pod: str, namespace: str, options: DeleteOptions | None = None) -> None:
        """A deletion that checks the disruption budgets first; 429 where they do not allow it now."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": delete_options_body(options),
        }
        await self._request(POD, "POST", path_of(POD, namespace, pod, "eviction"), eviction)

    async def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]:
        path = with_query(
            path_of(POD, namespace, pod, "log"),
            container=options.container,
            follow=bool_param(options.follow),
            previous=bool_param(options.previous),
            timestamps=bool_param(options.timestamps),
            tailLines=int_param(options.tail_lines),
            sinceSeconds=int_param(options.since_seconds),
            sinceTime=options.since_time,
            limitBytes=int_param(options.limit_bytes),
        )
        async with self.transport.stream(
            ApiRequest("GET", path, accept="*/*", repeatable=True, urgent=True, resource="pods")
        ) as content:
            try:
                async for chunk in content.iter_any():
                    yield chunk
            except (aiohttp.ClientError, OSError) as broken:
                raise OutcomeUnknown(f"the log of pod {namespace}/{pod} broke off: {broken}") from None

    async def execute(self, pod: str, namespace: str, request: ExecRequest, streams: Streams) -> int:
        """Run a command in a container; its exit code."""
        return await exec_client.execute(self.transport, pod, namespace, request, streams)

    # The server

    async def find_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind of such manifests, as this server serves it; None where it does not."""
        return await discovery_client.find_kind(self.transport, api_version, kind)

    async def served_versions(self, group: str, kind: str) -> Sequence[Kind]:
        """The kind in every version it is served in, the preferred one first."""
        return await discovery_client.served_versions(self.transport, group, kind)

    async def check_access(
        self, verb: str, kind: Kind, namespace: str = "", name: str = "", subresource: str = ""
    ) -> AccessReview:
        return await discovery_client.review_access(self.transport, verb, kind, namespace, name, subresource)

    async def version(self) -> Version:
        return await discovery_client.server_version(self.transport)

    async def is_embedded(self) -> bool:
        """Whether it is a cluster of `shoal up`. A server that does not give its version is none."""
        try:
            return (await self.version()).is_shoal
        except (ApiError, Unreachable):
            return False

    async def require_supported(self) -> Version | None:
        """Raises Unreachable, with a message, if the server is too old."""
        return await discovery_client.require_supported(self.transport)

    async def require_unserved(self) -> Version | None:
        """Raises Unreachable also where the cluster serves its jobs itself, as that of `shoal up` does."""
        return await discovery_client.require_unserved(self.transport)

    async def _request(
        self,
        kind: Kind,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        repeatable: bool = False,
        latency_class: str | None = None,
        metadata: str = METADATA,
    ) -> Obj:
        data, decoder = None if body is None else _encode(body), self._decoders.of(kind)
        request = ApiRequest(
            method, path, data, content_type, repeatable=repeatable, urgent=kind == LEASE,
            latency_class=method if latency_class is None else latency_class, verb=_VERBS[method], resource=kind.plural,
            accept=metadata if decoder.reads_metadata_only else JSON,
        )  # fmt: skip
        response = await self.transport.send(request)
        return set_type_meta(
            decoder.object(response) or discovery_client.decode_response(response, self.transport, request), kind
        )


@asynccontextmanager
async def open_client(connection: ConnectionConfig, **options: Any) -> AsyncGenerator[KubernetesCluster, None]:
    """A client, closed at the end; `options` is what KubernetesCluster takes besides."""
    cluster = KubernetesCluster(connection, **options)
    try:
        yield cluster
    finally:
        await cluster.close()
