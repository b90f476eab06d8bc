"""The embedded adapter: the machinery of this process behind the interface every program uses.

A response is sent only after the state it reports is committed. Agents of this process are found by node name in
`nodes`; logs, commands and measurements are theirs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from shoal.cluster.apimachinery import Machinery
from shoal.cluster.client import (
    DeleteOptions,
    LogOptions,
    NodeServices,
    Page,
    PatchType,
    WatchEvent,
    uid_error_as_conflict,
)
from shoal.cluster.clock import Clock
from shoal.cluster.registry import RegistrySettings
from shoal.cluster.types import ListOptions, WatchOptions, WriteOptions
from shoal.kube import kinds
from shoal.kube.errors import ApiError, bad_request, unavailable
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj

_decode = msgspec.json.Decoder().decode


def _key(kind: Kind, name: str, namespace: str) -> Key:
    return Key(namespace if kind.namespaced else "", name)


class EmbeddedCluster:
    """`client.Cluster` on the store of this process."""

    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery
        self.nodes: dict[str, NodeServices] = {}

    @classmethod
    async def open(
        cls, path: str | Path, *, settings: RegistrySettings | None = None, clock: Clock | None = None
    ) -> EmbeddedCluster:
        """A file, made where there is none, or ':memory:'."""
        return cls(Machinery.open(path, settings=settings, clock=clock))

    async def close(self) -> None:
        self.machinery.close()

    async def is_embedded(self) -> bool:
        return True

    # Reading

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return self.machinery.get(kind, _key(kind, name, namespace)).obj()

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
        options = ListOptions(labels, fields, limit, continue_token, resource_version)
        page = self.machinery.list(kind, namespace if kind.namespaced else None, options)
        items = [stored.obj() for stored in page.items]
        return Page(items, str(page.revision), page.continue_token, page.remaining)

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
        options = WatchOptions(
            resource_version, labels, fields, bookmarks, initial_events or None, timeout_seconds,
            "NotOlderThan" if initial_events else "",
        )  # fmt: skip
        watch = self.machinery.watch(kind, namespace if kind.namespaced else None, options)
        try:
            async for batch in watch:
                for event in batch:
                    yield WatchEvent(event.type, event.object(), event.stored_raw)
        finally:
            watch.close()

    # Writing

    async def create(
        self, kind: Kind, obj: Obj, namespace: str = "", *, field_manager: str = "shoal", dry_run: bool = False
    ) -> Obj:
        options = WriteOptions(field_manager, dry_run)
        copy = _decode(msgspec.json.encode(obj))  # the machinery takes objects over; the caller keeps its own
        written = self.machinery.create(kind, namespace, copy, options)
        await self.machinery.durable()
        return written.obj()

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
        options = WriteOptions(field_manager, dry_run, force=force)
        key = _key(kind, name, namespace)
        try:
            written = self.machinery.patch(kind, key, patch, patch_type, options, subresource)
        except ApiError as error:
            raise uid_error_as_conflict(kind, name, error) from None
        await self.machinery.durable()
        return written.obj()

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
        deleted = self.machinery.delete(kind, _key(kind, name, namespace), options)
        await self.machinery.durable()
        return deleted.stored.obj()

    async def bind(self, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
        binding: Obj = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        if uid:
            binding["metadata"]["uid"] = uid
        self.machinery.bind(Key(namespace, pod), binding)
        await self.machinery.durable()

    async def evict(self, pod: str, namespace: str, options: DeleteOptions | None = None) -> None:
        options = options or DeleteOptions()
        preconditions = options.preconditions
        delete_options = {
            "gracePeriodSeconds": options.grace_seconds,
            "propagationPolicy": options.propagation,
            "preconditions": {"uid": preconditions.uid, "resourceVersion": preconditions.resource_version},
        }
        eviction: Obj = {"metadata": {"name": pod}, "deleteOptions": delete_options}
        self.machinery.evict(Key(namespace, pod), eviction, dry_run=options.dry_run)
        await self.machinery.durable()

    # Kinds

    async def find_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind of such manifests; None where it is not served."""
        type_meta = (api_version, kind)
        return next((each for each in self.machinery.kinds() if (each.api_version, each.kind) == type_meta), None)

    # Nodes

    async def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]:
        pod_object = await self.get(kinds.POD, pod, namespace)
        async for chunk in self.node_services_of(pod_object).logs(pod_object, options):
            yield chunk

    def node_services_of(self, pod: Obj) -> NodeServices:
        """What the pod's node offers; 400 before it has one, 503 while its agent is away."""
        name = pod["metadata"]["name"]
        node = pod["spec"].get("nodeName")
        if not node:
            raise bad_request(f"pod {name} does not have a host assigned")
        services = self.nodes.get(node)
        if services is None:
            raise unavailable(f"the agent of node {node}, where pod {name} is placed, is not running here")
        return services
