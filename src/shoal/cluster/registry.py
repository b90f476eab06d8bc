"""What all verbs share: the served kinds, the store below them, the clock, randomness, and one way to write.

A `Resource` is one kind as it is served: its table, its strategy, and its converter where it is stored in another
version. Custom resources are served as long as their definition exists, also when a write of it is rolled back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import IPv4Network
from typing import Any

import msgspec

from shoal.cluster.admission import Admission
from shoal.cluster.clock import Clock
from shoal.cluster.conversion import ApiVersionConverter, EventConverter, VersionConverter
from shoal.cluster.quota_admission import QuotaUsage
from shoal.cluster.selection import fields_of
from shoal.cluster.store import Row, Store, Table
from shoal.cluster.strategies import Strategy, strategy_of
from shoal.cluster.types import Stored
from shoal.kube import kinds, structural_schema
from shoal.kube.conditions import is_true
from shoal.kube.errors import no_such_path, not_found, too_large
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj
from shoal.kube.times import rfc3339

LARGEST_OBJECT_BYTES = 3 << 19  # 1.5 MiB, as etcd has it

SERVICE_NETWORK = IPv4Network("10.96.0.0/16")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

# Built-in kinds that are stored as another: that one, and how they differ from it.
_CONVERTERS: dict[Kind, tuple[Kind, VersionConverter]] = {
    kinds.EVENT_V1: (kinds.EVENT, EventConverter()),
    kinds.REPLICA_SET_V1BETA1: (kinds.REPLICA_SET, ApiVersionConverter(kinds.REPLICA_SET_V1BETA1, kinds.REPLICA_SET)),
}


@dataclass(frozen=True, slots=True)
class Resource:
    kind: Kind  # the requested version
    storage_kind: Kind  # the version it is stored in
    table: Table
    strategy: Strategy
    converter: VersionConverter | None = None

    def from_storage(self, stored: Stored) -> Stored:
        if self.converter is None:
            return stored
        return replace(stored, kind=self.kind, raw=self.converter.from_storage(stored.raw))

    @property
    def is_storage_version(self) -> bool:
        return self.kind.api_version == self.storage_kind.api_version

    def decode(self, stored: Stored) -> Obj:
        """The stored object, decoded, in the requested version."""
        raw = stored.raw if self.converter is None else self.converter.from_storage(stored.raw)
        obj: Obj = _decode(raw)
        return obj


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """What can be configured about a cluster."""

    service_network: IPv4Network = SERVICE_NETWORK
    event_seconds: float = 3600.0  # how long an Event is kept after its last write


class Core:
    """State and randomness. Every change of the state is made by `put` and `remove`."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random, settings: RegistrySettings) -> None:
        self.store = store
        self.clock = clock
        self.rng = rng
        self.settings = settings
        self.admissions: dict[str, Admission] = {}  # by the name of the resource
        self.service_addresses: set[str] = set()
        self._storage_resources: dict[str, Resource] = {}
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str, str], Resource] = {}
        self._custom_kinds: dict[str, list[Kind]] = {}  # by definition name
        for kind in kinds.BUILT_IN:
            self._serve(kind, *_CONVERTERS.get(kind, (kind, None)))
        self.definitions = self.resource(kinds.CUSTOM_RESOURCE_DEFINITION)
        self.namespaces = self.resource(kinds.NAMESPACE)
        self.pods = self.resource(kinds.POD)
        self.quotas = QuotaUsage(self.resource(kinds.RESOURCE_QUOTA).table, self.pods.table)
        self._services = self.resource(kinds.SERVICE)
        self._priorities = self.resource(kinds.PRIORITY_CLASS)
        self._default_known = False
        self._default_priority: Obj | None = None
        store.observers.append(self._observe)

    # Kinds

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(resource.kind for resource in self._resources.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        found = self._resources.get((group, version, plural))
        return found.kind if found else None

    def resource(self, kind: Kind) -> Resource:
        """404 where the kind is not served (any more)."""
        found = self._resources.get((kind.group, kind.version, kind.plural))
        if found is None:
            raise no_such_path()
        return found

    def by_reference(self, api_version: str, kind: str) -> Resource | None:
        """The resource an owner reference or an involved object refers to."""
        group, _, version = api_version.rpartition("/")
        return self._by_kind.get((group, version, kind))

    def storage_resources(self) -> list[Resource]:
        """Each stored resource once, under the version it is stored in."""
        return list(self._storage_resources.values())

    def storage_resource(self, table: Table) -> Resource | None:
        return self._storage_resources.get(table.resource)

    def _serve(self, kind: Kind, storage_kind: Kind, converter: VersionConverter | None) -> None:
        resource = Resource(kind, storage_kind, self.store.table(storage_kind.resource), strategy_of(kind), converter)
        if kind is storage_kind:
            self._storage_resources[storage_kind.resource] = resource
        self._resources[kind.group, kind.version, kind.plural] = resource
        self._by_kind[kind.group, kind.version, kind.kind] = resource

    def _observe(self, table: Table, before: Stored | None, after: Stored | None) -> None:
        if table is self.definitions.table:
            if before is not None:
                self._storage_resources.pop(before.key.name, None)
                for kind in self._custom_kinds.pop(before.key.name, ()):
                    self._resources.pop((kind.group, kind.version, kind.plural), None)
                    self._by_kind.pop((kind.group, kind.version, kind.kind), None)
            if after is not None:
                self._serve_definition(after.obj())
        elif table is self._services.table:
            if before is not None:
                self.service_addresses.discard(before.fields["spec.clusterIP"])
            if after is not None and after.fields["spec.clusterIP"] not in ("", "None"):
                self.service_addresses.add(after.fields["spec.clusterIP"])
        elif table is self._priorities.table:
            self._default_known = False
        else:
            self.quotas.observe(table, before, after)

    def _serve_definition(self, definition: Obj) -> None:
        served = structural_schema.kinds_of(definition) if is_true(definition, "Established") else ()
        if not served:
            return
        version = next(v["name"] for v in definition["spec"]["versions"] if v.get("storage"))
        # The version objects are stored in need not be one that is served.
        storage_kind = next((kind for kind in served if kind.version == version), replace(served[0], version=version))
        # What any version selects by is taken out of every object.
        storage_kind = replace(
            storage_kind, selectable=tuple(dict.fromkeys(path for kind in served for path in kind.selectable))
        )
        self._custom_kinds[definition["metadata"]["name"]] = list(served)
        for kind in served:
            self._serve(kind, storage_kind, ApiVersionConverter(kind, storage_kind))
        table = self.store.table(storage_kind.resource)
        converter = ApiVersionConverter(storage_kind, storage_kind)
        self._storage_resources[storage_kind.resource] = Resource(
            storage_kind, storage_kind, table, strategy_of(storage_kind), converter
        )
        # The definition may select by other fields than before.
        for key, stored in table.objects.items():
            fields = fields_of(storage_kind, key, stored.obj()) if storage_kind.selectable else stored.fields
            table.objects[key] = replace(stored, kind=storage_kind, fields=fields)

    def default_priority(self) -> Obj | None:
        """The PriorityClass of pods that name none, where there is one."""
        if not self._default_known:
            found = (stored.obj() for stored in self._priorities.table.objects.values())
            self._default_priority = next((p for p in found if p.get("globalDefault")), None)
            self._default_known = True
        return self._default_priority

    # Objects

    def now(self) -> str:
        return rfc3339(self.clock.now())

    def now_datetime(self) -> datetime:
        return self.clock.now()

    def new_uid(self) -> str:
        """A random UUID of version 4, as `uuid.uuid4` makes, from our own generator."""
        bits = self.rng.getrandbits(128)
        bits = bits & ~(0xF << 76) & ~(0x3 << 62) | 4 << 76 | 2 << 62
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def stored(self, resource: Resource, key: Key) -> Stored:
        found = resource.table.objects.get(key)
        if found is None:
            raise not_found(resource.kind, key.name)
        return found

    def put(self, resource: Resource, obj: Obj, before: Stored | None) -> Stored:
        """Write `obj` (in the version of `resource`) as the next revision. From now on it is read only."""
        stored = self.build_stored(resource, obj, self.store.revision + 1, before)
        self.store.put(resource.table, stored, obj if resource.is_storage_version else None)
        return stored

    def build_stored(self, resource: Resource, obj: Obj, revision: int, before: Stored | None) -> Stored:
        """The record of `obj` at `revision`; 0 leaves the object's own resourceVersion (a dry run)."""
        if resource.converter is not None:
            obj = resource.converter.to_storage(obj)
        meta = obj["metadata"]
        if revision:
            meta["resourceVersion"] = str(revision)
        storage_kind = resource.storage_kind
        # The type comes first in the bytes: conversions and lists cut it off there.
        ordered = {"apiVersion": storage_kind.api_version, "kind": storage_kind.kind, "metadata": meta}
        ordered.update(obj)
        ordered["apiVersion"] = storage_kind.api_version
        raw = _encode(ordered)
        if len(raw) > LARGEST_OBJECT_BYTES and meta.pop("managedFields", None):
            raw = _encode(ordered)
        if len(raw) > LARGEST_OBJECT_BYTES:
            raise too_large(
                f"Request entity too large: the object is {len(raw)} bytes, limit is {LARGEST_OBJECT_BYTES}"
            )
        key = Key(meta.get("namespace") or "", meta["name"])
        labels = meta.get("labels") or {}
        fields = fields_of(storage_kind, key, obj)
        if before is not None:  # share what did not change: most of what history keeps is equal
            labels = before.labels if before.labels == labels else labels
            fields = before.fields if before.fields == fields else fields
            key = before.key
        return Stored(
            storage_kind, key, meta["uid"], revision, raw, labels, fields,
            before.created_revision if before is not None else revision, *_references(meta),
        )  # fmt: skip

    def remove(self, resource: Resource, key: Key) -> Stored:
        """Remove the object; returns its last content under the version of its removal."""
        change = self.store.remove(resource.table, key)
        assert change.previous is not None
        event = change.event(None)
        assert event is not None
        return replace(change.previous, revision=change.revision, raw=event.stored_raw)

    def stored_from_row(self, row: Row) -> Stored:
        """A row of the journal as it was when it was written."""
        obj: Obj = _decode(row.raw)
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        served = self._by_kind.get((group, version, obj["kind"]))
        if served is not None:
            kind = served.storage_kind
        else:  # its definition is not loaded yet, or gone
            plural = row.resource.partition(".")[0]
            kind = Kind(group, version, obj["kind"], plural, namespaced=bool(row.namespace), custom=True)
        key = Key(row.namespace, row.name)
        meta = obj["metadata"]
        return Stored(
            kind, key, meta["uid"], row.revision, row.raw, meta.get("labels") or {}, fields_of(kind, key, obj),
            row.id, *_references(meta),
        )  # fmt: skip


def _references(meta: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    references = meta.get("ownerReferences")
    owners = tuple(reference["uid"] for reference in references) if references else ()
    return owners, tuple(meta.get("finalizers") or ()), bool(meta.get("deletionTimestamp"))
