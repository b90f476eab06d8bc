"""`port.Cluster` over HTTP, and what only a real API server has besides.

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
    uid_is_a_conflict,
)
from shoal.cluster.clock import Clock
from shoal.cluster.kubeconfig import Connection
from shoal.cluster.kubernetes import discovery, pod_exec
from shoal.cluster.kubernetes.discovery import Access, Version
from shoal.cluster.kubernetes.errors import Unreachable
from shoal.cluster.kubernetes.field_decoders import Decoders, named
from shoal.cluster.kubernetes.paths import asked, deletion, number, path_of, truth, writing
from shoal.cluster.kubernetes.request import JSON, LIST_OF_METADATA, METADATA, Request
from shoal.cluster.kubernetes.transport import Noted, Settings, Wire
from shoal.cluster.kubernetes.watch import Wanted, Watcher
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE, POD, Kind
from shoal.kube.objects import Obj

_encode = msgspec.json.Encoder().encode
_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}


class KubernetesCluster:
    """Use `opened`, or call `close` at the end. `shapes` says what is decoded of lists and watches of a kind, `answers`
    what is decoded of all other answers about it: who writes many pods and reads only their uids says so."""

    def __init__(
        self,
        connection: Connection,
        *,
        shapes: Mapping[Kind, Any] | None = None,
        answers: Mapping[Kind, Any] | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        note: Noted = lambda _, __: None,
    ) -> None:
        """`note` hears of each request that leaves: its verb and its resource."""
        self.wire = Wire(connection, settings, clock=clock, chance=chance, note=note)
        self._answers = Decoders(answers or {})
        self._watcher = Watcher(self.wire, Decoders(shapes or {}))

    async def close(self) -> None:
        await self.wire.close()

    # Reading

    async def get(self, kind: Kind, name: str, namespace: str = "", *, subresource: str = "") -> Obj:
        return await self._ask(kind, "GET", path_of(kind, namespace, name, subresource), repeatable=True)

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
        wanted = Wanted(kind, namespace, labels, fields, bookmarks, timeout_seconds)
        follow = self._watcher.everything if initial_events else self._watcher.changes
        async with aclosing(follow(wanted, resource_version)) as events:
            async for event in events:
                yield event

    # Writing

    async def create(
        self, kind: Kind, obj: Obj, namespace: str = "", *, field_manager: str = "shoal", dry_run: bool = False
    ) -> Obj:
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        path = writing(path_of(kind, namespace), field_manager, dry_run=dry_run)
        return await self._ask(kind, "POST", path, whole, repeatable=dry_run)

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
        path = writing(path, field_manager, dry_run=dry_run, force=force)
        repeatable = dry_run or patch_type is PatchType.APPLY
        try:
            return await self._ask(kind, "PATCH", path, patch, content_type=patch_type.value, repeatable=repeatable)
        except ApiError as refused:
            raise uid_is_a_conflict(kind, name, refused) from None

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
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return await self.patch(
            kind, obj["metadata"]["name"], namespace, patch=whole, patch_type=PatchType.APPLY,
            subresource=subresource, field_manager=field_manager, force=force, dry_run=dry_run,
        )  # fmt: skip

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
        """Asked again where a kept connection broke at once; a 404 then says as well that it is gone."""
        if not name:
            raise ValueError(f"which {kind.kind} to delete? without a name it would be all of them")
        return await self._ask(kind, "DELETE", path_of(kind, namespace, name), deletion(options))

    async def delete_collection(
        self, kind: Kind, namespace: str, *, labels: str = "", fields: str = "", options: DeleteOptions | None = None
    ) -> None:
        """Everything the selectors choose in one namespace; '' where the kind has none."""
        if kind.namespaced and not namespace:
            raise ValueError("a collection is deleted in one namespace at a time: name it")
        path = asked(path_of(kind, namespace), labelSelector=labels, fieldSelector=fields)
        await self._ask(kind, "DELETE", path, deletion(options), repeatable=True, sort="", metadata=LIST_OF_METADATA)

    async def scale(self, kind: Kind, name: str, namespace: str, replicas: int) -> Obj:
        """The Scale it has then."""
        return await self.patch(kind, name, namespace, patch={"spec": {"replicas": replicas}}, subresource="scale")

    # Pods

    async def bind(self, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
        meta = {"name": pod, "namespace": namespace} | ({"uid": uid} if uid else {})
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self._ask(POD, "POST", path_of(POD, namespace, pod, "binding"), binding)

    async def evict(self, pod: str, namespace: str, options: DeleteOptions | None = None) -> None:
        """A deletion that asks the disruption budgets first; 429 where they do not allow it now."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": deletion(options),
        }
        await self._ask(POD, "POST", path_of(POD, namespace, pod, "eviction"), eviction)

    async def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]:
        path = asked(
            path_of(POD, namespace, pod, "log"),
            container=options.container,
            follow=truth(options.follow),
            previous=truth(options.previous),
            timestamps=truth(options.timestamps),
            tailLines=number(options.tail_lines),
            sinceSeconds=number(options.since_seconds),
            sinceTime=options.since_time,
            limitBytes=number(options.limit_bytes),
        )
        async with self.wire.stream(
            Request("GET", path, accept="*/*", repeatable=True, urgent=True, resource="pods")
        ) as content:
            try:
                async for chunk in content.iter_any():
                    yield chunk
            except (aiohttp.ClientError, OSError) as broken:
                raise OutcomeUnknown(f"the log of pod {namespace}/{pod} broke off: {broken}") from None

    async def execute(self, pod: str, namespace: str, request: ExecRequest, streams: Streams) -> int:
        """Run a command in a container; its exit code."""
        return await pod_exec.execute(self.wire, pod, namespace, request, streams)

    # The server

    async def find_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind of such manifests, as this server serves it; None where it does not."""
        return await discovery.find_kind(self.wire, api_version, kind)

    async def served_versions(self, group: str, kind: str) -> Sequence[Kind]:
        """The kind in every version it is served in, the preferred one first."""
        return await discovery.served_versions(self.wire, group, kind)

    async def may(self, verb: str, kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> Access:
        return await discovery.review(self.wire, verb, kind, namespace, name, subresource)

    async def version(self) -> Version:
        return await discovery.version_of(self.wire)

    async def is_embedded(self) -> bool:
        """Whether it is a cluster of `shoal up`. A server that does not give its version is none."""
        try:
            return (await self.version()).is_ours
        except (ApiError, Unreachable):
            return False

    async def require_supported(self) -> Version | None:
        """Raises Unreachable, with a sentence, where the server is too old."""
        return await discovery.require_supported(self.wire)

    async def require_unserved(self) -> Version | None:
        """Raises Unreachable also where the cluster serves its jobs itself, as that of `shoal up` does."""
        return await discovery.require_unserved(self.wire)

    async def _ask(
        self,
        kind: Kind,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        repeatable: bool = False,
        sort: str | None = None,
        metadata: str = METADATA,
    ) -> Obj:
        data, decoder = None if body is None else _encode(body), self._answers.of(kind)
        request = Request(
            method, path, data, content_type, repeatable=repeatable, urgent=kind == LEASE,
            sort=method if sort is None else sort, verb=_VERBS[method], resource=kind.plural,
            accept=metadata if decoder.reads_metadata_only else JSON,
        )  # fmt: skip
        answer = await self.wire.ask(request)
        return named(decoder.one(answer) or discovery.decoded(answer, self.wire, request), kind)


@asynccontextmanager
async def opened(connection: Connection, **how: Any) -> AsyncGenerator[KubernetesCluster, None]:
    """A client, closed at the end; `how` is what KubernetesCluster takes besides."""
    cluster = KubernetesCluster(connection, **how)
    try:
        yield cluster
    finally:
        await cluster.close()
