"""Events are kept for an hour after their last write, then removed upon the next read or write.

No timer runs for this: until the next read, an old event does no harm.
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
        self._expirations: deque[tuple[datetime, Stored]] = deque()  # in the order of writing, hence of time
        core.store.observers.append(self._observe)

    def _observe(self, table: Table, before: Stored | None, after: Stored | None) -> None:
        del before
        if table is not self._events.table or after is None:
            return
        if after.revision > self._core.store.committed:
            last_write = self._core.now_datetime()
        else:  # read back from disk: the last time it records
            obj = after.obj()
            timestamp = obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"]["creationTimestamp"]
            last_write = times.parse(timestamp)
        self._expirations.append((last_write + timedelta(seconds=self._core.settings.event_seconds), after))

    def delete_expired(self) -> None:
        if not self._expirations:
            return
        now = self._core.now_datetime()
        while self._expirations and self._expirations[0][0] <= now:
            _, event = self._expirations.popleft()
            if self._events.table.objects.get(event.key) is event:  # not written again since
                self._core.remove(self._events, event.key)
