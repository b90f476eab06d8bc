"""The recent past of one table: what watchers read and what older versions are rebuilt from.

A change is kept with the version it replaced. Watchers hold a position, not a queue: a slow one costs nothing, and
ends with 410 once the history it still needs has been dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from shoal.cluster.client import WatchEventType
from shoal.cluster.types import RawEvent, Stored
from shoal.kube.objects import Key, Obj

_encode = msgspec.json.Encoder().encode


class StoredChange:
    """One step of the store. `current` is None where the object went away.

    `written` is the object that `current` was encoded from, where the writer has it: watches need not decode it.
    """

    __slots__ = ("_events", "_written", "current", "key", "previous", "revision")

    def __init__(
        self, revision: int, key: Key, previous: Stored | None, current: Stored | None, written: Obj | None = None
    ) -> None:
        self.revision = revision
        self._written = written
        self.key = key
        self.previous = previous
        self.current = current
        self._events: dict[Any, RawEvent] | None = None

    @property
    def weight(self) -> int:
        """Bytes kept alive by remembering this change."""
        return len(self.previous.raw) if self.previous is not None else 0

    def event(self, selects: Callable[[Stored], bool] | None) -> RawEvent | None:
        """What a watcher with this selection sees: an object that leaves the selection is deleted for it."""
        before = self.previous is not None and (selects is None or selects(self.previous))
        after = self.current is not None and (selects is None or selects(self.current))
        if after:
            return self._event(WatchEventType.MODIFIED if before else WatchEventType.ADDED)
        return self._event(WatchEventType.DELETED) if before else None

    def _event(self, event_type: WatchEventType) -> RawEvent:
        if self._events is None:
            self._events = {}
        event = self._events.get(event_type)
        if event is not None:
            return event
        if event_type is not WatchEventType.DELETED:
            assert self.current is not None
            event = RawEvent(event_type, self.current.raw, self.revision, _object=self._written)
        else:
            # The last content the watcher knew, under the version of the deletion: it can resume from there.
            assert self.previous is not None
            raw = self.previous.raw
            old_version = b'"resourceVersion":"%d"' % self.previous.revision
            if raw.count(old_version) == 1:  # in a text its quotes would be escaped: this is the field itself
                raw = raw.replace(old_version, b'"resourceVersion":"%d"' % self.revision)
            else:
                obj = self.previous.obj()
                obj["metadata"]["resourceVersion"] = str(self.revision)
                raw = _encode(obj)
            event = RawEvent(event_type, raw, self.revision)
        self._events[event_type] = event
        return event

    def drop_events(self) -> None:
        self._events = self._written = None

    def converted(self, converter: object, convert: Callable[[bytes], bytes], event: RawEvent) -> RawEvent:
        """The same event with its object in another API version; made once per version."""
        if self._events is None:
            self._events = {}
        converted_event = self._events.get((converter, event.type))
        if converted_event is None:
            converted_event = RawEvent(event.type, convert(event.stored_raw), event.revision)
            self._events[converter, event.type] = converted_event
        return converted_event


class ChangeHistory:
    """Changes of one table, oldest first. Positions are absolute and stay valid while the past shrinks."""

    def __init__(self) -> None:
        self._changes: list[StoredChange] = []
        self._dropped = 0  # changes before the first in the list
        self._dropped_in_list = 0  # dropped ones that are still at the head of the list

    @property
    def start(self) -> int:
        return self._dropped + self._dropped_in_list

    @property
    def end(self) -> int:
        return self._dropped + len(self._changes)

    def append(self, change: StoredChange) -> None:
        self._changes.append(change)

    def pop(self) -> StoredChange:
        """Take back the newest (a batch that could not be committed)."""
        return self._changes.pop()

    def drop_first(self) -> None:
        self._dropped_in_list += 1
        # Deleting from the head of a list moves the rest of it, so it is done in large steps.
        if self._dropped_in_list >= 1024 and self._dropped_in_list * 2 >= len(self._changes):
            del self._changes[: self._dropped_in_list]
            self._dropped += self._dropped_in_list
            self._dropped_in_list = 0

    def between(self, start: int, end: int) -> list[StoredChange]:
        return self._changes[start - self._dropped : end - self._dropped]

    def position_after(self, revision: int) -> int:
        """The position of the first change later than `revision`."""
        low, high = self._dropped_in_list, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return self._dropped + low

    def newest_first(self) -> Iterator[StoredChange]:
        for index in range(len(self._changes) - 1, self._dropped_in_list - 1, -1):
            yield self._changes[index]
