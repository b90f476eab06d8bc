"""Events are kept for an hour after their last write, then removed when somebody next looks or writes.

No timer runs for this: until somebody looks, an old event harms nobody.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from shoal.cluster.registry import Core
from shoal.cluster.store import Table
from shoal.cluster.types import Stored
from shoal.kube import kinds, times


class Expirer:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._events = core.resource(kinds.EVENT)
        self._due: deque[tuple[datetime, Stored]] = deque()  # in the order of writing, hence of time
        core.store.observers.append(self._observe)

    def _observe(self, table: Table, before: Stored | None, after: Stored | None) -> None:
        del before
        if table is self._events.table and after is not None:
            self._due.append((self._written(after) + timedelta(seconds=self._core.settings.event_seconds), after))

    def _written(self, event: Stored) -> datetime:
        """Now; or, for an event read back from disk, the last moment it speaks of."""
        if event.revision > self._core.store.committed:
            return self._core.moment()
        obj = event.obj()
        said = obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"]["creationTimestamp"]
        return times.parse(said)

    def sweep(self) -> None:
        if not self._due:
            return
        now = self._core.moment()
        while self._due and self._due[0][0] <= now:
            _, event = self._due.popleft()
            if self._events.table.objects.get(event.key) is event:  # not written again since
                self._core.remove(self._events, event.key)
