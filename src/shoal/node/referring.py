"""The objects pods refer to, each watched by name for as long as a pod here needs it.

The same object is watched once however many pods refer to it. A pod that waits for a ConfigMap is woken by
the event that brings it; nothing is asked for again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shoal.cluster.port import Cluster
from shoal.cluster.reflecting import Change, Reflector, bare
from shoal.kube.objects import Obj
from shoal.node.references import Lookup, Reference, volume_behind


@dataclass(slots=True)
class _Followed:
    reflector: Reflector
    task: asyncio.Task[None]
    holders: set[str] = field(default_factory=set)


class References:
    """`hold` says what a pod needs and whom to wake; `release` when it needs nothing any more."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._followed: dict[Reference, _Followed] = {}
        self._wakes: dict[str, Callable[[], None]] = {}

    async def hold(self, uid: str, wanted: Iterable[Reference], wake: Callable[[], None]) -> Lookup:
        """Follow what the pod refers to, and the volumes behind its claims; returns once all answers are in."""
        self._wakes[uid] = wake
        needed = set(wanted)
        while True:
            for reference in needed:
                self._follow(reference).holders.add(uid)
            await asyncio.gather(*(self._followed[r].reflector.synced.wait() for r in needed))
            behind = {v for r in needed if (o := self._object(r)) is not None and (v := volume_behind(o)) is not None}
            if behind <= needed:
                break
            needed |= behind
        self._drop(uid, keep=needed)
        return self.lookup(needed)

    def lookup(self, wanted: Iterable[Reference]) -> Lookup:
        found = ((reference, self._object(reference)) for reference in wanted)
        return Lookup({reference: obj for reference, obj in found if obj is not None})

    def release(self, uid: str) -> None:
        self._wakes.pop(uid, None)
        self._drop(uid, keep=set())

    def close(self) -> None:
        for followed in self._followed.values():
            followed.task.cancel()
        self._followed.clear()

    def _object(self, reference: Reference) -> Obj | None:
        followed = self._followed.get(reference)
        return None if followed is None else followed.reflector.objects.get(reference.key)

    def _follow(self, reference: Reference) -> _Followed:
        if reference not in self._followed:
            reflector = Reflector(
                self._cluster,
                reference.kind,
                reference.key.namespace or None,
                fields=f"metadata.name={reference.key.name}",
                on_change=lambda change: self._changed(reference, change),
                trim=bare,
            )
            task = asyncio.create_task(reflector.run(), name=f"follow {reference.kind.kind} {reference.key}")
            self._followed[reference] = _Followed(reflector, task)
        return self._followed[reference]

    def _changed(self, reference: Reference, _: Change) -> None:
        followed = self._followed.get(reference)
        for uid in list(followed.holders) if followed else ():
            if wake := self._wakes.get(uid):
                wake()

    def _drop(self, uid: str, *, keep: set[Reference]) -> None:
        for reference, followed in list(self._followed.items()):
            if reference in keep:
                continue
            followed.holders.discard(uid)
            if not followed.holders:
                followed.task.cancel()
                del self._followed[reference]
