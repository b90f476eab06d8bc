"""The API machinery: the verbs of Kubernetes over the store, synchronous and without I/O of its own.

The embedded adapter and the HTTP face both call it. A read first commits what is pending, so that nobody sees
what a crash could undo; a write returns at once, and `await durable()` says when it is safe to tell.

    create, update, patch   writing.py, editing.py, scaling.py   the write path
    delete, evict           deleting.py                          grace and finalizers
    list, watch             listing.py, watching.py              from memory and history
    what follows            collecting.py, emptying.py           dependents, namespaces, definitions
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from shoal.cluster import list_pages, selection
from shoal.cluster.admission import Admission
from shoal.cluster.bootstrap import found
from shoal.cluster.client import DeleteOptions, PatchType
from shoal.cluster.clock import Clock, SystemClock
from shoal.cluster.delete import Remover
from shoal.cluster.event_ttl import Expirer
from shoal.cluster.garbage_collector import Collector
from shoal.cluster.namespace_lifecycle import Emptier
from shoal.cluster.patch import Editor, Patch
from shoal.cluster.pod_subresources import Binder
from shoal.cluster.registry import Core, Resource, Settings
from shoal.cluster.scale import Scaler
from shoal.cluster.store import HistoryLimits, Journal, MemoryJournal, SqliteJournal, Store
from shoal.cluster.types import (
    Deleted,
    ListOptions,
    Stored,
    StoredPage,
    WatchOptions,
    WriteOptions,
    Written,
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
        chance: random.Random | None = None,
        settings: Settings | None = None,
        limits: HistoryLimits | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.store = Store(journal, limits)
        core = self._core = Core(self.store, self.clock, chance or random.SystemRandom(), settings or Settings())
        self._writer = Writer(core)
        self._editor = Editor(core, self._writer)
        self._scaler = Scaler(core, self._writer)
        self._remover = Remover(core)
        self._binder = Binder(core)
        self._expirer = Expirer(core)
        self._collector = Collector(core, self._remover, Emptier(core, self._remover).empty)
        self.store.load(core.revive)
        found(core, self._writer)
        self.store.flush()
        self._collector.resume()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        settings: Settings | None = None,
        limits: HistoryLimits | None = None,
    ) -> Machinery:
        """A file, made where there is none, or ':memory:'. StoreInUse, StoreBroken where it cannot be had."""
        journal: Journal = MemoryJournal() if str(path) == MEMORY else SqliteJournal(Path(path))
        return cls(journal, clock=clock, chance=chance, settings=settings, limits=limits)

    def close(self) -> None:
        self.store.close()

    async def durable(self) -> None:
        """Returns when everything written so far is committed; 503 where the disk refused it.

        Await it right after the write, without awaiting anything else in between: a refusal is told to those who
        wait when it happens.
        """
        try:
            await self.store.durable()
        except OSError as error:
            raise _not_kept(error) from error

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
        resource = self._read(kind)
        if subresource == "scale":
            return self._scaler.get(resource, key)
        return resource.show(self._core.stored(resource, key))

    def list(self, kind: Kind, namespace: str | None = None, options: ListOptions | None = None) -> StoredPage:
        resource = self._read(kind)
        options = options or ListOptions()
        list_pages.check_options(options)
        claim = selection.claim(resource.kind, namespace, options.labels, options.fields)
        page = list_pages.page(self.store, resource.table, namespace, claim, options)
        if resource.face is None:
            return page
        items = [resource.show(stored) for stored in page.items]
        return StoredPage(items, page.revision, page.continue_token, page.remaining)

    def watch(self, kind: Kind, namespace: str | None = None, options: WatchOptions | None = None) -> Watch:
        """Refuses bad selectors at once; a version that is too old fails when the first batch is asked for."""
        resource = self._read(kind)
        options = options or WatchOptions()
        list_pages.check_watch_options(options)
        claim = selection.claim(resource.kind, namespace, options.labels, options.fields)
        turn = resource.face.show if resource.face is not None else None
        return Watch(self.store, resource.table, kind, claim, options, clock=self.clock, turn=turn)

    # Writing

    def create(self, kind: Kind, namespace: str, obj: Obj, options: WriteOptions | None = None) -> Written:
        resource = self._with(kind)
        return self._attempt(lambda: self._writer.create(resource, namespace, obj, options or WriteOptions()))

    def update(
        self, kind: Kind, key: Key, obj: Obj, options: WriteOptions | None = None, subresource: str = ""
    ) -> Written:
        resource = self._with(kind, subresource)
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
    ) -> Written:
        resource = self._with(kind, subresource)
        options = options or WriteOptions()
        if subresource == "scale":
            return self._attempt(lambda: self._scaler.patch(resource, key, patch, patch_type, options))
        return self._attempt(lambda: self._editor.patch(resource, key, patch, patch_type, options, subresource))

    def delete(self, kind: Kind, key: Key, options: DeleteOptions | None = None) -> Deleted:
        resource = self._with(kind)
        return self._attempt(lambda: self._delete(resource, key, options or DeleteOptions()))

    def _delete(self, resource: Resource, key: Key, options: DeleteOptions) -> Deleted:
        """As somebody asks for it: what goes with its namespace or its kind is not asked about."""
        admission = self.admissions.get(resource.kind.resource)
        keep = admission.keep if admission is not None else None
        if keep is not None and (why := keep(self._core.stored(resource, key).obj())):
            raise forbidden(resource.kind, key.name, why)
        return self._remover.delete(resource, key, options)

    def delete_collection(
        self,
        kind: Kind,
        namespace: str | None = None,
        selected: ListOptions | None = None,
        options: DeleteOptions | None = None,
    ) -> StoredPage:
        """Ask everything selected to go; what was asked, as it was before."""
        page = self.list(kind, namespace, selected)
        for stored in page.items:
            try:
                self.delete(kind, stored.key, options)
            except ApiError as error:
                if error.code != 404:  # gone meanwhile is as good
                    raise
        return page

    def bind(self, key: Key, binding: Obj, *, dry_run: bool = False) -> Stored:
        """Place the pod on the node the Binding names."""
        return self._attempt(lambda: self._binder.bind(key, binding, dry_run=dry_run))

    def evict(self, key: Key, eviction: Obj, *, dry_run: bool = False) -> Deleted:
        return self._attempt(lambda: self._binder.evict(self._remover, key, eviction, dry_run=dry_run))

    # Inside

    def _read(self, kind: Kind) -> Resource:
        self._expirer.sweep()
        self._flush()
        return self._core.resource(kind)

    def _with(self, kind: Kind, subresource: str = "") -> Resource:
        self._expirer.sweep()
        resource = self._core.resource(kind)
        if subresource and subresource not in resource.kind.subresources:
            raise no_such_path()
        return resource

    def _flush(self) -> None:
        """Where the disk refuses, the pending writes did not happen: their writers hear it from `durable`, and
        everybody else goes on with what was committed before."""
        with suppress(OSError):
            self.store.flush()

    def _attempt(self, write: Callable[[], T]) -> T:
        """A refusal also tells something about the state: nobody may hear it before that state is safe."""
        try:
            return write()
        except ApiError:
            try:
                self.store.flush()
            except OSError as error:
                raise _not_kept(error) from error
            raise


def _not_kept(error: OSError) -> ApiError:
    return unavailable(f"the write could not be kept: {error}")
