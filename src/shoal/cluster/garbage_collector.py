"""The garbage collector: deletes dependents of deleted owners, and empties terminating namespaces and definitions.

Two indexes, objects by uid and dependents by the uid of their owner, follow every step of the store, and a queue holds
the objects to process. Processing decides from the present state alone, so nothing is persisted: loading the store
fills the indexes and the queue again. It runs after commits, one batch per turn of the event loop, so that a large
cascade does not delay requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import msgspec

from shoal.cluster.client import DeleteOptions, DeletionPropagation
from shoal.cluster.delete import FOREGROUND, ORPHAN, Deleter
from shoal.cluster.registry import Core, Resource
from shoal.cluster.store import Table
from shoal.cluster.types import Stored
from shoal.kube import kinds
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj

BATCH = 100

ObjectRef = tuple[str, Key]  # a table's resource and a key


class _Metadata(msgspec.Struct):
    ownerReferences: list[Obj] | None = None  # noqa: N815 - as the API has it


class _Owned(msgspec.Struct):
    """Of an object, its owners: the rest is passed over, not decoded."""

    metadata: _Metadata


_decode_owned = msgspec.json.Decoder(_Owned).decode


class GarbageCollector:
    def __init__(self, core: Core, deleter: Deleter, empty: Callable[[Resource, Stored], bool]) -> None:
        self._core = core
        self._deleter = deleter
        self._empty = empty  # deletes the contents of a namespace or definition; True when there is more to do
        self._by_uid: dict[str, ObjectRef] = {}
        self._dependents: dict[str, dict[ObjectRef, None]] = {}
        self._queue: dict[ObjectRef, None] = {}
        self._terminating_namespaces: set[str] = set()
        self._terminating_definitions: set[str] = set()
        self._terminating = {
            kinds.NAMESPACE.resource: self._terminating_namespaces,
            kinds.CUSTOM_RESOURCE_DEFINITION.resource: self._terminating_definitions,
        }
        self._scheduled = False
        self._working = False
        core.store.observers.append(self._observe)
        core.store.after_commit.append(self._schedule)

    # Watching the store

    def _observe(self, table: Table, before: Stored | None, after: Stored | None) -> None:
        if before is not None:
            self._unindex(table, before, after)
        if after is not None:
            ref = (table.resource, after.key)
            self._by_uid[after.uid] = ref
            for uid in after.owners:
                self._dependents.setdefault(uid, {})[ref] = None
            if after.terminating or (after.owners and (before is None or before.owners != after.owners)):
                self._queue[ref] = None
        names = self._terminating.get(table.resource)
        if names is not None:
            if after is not None and after.terminating:
                names.add(after.key.name)
            elif before is not None:
                names.discard(before.key.name)
        if before is None or after is not None:
            return
        for dependent in self._dependents.get(before.uid, ()):
            self._queue[dependent] = None
        if before.key.namespace in self._terminating_namespaces:
            self._queue[kinds.NAMESPACE.resource, Key("", before.key.namespace)] = None
        if table.resource in self._terminating_definitions:
            self._queue[kinds.CUSTOM_RESOURCE_DEFINITION.resource, Key("", table.resource)] = None
        if table.resource == kinds.CUSTOM_RESOURCE_DEFINITION.resource:
            for key in table.objects:  # the names it had are free for others
                self._queue[table.resource, key] = None

    def _unindex(self, table: Table, before: Stored, after: Stored | None) -> None:
        ref = (table.resource, before.key)
        if after is None or after.uid != before.uid:
            self._by_uid.pop(before.uid, None)
        if after is not None and after.owners == before.owners:
            return
        for uid in before.owners:
            refs = self._dependents.get(uid)
            if refs is not None:
                refs.pop(ref, None)
                if not refs:
                    del self._dependents[uid]
            owner = self._by_uid.get(uid)
            if owner is not None:  # it may be waiting for this dependent
                self._queue[owner] = None

    # Working

    def _schedule(self) -> None:
        if not self._queue or self._scheduled or self._working:
            return
        try:
            asyncio.get_running_loop().call_soon(self._run_batch)
        except RuntimeError:
            self.settle()
            return
        self._scheduled = True

    def _run_batch(self) -> None:
        self._scheduled = False
        self._process_queue(BATCH)
        self._schedule()

    def resume(self) -> None:
        """Continue the work of an earlier process; without an event loop the first commit does it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self._schedule()

    def settle(self) -> None:
        """Work until nothing is left to do."""
        while self._queue:
            self._process_queue(BATCH)
            self._core.store.flush()

    def _process_queue(self, limit: int) -> None:
        self._working = True
        try:
            for _ in range(min(limit, len(self._queue))):
                ref = next(iter(self._queue))
                del self._queue[ref]
                resource, stored = self._find(ref)
                if resource is None or stored is None:
                    continue
                try:
                    requeue = self._process_object(resource, stored)
                except ApiError:
                    # The object changed into something that cannot be written any more (a definition tightened its
                    # schema): it stays, and its next change brings it back here.
                    continue
                if requeue:
                    self._queue[ref] = None
        finally:
            self._working = False

    def _find(self, ref: ObjectRef) -> tuple[Resource | None, Stored | None]:
        table = self._core.store.table(ref[0])
        return self._core.storage_resource(table), table.objects.get(ref[1])

    def _process_object(self, resource: Resource, stored: Stored) -> bool:
        if stored.terminating and ORPHAN in stored.finalizers:
            for child_resource, child in self._children(stored.uid):
                self._drop_owners(child_resource, child, {stored.uid})
            self._drop_finalizer(resource, stored, ORPHAN)
        elif stored.terminating and FOREGROUND in stored.finalizers:
            self._delete_dependents(resource, stored)
        elif resource.kind == kinds.CUSTOM_RESOURCE_DEFINITION or (
            resource.kind == kinds.NAMESPACE and stored.terminating
        ):
            return self._empty(resource, stored)
        elif stored.owners and not stored.terminating:
            self._check_owners(resource, stored)
        return False

    # Owners that go

    def _children(self, uid: str) -> Iterator[tuple[Resource, Stored]]:
        for ref in list(self._dependents.get(uid, ())):
            resource, stored = self._find(ref)
            if resource is not None and stored is not None:
                yield resource, stored

    def _delete_dependents(self, resource: Resource, owner: Stored) -> None:
        """Foreground: the owner is deleted when the last dependent that blocks it is gone."""
        blocked = False
        for ref in list(self._dependents.get(owner.uid, ())):
            child_resource, child = self._find(ref)
            if child_resource is None or child is None:
                continue
            blocked = blocked or any(
                reference["uid"] == owner.uid and reference.get("blockOwnerDeletion")
                for reference in _references(child)
            )
            self._queue[ref] = None
        if not blocked:
            self._drop_finalizer(resource, owner, FOREGROUND)

    # Dependents whose owners may be gone

    def _check_owners(self, resource: Resource, stored: Stored) -> None:
        solid, absent, waiting = self._classify(resource, stored)
        if solid:
            # One living owner is enough to keep the object; the references to the others are removed.
            if absent or waiting:
                self._drop_owners(resource, stored, absent | waiting)
            return
        if not absent and not waiting:
            return  # of owners that cannot be looked up
        propagation = None
        if waiting and self._dependents.get(stored.uid):
            if any(child.terminating and FOREGROUND in child.finalizers for _, child in self._children(stored.uid)):
                # A circle: one has to be deleted first, so this one no longer blocks its owners.
                obj = stored.obj()
                for reference in obj["metadata"].get("ownerReferences") or ():
                    reference["blockOwnerDeletion"] = False
                stored = self._core.put(resource, obj, stored)
            propagation = DeletionPropagation.FOREGROUND
        self._deleter.delete(resource, stored.key, DeleteOptions(propagation=propagation))

    def _classify(self, resource: Resource, stored: Stored) -> tuple[set[str], set[str], set[str]]:
        solid: set[str] = set()
        absent: set[str] = set()
        waiting: set[str] = set()
        for reference in _references(stored):
            uid = reference["uid"]
            kind = self._core.by_reference(str(reference.get("apiVersion")), str(reference.get("kind")))
            if kind is None or (kind.kind.namespaced and not resource.kind.namespaced):
                solid.add(uid)  # a reference that cannot be looked up is never taken for a deleted owner
                continue
            namespace = stored.key.namespace if kind.kind.namespaced else ""
            owner = kind.table.objects.get(Key(namespace, str(reference.get("name"))))
            if owner is None or owner.uid != uid:
                absent.add(uid)
            elif owner.terminating and FOREGROUND in owner.finalizers:
                waiting.add(uid)
            else:
                solid.add(uid)
        return solid, absent, waiting

    # Writes

    def _drop_owners(self, resource: Resource, stored: Stored, uids: set[str]) -> None:
        obj = stored.obj()
        kept = [r for r in obj["metadata"].get("ownerReferences") or () if r["uid"] not in uids]
        if kept:
            obj["metadata"]["ownerReferences"] = kept
        else:
            obj["metadata"].pop("ownerReferences", None)
        self._core.put(resource, obj, stored)

    def _drop_finalizer(self, resource: Resource, stored: Stored, name: str) -> None:
        obj: Obj = stored.obj()
        meta = obj["metadata"]
        meta["finalizers"] = [f for f in meta.get("finalizers") or () if f != name]
        has_spec_finalizers = resource.kind == kinds.NAMESPACE and obj["spec"].get("finalizers")
        if meta["finalizers"] or meta.get("deletionGracePeriodSeconds") or has_spec_finalizers:
            self._core.put(resource, obj, stored)
        else:
            self._core.remove(resource, stored.key)


def _references(stored: Stored) -> list[Obj]:
    return _decode_owned(stored.raw).metadata.ownerReferences or []
