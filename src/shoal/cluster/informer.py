"""A local copy of one kind, kept up to date by a watch.

An `Informer` opens a streaming list, then follows changes from there. A watch that ends is normal: it resumes from
the last version seen. A version that is no longer kept (410) means listing again, and what the list no longer holds
is reported as deleted, so that no subscriber misses a deletion. Failures are retried with growing, jittered pauses; a
success resets them. A command in a terminal names the errors that end it instead, and how many failures in a
row. Several programs of one process can share a copy, and a copy can be trimmed to what its readers use: a decoded
object costs several times its JSON.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Container
from dataclasses import dataclass

from shoal.cluster.client import Cluster, OutcomeUnknown, WatchEvent, WatchEventType
from shoal.cluster.clock import Clock, SystemClock, sleep
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, key_of, without_managed_fields
from shoal.logs import Logger

log = Logger(__name__)

INITIAL_BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object: `new` is None when it is deleted, `old` is None when it is new."""

    kind: Kind
    key: Key
    old: Obj | None
    new: Obj | None


EventHandler = Callable[[Change], None]
Transform = Callable[[WatchEvent], Obj]


def strip_managed_fields(event: WatchEvent) -> Obj:
    """A copy without the record of who wrote what."""
    return without_managed_fields(event.object)


class Informer:
    """Call `run` in a task; read `objects` once `synced` is set. Callbacks run in the loop and must not wait."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        on_change: EventHandler | None = None,
        trim: Transform | None = None,
        fatal_codes: Container[int] = (),
        max_failures: int | None = None,
        clock: Clock | None = None,
        jitter: random.Random | None = None,
    ) -> None:
        """`run` retries for ever, but for refusals with the codes of `fatal_codes`, and after `max_failures` in a row
        without anything received between them: those it raises."""
        self.kind = kind
        self.objects: dict[Key, Obj] = {}
        self.synced = asyncio.Event()
        self._cluster = cluster
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._handlers: list[EventHandler] = [on_change] if on_change else []
        self._trim = trim
        self._fatal_codes = fatal_codes
        self._max_failures = max_failures
        self._failures = 0  # in a row
        self._clock = clock or SystemClock()
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._version = ""
        self._initial_list: dict[Key, Obj] | None = None
        self._version_waiters: list[tuple[int, asyncio.Event]] = []  # versions that are waited for

    @property
    def name(self) -> str:
        return f"copy of {self.kind.plural}"

    def subscribe(self, handler: EventHandler) -> Callable[[], None]:
        """Report every existing object as new, and every change from here on; call the result to end it."""
        self._handlers.append(handler)
        for key, obj in list(self.objects.items()):
            handler(Change(self.kind, key, None, obj))
        return lambda: self._handlers.remove(handler)

    async def wait_for_version(self, version: int) -> None:
        """Wait until the copy is at least as new as that version of an object it follows, whatever became of it."""
        if self._version and int(self._version) >= version:
            return
        reached = asyncio.Event()
        waiter = version, reached
        self._version_waiters.append(waiter)
        try:
            await reached.wait()
        finally:
            self._version_waiters.remove(waiter)

    async def run(self) -> None:
        seconds = INITIAL_BACKOFF_SECONDS
        while True:
            try:
                await self._list_and_watch()
                seconds = INITIAL_BACKOFF_SECONDS
                continue
            except ApiError as refused:
                if refused.code == 410:  # the version was compacted: list again
                    self._version = ""
                    continue
                if refused.code in self._fatal_codes or self._is_last_failure():
                    raise
                log.warning("watch refused", kind=str(self.kind), code=refused.code, message=refused.message)
            except (OutcomeUnknown, OSError) as broken:
                if self._is_last_failure():
                    raise
                log.warning("watch broken", kind=str(self.kind), error=str(broken))
            await sleep(self._clock, seconds * self._jitter.uniform(0.5, 1.0))
            seconds = min(seconds * 2, MAX_BACKOFF_SECONDS)

    def _is_last_failure(self) -> bool:
        self._failures += 1
        return self._max_failures is not None and self._failures >= self._max_failures

    async def _list_and_watch(self) -> None:
        starting = not self._version
        self._initial_list = {} if starting else None
        events = self._cluster.watch(
            self.kind,
            self._namespace,
            resource_version=self._version,
            labels=self._labels,
            fields=self._fields,
            initial_events=starting,
        )
        async for event in events:
            self._handle(event)

    def _handle(self, event: WatchEvent) -> None:
        self._failures = 0
        obj = event.object
        if self._trim and event.type not in (WatchEventType.BOOKMARK, WatchEventType.DELETED):
            obj = self._trim(event)
        if event.type is WatchEventType.BOOKMARK:
            if event.ends_initial_list and self._initial_list is not None:
                self._replace(self._initial_list)
                self._initial_list = None
        elif self._initial_list is not None:
            self._initial_list[key_of(obj)] = obj
            return  # a list that breaks off half-way must not move the version
        else:
            self._apply(key_of(obj), None if event.type is WatchEventType.DELETED else obj)
        if self._initial_list is None:
            self._version = event.resource_version
            for version, reached in self._version_waiters:
                if int(self._version) >= version:
                    reached.set()

    def _replace(self, objects: dict[Key, Obj]) -> None:
        for key in [key for key in self.objects if key not in objects]:
            self._apply(key, None)
        for key, obj in objects.items():
            old = self.objects.get(key)
            if old is None or old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._apply(key, obj)
        self.synced.set()

    def _apply(self, key: Key, new: Obj | None) -> None:
        old = self.objects.pop(key, None) if new is None else self.objects.get(key)
        if new is not None:
            self.objects[key] = new
        elif old is None:
            return
        change = Change(self.kind, key, old, new)
        for handler in list(self._handlers):
            try:
                handler(change)
            except Exception:
                # Handlers share this cache: an error of one is logged and must not keep the change from the others.
                log.exception("subscriber broke", copy=self.name, key=str(key))
