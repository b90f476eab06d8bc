"""Watches: a position in a table's history, read in batches.

A watcher has no queue of its own: it sleeps until a commit touches its table, then reads what lies between
its position and the newest committed change. Events are shared by all watchers of a table. A watcher that
falls behind what history keeps ends with 410, and its client lists again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from shoal.cluster.client import WatchEventType
from shoal.cluster.clock import Clock, Timer
from shoal.cluster.list_pages import parse_version, too_large_version
from shoal.cluster.selection import Predicate
from shoal.cluster.store import Store, Table
from shoal.cluster.store.tables import key_at
from shoal.cluster.types import RawEvent, Stored, WatchOptions
from shoal.kube.errors import ApiError, expired
from shoal.kube.kinds import Kind

BOOKMARK_SECONDS = 60.0
BATCH_EVENTS = 256
BATCH_BYTES = 64 * 1024  # of a batch with several events: what one that is not read keeps in memory
_INITIAL_END = {"k8s.io/initial-events-end": "true"}

Convert = Callable[[bytes], bytes]


class _EndPosition(NamedTuple):
    """Where a watch ends: a position in the history, and the revision of the store then."""

    position: int
    revision: int


class Watch:
    """An async iterator of batches. Ends when its time is up or it is closed; 410 is raised once, at the end."""

    def __init__(
        self,
        store: Store,
        table: Table,
        kind: Kind,
        predicate: Predicate | None,
        options: WatchOptions,
        *,
        clock: Clock,
        convert: Convert | None = None,
    ) -> None:
        self._store = store
        self._table = table
        self._kind = kind
        self._predicate = predicate
        self._convert = convert  # from the stored version to the requested one
        self._clock = clock
        self._bookmarks = options.bookmarks
        self._waiter: asyncio.Future[None] | None = None
        self._deadline: Timer | None = None
        self._bookmark_timer: Timer | None = None
        self._closed = False
        self._end_position: _EndPosition | None = None
        self._failure: ApiError | None = None
        self._initial_objects: Iterator[Stored] | None = None  # objects of the initial list that have not been sent
        self._pending: list[RawEvent] = []
        self._last_revision = 0  # the revision of the last event that was sent
        self._skip_to = 0  # changes up to this revision are skipped
        self._position = table.visible
        self._begin(options)

    def _begin(self, options: WatchOptions) -> None:
        store = self._store
        revision = parse_version(options.resource_version)
        sends_initial = options.initial_events or (options.initial_events is None and revision == 0)
        if sends_initial:
            if revision > store.committed:
                self._failure = too_large_version(revision, store.committed)
            # References to stored objects, shared by all watches that begin now; events are made batch by batch.
            self._initial_objects = iter([self._table.objects[key_at(order)] for order in self._table.order])
            self._sends_initial_end = bool(options.initial_events and options.bookmarks)
        elif revision:
            if revision < store.compacted:
                self._failure = expired(f"too old resource version: {revision} ({store.compacted})")
            self._position = self._table.history.position_after(revision)
            self._skip_to = revision
        self._last_revision = self._initial_revision = store.committed if sends_initial else revision
        if options.timeout_seconds is not None:
            self._deadline = self._clock.call_later(options.timeout_seconds, self._on_timeout)
        if self._bookmarks:
            self._arm_bookmark()

    def _next_initial_events(self) -> list[RawEvent]:
        """The next objects of the initial list as ADDED events; after the last, the bookmark that ends the list."""
        assert self._initial_objects is not None
        events: list[RawEvent] = []
        size = 0
        for stored in self._initial_objects:
            if self._predicate is None or self._predicate(stored):
                raw = stored.raw if self._convert is None else self._convert(stored.raw)
                events.append(RawEvent(WatchEventType.ADDED, raw, stored.revision))
                size += len(raw)
                if size >= BATCH_BYTES or len(events) >= BATCH_EVENTS:
                    return events
        self._initial_objects = None
        if self._sends_initial_end:
            events.append(self._bookmark(self._initial_revision, _INITIAL_END))
        return events

    # The iterator

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> list[RawEvent]:
        while True:
            if self._failure is None and (batch := self._next_batch()):
                return batch
            if self._failure is not None:
                failure, self._failure = self._failure, None
                self.close()
                raise failure
            if self._closed:
                raise StopAsyncIteration
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiter = waiter
            self._table.waiters[waiter] = None
            try:
                await waiter
            finally:
                self._waiter = None
                self._table.waiters.pop(waiter, None)

    def _next_batch(self) -> list[RawEvent]:
        if self._position < min(self._table.history.start, self._end()):  # changes it has not sent were dropped
            batch, self._pending, self._initial_objects = self._pending, [], None
            self._failure = expired(f"too old resource version: {self._last_revision} ({self._store.compacted})")
            return batch
        if self._initial_objects is not None:
            batch = self._next_initial_events()
        else:
            batch, self._pending = self._pending, []
        if self._initial_objects is None:
            self._append_changes(batch)
        if batch:
            self._last_revision = max(self._last_revision, batch[-1].revision)
        if self._bookmarks and self._end_position is not None and self._is_current():
            batch.append(self._bookmark(self._end_position.revision))  # the client resumes from here
            self._bookmarks = False
        return batch

    def _end(self) -> int:
        """The position up to which changes are sent."""
        return self._table.visible if self._end_position is None else self._end_position.position

    def _append_changes(self, batch: list[RawEvent]) -> None:
        size = 0
        while self._position < self._end() and size < BATCH_BYTES and len(batch) < BATCH_EVENTS:
            (change,) = self._table.history.between(self._position, self._position + 1)
            self._position += 1
            if change.revision <= self._skip_to:
                continue
            event = change.event(self._predicate)
            if event is None:
                continue
            if self._convert is not None:
                event = change.converted(self._kind.api_version, self._convert, event)
            batch.append(event)
            size += len(event.stored_raw)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Bookmarks and the end

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> RawEvent:
        self._last_revision = revision
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        body = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        return RawEvent(WatchEventType.BOOKMARK, msgspec.json.encode(body), self._last_revision)

    def _arm_bookmark(self) -> None:
        self._bookmark_timer = self._clock.call_later(BOOKMARK_SECONDS, self._on_bookmark_timer)

    def _on_bookmark_timer(self) -> None:
        """Queue a bookmark with the store's revision, where the events alone do not show it."""
        if self._is_current() and self._last_revision < self._store.committed:
            self._pending.append(self._bookmark(self._store.committed))
        self._arm_bookmark()
        self._wake()

    def _is_current(self) -> bool:
        return self._initial_objects is None and self._position >= self._end() and not self._failure

    def _on_timeout(self) -> None:
        """End the watch; what has happened until now is still sent."""
        if self._end_position is None:
            self._end_position = _EndPosition(self._table.visible, self._store.committed)
        self._stop()

    def _stop(self) -> None:
        self._closed = True
        for timer in (self._deadline, self._bookmark_timer):
            if timer is not None:
                timer.cancel()
        self._wake()

    def close(self) -> None:
        """Stop; a waiting reader ends quietly. Idempotent."""
        self._pending, self._initial_objects = [], None
        self._end_position, self._bookmarks = _EndPosition(0, 0), False
        self._stop()
