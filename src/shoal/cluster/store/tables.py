"""Every object in memory, by resource and key, one revision counter over all of them, and group commit.

A write changes memory at once and joins the current batch; the batch is one transaction, committed at the end of the
loop's turn or upon the next read. Watchers and readers therefore never see anything that a crash could undo. A batch
that the disk rejects is rolled back in memory too, in reverse order.

The store depends on nothing of Kubernetes beyond uid, labels and revision; meaning is the machinery's.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from shoal.cluster.store.sqlite import Journal, Row
from shoal.cluster.store.watch_cache import ChangeHistory, StoredChange
from shoal.cluster.types import Stored
from shoal.kube.objects import Key, Obj

FRESH_CHANGES = 256  # changes before the last batch whose events stay made: watchers that keep up share them

Observer = Callable[["Table", Stored | None, Stored | None], None]


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much past is kept: whichever bound is reached first. Superseded versions count with their bytes."""

    changes: int = 100_000
    superseded_bytes: int = 8 << 20


class Table:
    """The objects of one resource, with their order and their past."""

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self.objects: dict[Key, Stored] = {}
        self.order: list[str] = []  # "<namespace>/<name>", sorted as etcd sorts keys
        self.history = ChangeHistory()
        self.visible = 0  # the history position up to which changes are committed
        self.waiters: dict[asyncio.Future[None], None] = {}  # watchers waiting for the next commit, in order

    def set(self, key: Key, stored: Stored | None) -> None:
        was_there = key in self.objects
        if stored is not None:
            self.objects[key] = stored
            if not was_there:
                insort(self.order, order_of(key))
        elif was_there:
            del self.objects[key]
            del self.order[bisect_left(self.order, order_of(key))]

    def state_at(self, revision: int) -> dict[Key, Stored]:
        """The objects as they were at a revision that history still reaches."""
        state = dict(self.objects)
        for change in self.history.newest_first():
            if change.revision <= revision:
                break
            if change.previous is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.previous
        return state

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def order_of(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


def key_at(order: str) -> Key:
    namespace, _, name = order.partition("/")
    return Key(namespace, name)


class Store:
    """Synchronous and single-threaded: everything happens on the thread of the loop that uses it."""

    def __init__(self, journal: Journal, limits: HistoryLimits | None = None) -> None:
        self._journal = journal
        self._limits = limits or HistoryLimits()
        self._tables: dict[str, Table] = {}
        self.revision = journal.revision()  # the newest, committed or not
        self.committed = self.revision
        self.compacted = self.revision  # changes up to here are no longer known
        self._batch: list[tuple[Table, StoredChange]] = []
        self._past: deque[tuple[Table, StoredChange]] = deque()
        self._past_bytes = 0
        self._fresh: deque[StoredChange] = deque()
        self._scheduled = False
        self._waiting: list[asyncio.Future[None]] = []
        self.observers: list[Observer] = []  # called for every step at once, also for each step of a rollback
        self.after_commit: list[Callable[[], None]] = []
        self.after_failed_commit: list[Callable[[OSError], None]] = []

    def table(self, resource: str) -> Table:
        found = self._tables.get(resource)
        if found is None:
            found = self._tables[resource] = Table(resource)
        return found

    def tables(self) -> list[Table]:
        return list(self._tables.values())

    def load(self, from_row: Callable[[Row], Stored]) -> None:
        """Fill the tables from the journal, oldest objects first; `from_row` decodes a row."""
        for row in self._journal.load():
            table, stored = self.table(row.resource), from_row(row)
            table.set(stored.key, stored)
            for observer in self.observers:
                observer(table, None, stored)

    # Writing

    def put(self, table: Table, stored: Stored, written: Obj | None = None) -> None:
        """`stored.revision` must be `self.revision + 1`: the caller encoded it into the object. `written` is that
        object; from now on it is read only."""
        assert stored.revision == self.revision + 1
        self._apply(table, StoredChange(stored.revision, stored.key, table.objects.get(stored.key), stored, written))

    def remove(self, table: Table, key: Key) -> StoredChange:
        change = StoredChange(self.revision + 1, key, table.objects[key], None)
        self._apply(table, change)
        return change

    def _apply(self, table: Table, change: StoredChange) -> None:
        self.revision = change.revision
        table.set(change.key, change.current)
        table.history.append(change)
        self._batch.append((table, change))
        for observer in self.observers:
            observer(table, change.previous, change.current)
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        try:
            asyncio.get_running_loop().call_soon(self._commit_scheduled)
        except RuntimeError:
            return  # no loop: the next read or `flush` commits
        self._scheduled = True

    def _commit_scheduled(self) -> None:
        self._scheduled = False
        try:
            self.flush()
        except OSError:
            return  # the writers get the error from `durable`

    # Committing

    def flush(self) -> None:
        """Commit the batch. OSError where the disk refuses: then nothing of the batch happened."""
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        waiting, self._waiting = self._waiting, []
        try:
            self._journal.commit(*_net_changes(batch), self.revision)
        except OSError as error:
            for table, change in reversed(batch):
                table.history.pop()
                table.set(change.key, change.previous)
                for observer in self.observers:
                    observer(table, change.current, change.previous)
            self.revision = self.committed
            _resolve(waiting, error)
            for report in tuple(self.after_failed_commit):
                report(error)
            raise
        self.committed = self.revision
        self._publish(batch)
        _resolve(waiting, None)
        for notice in self.after_commit:
            notice()

    def _publish(self, batch: list[tuple[Table, StoredChange]]) -> None:
        """Show a committed batch to the watches, and forget what the limits of history no longer cover."""
        for table, change in batch:
            table.visible = table.history.end
            self._past.append((table, change))
            self._past_bytes += change.weight
            self._fresh.append(change)
        while len(self._fresh) > FRESH_CHANGES + len(batch):
            self._fresh.popleft().drop_events()
        for table in {id(t): t for t, _ in batch}.values():
            table.wake()
        while len(self._past) > self._limits.changes or self._past_bytes > self._limits.superseded_bytes:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        table, change = self._past.popleft()
        self._past_bytes -= change.weight
        self.compacted = change.revision
        table.history.drop_first()

    def compact(self, revision: int | None = None) -> None:
        """Forget the past up to `revision` (all of it by default)."""
        self.flush()
        limit = self.committed if revision is None else min(revision, self.committed)
        while self._past and self._past[0][1].revision <= limit:
            self._drop_oldest()
        self.compacted = max(self.compacted, limit)
        for table in self.tables():
            table.wake()

    async def durable(self) -> None:
        """Returns when everything written so far is committed; raises OSError where it cannot be."""
        if not self._batch:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        if not self._scheduled:
            self._schedule()
        await waiter

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._journal.close()


def _net_changes(batch: list[tuple[Table, StoredChange]]) -> tuple[list[Row], list[int]]:
    """What a batch amounts to on disk: the last state of each object it touched."""
    rows: dict[int, Row] = {}
    deleted_ids: list[int] = []
    for table, change in batch:
        now = change.current
        if now is not None:
            key = now.key
            rows[now.created_revision] = Row(
                now.created_revision, table.resource, key.namespace, key.name, now.revision, now.raw
            )
        elif change.previous is not None:
            rows.pop(change.previous.created_revision, None)
            deleted_ids.append(change.previous.created_revision)
    return list(rows.values()), deleted_ids


def _resolve(waiting: list[asyncio.Future[None]], error: OSError | None) -> None:
    for waiter in waiting:
        if waiter.done():
            continue
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
