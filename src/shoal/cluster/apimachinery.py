"""The API machinery: the verbs of Kubernetes over the store, synchronous and without I/O of its own.

The embedded adapter and the HTTP server both call it. A read first commits what is pending, so that no client sees
what a crash could undo; a write returns at once, and `await durable()` returns when it is safe to report.

    create, update, patch   write.py, patch.py, scale.py                   the write path
    delete, evict           delete.py                                      grace and finalizers
    list, watch             list_pages.py, watch.py                        from memory and history
    what follows            garbage_collector.py, namespace_lifecycle.py   dependents, namespaces, definitions
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from shoal.cluster import list_pages, selection
from shoal.cluster.admission import Admission
from shoal.cluster.bootstrap import create_bootstrap_objects
from shoal.cluster.client import DeleteOptions, PatchType
from shoal.cluster.clock import Clock, SystemClock
from shoal.cluster.delete import Deleter
from shoal.cluster.event_ttl import Expirer
from shoal.cluster.garbage_collector import GarbageCollector
from shoal.cluster.namespace_lifecycle import NamespaceLifecycle
from shoal.cluster.patch import Patch, Patcher
from shoal.cluster.pod_subresources import PodSubresources
from shoal.cluster.registry import Core, RegistrySettings, Resource
from shoal.cluster.scale import Scaler
from shoal.cluster.store import HistoryLimits, Journal, MemoryJournal, SqliteJournal, Store
from shoal.cluster.types import (
    DeleteResult,
    ListOptions,
    Stored,
    StoredPage,
    WatchOptions,
    WriteOptions,
    WriteResult,
)
from shoal.cluster.watch import Watch
from shoal.cluster.write import Writer
from shoal.kube.errors import ApiError, forbidden, no_such_path, unavailable
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj

MEMORY = ":memory:"

T = TypeVar("T")


class Machinery:
    """One cluster's API. Objects given to a write are taken over: do not use them afterwards."""

    def __init__(
        self,
        journal: Journal,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        settings: RegistrySettings | None = None,
        limits: HistoryLimits | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.store = Store(journal, limits)
        core = self._core = Core(self.store, self.clock, rng or random.SystemRandom(), settings or RegistrySettings())
        self._writer = Writer(core)
        self._patcher = Patcher(core, self._writer)
        self._scaler = Scaler(core, self._writer)
        self._deleter = Deleter(core)
        self._pod_subresources = PodSubresources(core)
        self._expirer = Expirer(core)
        self._collector = GarbageCollector(core, self._deleter, NamespaceLifecycle(core, self._deleter).empty)
        self.store.load(core.stored_from_row)
        create_bootstrap_objects(core, self._writer)
        self.store.flush()
        self._collector.resume()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        settings: RegistrySettings | None = None,
        limits: HistoryLimits | None = None,
    ) -> Machinery:
        """A file, made where there is none, or ':memory:'. StoreInUse, StoreBroken where it cannot be had."""
        journal: Journal = MemoryJournal() if str(path) == MEMORY else SqliteJournal(Path(path))
        return cls(journal, clock=clock, rng=rng, settings=settings, limits=limits)

    def close(self) -> None:
        self.store.close()

    async def durable(self) -> None:
        """Returns when everything written so far is committed; 503 where the disk refused it.

        Await it right after the write, without awaiting anything else in between: a refusal is reported to the
        callers that wait when it happens.
        """
        try:
            await self.store.durable()
        except OSError as error:
            raise _commit_failed(error) from error

    def settle(self) -> None:
        """Let everything follow that follows from what has been written (for tests and tools)."""
        self._flush()
        self._collector.settle()

    # Kinds

    def kinds(self) -> tuple[Kind, ...]:
        return self._core.kinds()

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._core.find(group, version, plural)

    @property
    def admissions(self) -> dict[str, Admission]:
        """Who else has a say about new and changed objects, by the name of their resource."""
        return self._core.admissions

    # Reading

    @property
    def revision(self) -> int:
        """The newest committed revision."""
        return self.store.committed

    def get(self, kind: Kind, key: Key, subresource: str = "") -> Stored:
        resource = self._readable_resource(kind)
        if subresource == "scale":
            return self._scaler.get(resource, key)
        return resource.from_storage(self._core.stored(resource, key))

    def list(self, kind: Kind, namespace: str | None = None, options: ListOptions | None = None) -> StoredPage:
        resource = self._readable_resource(kind)
        options = options or ListOptions()
        list_pages.check_options(options)
        predicate = selection.predicate(resource.kind, namespace, options.labels, options.fields)
        page = list_pages.page(self.store, resource.table, namespace, predicate, options)
        if resource.converter is None:
            return page
        items = [resource.from_storage(stored) for stored in page.items]
        return StoredPage(items, page.revision, page.continue_token, page.remaining)

    def watch(self, kind: Kind, namespace: str | None = None, options: WatchOptions | None = None) -> Watch:
        """Rejects bad selectors at once; a version that is too old fails when the first batch is requested."""
        resource = self._readable_resource(kind)
        options = options or WatchOptions()
        list_pages.check_watch_options(options)
        predicate = selection.predicate(resource.kind, namespace, options.labels, options.fields)
        convert = resource.converter.from_storage if resource.converter is not None else None
        return Watch(self.store, resource.table, kind, predicate, options, clock=self.clock, convert=convert)

    # Writing

    def create(self, kind: Kind, namespace: str, obj: Obj, options: WriteOptions | None = None) -> WriteResult:
        resource = self._writable_resource(kind)
        return self._attempt(lambda: self._writer.create(resource, namespace, obj, options or WriteOptions()))

    def update(
        self, kind: Kind, key: Key, obj: Obj, options: WriteOptions | None = None, subresource: str = ""
    ) -> WriteResult:
        resource = self._writable_resource(kind, subresource)
        options = options or WriteOptions()
        if subresource == "scale":
            return self._attempt(lambda: self._scaler.update(resource, key, obj, options))
        return self._attempt(lambda: self._writer.update(resource, key, obj, options, subresource))

    def patch(
        self,
        kind: Kind,
        key: Key,
        patch: Patch,
        patch_type: PatchType,
        options: WriteOptions | None = None,
        subresource: str = "",
    ) -> WriteResult:
        resource = self._writable_resource(kind, subresource)
        options = options or WriteOptions()
        if subresource == "scale":
            return self._attempt(lambda: self._scaler.patch(resource, key, patch, patch_type, options))
        return self._attempt(lambda: self._patcher.patch(resource, key, patch, patch_type, options, subresource))

    def delete(self, kind: Kind, key: Key, options: DeleteOptions | None = None) -> DeleteResult:
        resource = self._writable_resource(kind)
        admission = self.admissions.get(resource.kind.resource)
        deny_delete = admission.deny_delete if admission is not None else None

        def delete() -> DeleteResult:
            # Only a client's request is checked, not what is deleted with its namespace or its definition.
            if deny_delete is not None and (why := deny_delete(self._core.stored(resource, key).obj())):
                raise forbidden(resource.kind, key.name, why)
            return self._deleter.delete(resource, key, options or DeleteOptions())

        return self._attempt(delete)

    def delete_collection(
        self,
        kind: Kind,
        namespace: str | None = None,
        selected: ListOptions | None = None,
        options: DeleteOptions | None = None,
    ) -> StoredPage:
        """Deletes every selected object; returns them as they were before."""
        page = self.list(kind, namespace, selected)
        for stored in page.items:
            try:
                self.delete(kind, stored.key, options)
            except ApiError as error:
                if error.code != 404:  # already gone is as good
                    raise
        return page

    def bind(self, key: Key, binding: Obj, *, dry_run: bool = False) -> Stored:
        """Place the pod on the node the Binding names."""
        return self._attempt(lambda: self._pod_subresources.bind(key, binding, dry_run=dry_run))

    def evict(self, key: Key, eviction: Obj, *, dry_run: bool = False) -> DeleteResult:
        return self._attempt(lambda: self._pod_subresources.evict(self._deleter, key, eviction, dry_run=dry_run))

    # Inside

    def _readable_resource(self, kind: Kind) -> Resource:
        self._expirer.delete_expired()
        self._flush()
        return self._core.resource(kind)

    def _writable_resource(self, kind: Kind, subresource: str = "") -> Resource:
        self._expirer.delete_expired()
        resource = self._core.resource(kind)
        if subresource and subresource not in resource.kind.subresources:
            raise no_such_path()
        return resource

    def _flush(self) -> None:
        """Where the disk refuses, the pending writes did not happen.
        Their writers get the error from `durable`, all other callers continue with what was committed before."""
        with suppress(OSError):
            self.store.flush()

    def _attempt(self, write: Callable[[], T]) -> T:
        """A rejection also reveals something about the state: it is not returned before that state is safe."""
        try:
            return write()
        except ApiError:
            try:
                self.store.flush()
            except OSError as error:
                raise _commit_failed(error) from error
            raise


def _commit_failed(error: OSError) -> ApiError:
    return unavailable(f"the write could not be kept: {error}")
