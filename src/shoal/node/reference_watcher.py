"""The objects pods refer to, each watched by name for as long as a pod here needs it.

The same object is watched once however many pods refer to it. A pod that waits for a ConfigMap is woken by
the event that brings it. Claims and volumes are the exception on a cluster with the Node authorizer: a node may only
get those, so they are read again, with growing pauses, until the claim is bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.informer import Informer, strip_managed_fields
from shoal.kube.errors import ApiError
from shoal.kube.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from shoal.kube.objects import Key, Obj
from shoal.logs import Logger
from shoal.node.pod_references import Lookup, Reference, bound_volume, is_bound

log = Logger(__name__)

INITIAL_BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 30.0


class ObjectCache(Protocol):
    """A local copy of one object: `objects` is valid once `synced` is set."""

    synced: asyncio.Event

    @property
    def objects(self) -> Mapping[Key, Obj]: ...

    async def run(self) -> None: ...


class PolledCache:
    """A copy of one object that may be read but not watched. It is complete, and no longer read, once it is there and,
    if it is a claim, names its volume: neither changes afterwards."""

    def __init__(self, cluster: Cluster, reference: Reference, on_change: Callable[[], None]) -> None:
        self.synced = asyncio.Event()
        self.objects: dict[Key, Obj] = {}
        self._cluster = cluster
        self._reference = reference
        self._on_change = on_change

    async def run(self) -> None:
        pause_seconds = INITIAL_BACKOFF_SECONDS
        while not await self._is_complete():
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * 2, MAX_BACKOFF_SECONDS)

    async def _is_complete(self) -> bool:
        kind, key = self._reference
        found: Obj | None
        try:
            found = await self._cluster.get(kind, key.name, key.namespace)
        except (ApiError, OutcomeUnknown, OSError) as refused:
            # 403 as well: the Node authorizer learns from its own informer that the pod refers to the object.
            log.info("object not read yet", kind=str(kind), name=str(key), error=str(refused))
            is_answer = isinstance(refused, ApiError) and refused.code in (403, 404)
            found = None if is_answer else self.objects.get(key)
        if found != self.objects.get(key):
            self.objects = {} if found is None else {key: found}
            self._on_change()
        self.synced.set()
        return found is not None and (kind != PERSISTENT_VOLUME_CLAIM or is_bound(found))


@dataclass(slots=True)
class _Watched:
    cache: ObjectCache
    task: asyncio.Task[None]
    holders: set[str] = field(default_factory=set)


class ReferenceWatcher:
    """`acquire` sets what a pod needs and the callback that wakes it; `release` drops both."""

    def __init__(self, cluster: Cluster, *, watches_claims: bool = True) -> None:
        self._cluster = cluster
        self._watches_claims = watches_claims
        self._watched: dict[Reference, _Watched] = {}
        self._callbacks: dict[str, Callable[[], None]] = {}

    async def acquire(self, uid: str, wanted: Iterable[Reference], wake: Callable[[], None]) -> Lookup:
        """Follow what the pod refers to, and the volumes behind its claims; returns once all answers are in."""
        self._callbacks[uid] = wake
        needed = set(wanted)
        while True:
            for reference in needed:
                if reference not in self._watched:
                    cache = self._make_cache(reference)
                    task = asyncio.create_task(cache.run(), name=f"follow {reference.kind.kind} {reference.key}")
                    self._watched[reference] = _Watched(cache, task)
                self._watched[reference].holders.add(uid)
            await asyncio.gather(*(self._watched[r].cache.synced.wait() for r in needed))
            volumes = {v for r in needed if (o := self._object(r)) is not None and (v := bound_volume(o)) is not None}
            if volumes <= needed:
                break
            needed |= volumes
        self._drop(uid, keep=needed)
        return self.lookup(needed)

    def lookup(self, wanted: Iterable[Reference]) -> Lookup:
        found = ((reference, self._object(reference)) for reference in wanted)
        return Lookup({reference: obj for reference, obj in found if obj is not None})

    def release(self, uid: str) -> None:
        self._callbacks.pop(uid, None)
        self._drop(uid, keep=set())

    def close(self) -> None:
        for watched in self._watched.values():
            watched.task.cancel()
        self._watched.clear()

    def _object(self, reference: Reference) -> Obj | None:
        watched = self._watched.get(reference)
        return None if watched is None else watched.cache.objects.get(reference.key)

    def _make_cache(self, reference: Reference) -> ObjectCache:
        if not self._watches_claims and reference.kind in (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME):
            return PolledCache(self._cluster, reference, lambda: self._notify(reference))
        return Informer(
            self._cluster,
            reference.kind,
            reference.key.namespace or None,
            fields=f"metadata.name={reference.key.name}",
            on_change=lambda _: self._notify(reference),
            trim=strip_managed_fields,
        )

    def _notify(self, reference: Reference) -> None:
        watched = self._watched.get(reference)
        for uid in list(watched.holders) if watched else ():
            if wake := self._callbacks.get(uid):
                wake()

    def _drop(self, uid: str, *, keep: set[Reference]) -> None:
        for reference, watched in list(self._watched.items()):
            if reference in keep:
                continue
            watched.holders.discard(uid)
            if not watched.holders:
                watched.task.cancel()
                del self._watched[reference]
