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

from shoal.cluster.client import EventType
from shoal.cluster.clock import Clock, Timer
from shoal.cluster.list_pages import parse_version, too_large_version
from shoal.cluster.selection import Claim
from shoal.cluster.store import Change, Store, Table
from shoal.cluster.store.tables import key_at
from shoal.cluster.types import RawEvent, Stored, WatchOptions
from shoal.kube.errors import ApiError, expired
from shoal.kube.kinds import Kind

BOOKMARK_SECONDS = 60.0
BATCH_EVENTS = 256
BATCH_BYTES = 64 * 1024  # of a batch with several events: what one that is not read keeps in memory
_INITIAL_END = {"k8s.io/initial-events-end": "true"}

Turn = Callable[[bytes], bytes]


class _Last(NamedTuple):
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
        claim: Claim | None,
        options: WatchOptions,
        *,
        clock: Clock,
        turn: Turn | None = None,
    ) -> None:
        self._store = store
        self._table = table
        self._kind = kind
        self._claim = claim
        self._turn = turn  # from the stored version to the one asked for
        self._clock = clock
        self._bookmarks = options.bookmarks
        self._sleeper: asyncio.Future[None] | None = None
        self._deadline: Timer | None = None
        self._reminder: Timer | None = None
        self._over = False
        self._last: _Last | None = None
        self._failure: ApiError | None = None
        self._state: Iterator[Stored] | None = None  # objects of the beginning that have not been given out
        self._ready: list[RawEvent] = []
        self._told = 0  # the revision of the last event given out
        self._skip_to = 0  # changes up to this revision are not wanted
        self._position = table.visible
        self._begin(options)

    def _begin(self, options: WatchOptions) -> None:
        store = self._store
        revision = parse_version(options.resource_version)
        wants_state = options.initial_events or (options.initial_events is None and revision == 0)
        if wants_state:
            if revision > store.committed:
                self._failure = too_large_version(revision, store.committed)
            # References to stored objects, shared by all watches that begin now; events are made batch by batch.
            self._state = iter([self._table.objects[key_at(order)] for order in self._table.order])
            self._marks_initial_end = bool(options.initial_events and options.bookmarks)
        elif revision:
            if revision < store.compacted:
                self._failure = expired(f"too old resource version: {revision} ({store.compacted})")
            self._position = self._table.history.position_after(revision)
            self._skip_to = revision
        self._told = self._began_at = store.committed if wants_state else revision
        if options.timeout_seconds is not None:
            self._deadline = self._clock.call_later(options.timeout_seconds, self._time_is_up)
        if self._bookmarks:
            self._arm_bookmark()

    def _take_state(self) -> list[RawEvent]:
        """The next objects of the beginning, as additions; after the last, the mark that they are all."""
        assert self._state is not None
        events: list[RawEvent] = []
        size = 0
        for stored in self._state:
            if self._claim is None or self._claim(stored):
                raw = stored.raw if self._turn is None else self._turn(stored.raw)
                events.append(RawEvent(EventType.ADDED, raw, stored.revision))
                size += len(raw)
                if size >= BATCH_BYTES or len(events) >= BATCH_EVENTS:
                    return events
        self._state = None
        if self._marks_initial_end:
            events.append(self._bookmark(self._began_at, _INITIAL_END))
        return events

    # The iterator

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> list[RawEvent]:
        while True:
            if self._failure is None and (batch := self._take()):
                return batch
            if self._failure is not None:
                failure, self._failure = self._failure, None
                self.close()
                raise failure
            if self._over:
                raise StopAsyncIteration
            await self._sleep()

    def _take(self) -> list[RawEvent]:
        if self._position < min(self._table.history.start, self._end()):
            batch, self._ready, self._state = self._ready, [], None
            self._failure = expired(f"too old resource version: {self._told} ({self._store.compacted})")
            return batch
        if self._state is not None:
            batch = self._take_state()
        else:
            batch, self._ready = self._ready, []
        if self._state is None:
            self._take_changes(batch)
        if batch:
            self._told = max(self._told, batch[-1].revision)
        if self._bookmarks and self._last is not None and self._is_current():
            batch.append(self._bookmark(self._last.revision))  # the client resumes from here
            self._bookmarks = False
        return batch

    def _end(self) -> int:
        """The position up to which changes are given out."""
        return self._table.visible if self._last is None else self._last.position

    def _take_changes(self, batch: list[RawEvent]) -> None:
        size = 0
        while self._position < self._end() and size < BATCH_BYTES and len(batch) < BATCH_EVENTS:
            (change,) = self._table.history.between(self._position, self._position + 1)
            self._position += 1
            event = self._seen(change)
            if event is not None:
                batch.append(event)
                size += len(event.stored_raw)

    def _seen(self, change: Change) -> RawEvent | None:
        if change.revision <= self._skip_to:
            return None
        event = change.event(self._claim)
        if event is None or self._turn is None:
            return event
        return change.as_face(self._kind.api_version, self._turn, event)

    async def _sleep(self) -> None:
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleeper = sleeper
        self._table.sleepers[sleeper] = None
        try:
            await sleeper
        finally:
            self._sleeper = None
            self._table.sleepers.pop(sleeper, None)

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    # Bookmarks and the end

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> RawEvent:
        self._told = revision
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        body = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        return RawEvent(EventType.BOOKMARK, msgspec.json.encode(body), self._told)

    def _arm_bookmark(self) -> None:
        self._reminder = self._clock.call_later(BOOKMARK_SECONDS, self._bookmark_is_due)

    def _bookmark_is_due(self) -> None:
        self._remark()
        self._arm_bookmark()
        self._wake()

    def _remark(self) -> None:
        """Say how far the store has come, where the events alone do not tell."""
        if self._is_current() and self._told < self._store.committed:
            self._ready.append(self._bookmark(self._store.committed))

    def _is_current(self) -> bool:
        return self._state is None and self._position >= self._end() and not self._failure

    def _time_is_up(self) -> None:
        """What has happened until now is still given out."""
        if self._last is None:
            self._last = _Last(self._table.visible, self._store.committed)
        self._stop()

    def _stop(self) -> None:
        self._over = True
        for timer in (self._deadline, self._reminder):
            if timer is not None:
                timer.cancel()
        self._wake()

    def close(self) -> None:
        """Stop; a waiting reader ends quietly. Idempotent."""
        self._ready, self._state = [], None
        self._last, self._bookmarks = _Last(0, 0), False
        self._stop()
