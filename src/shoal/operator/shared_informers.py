"""The informers that the job reconcilers of one process share: one per kind, for the jobs of every dialect.

A decoded pod costs several times its JSON. With an informer per dialect each pod would be watched, decoded and cached
once per dialect, although at most one of them runs its job. Here it is cached once. The transform finds the dialect
and the job that own an object, and a change reaches the reconciler of that dialect alone (`job_index.py`).

Cached objects are trimmed to what the engine reads, and objects that belong to no job to their identity: a foreign
pod still blocks its name. The whole object is kept as bytes where its final state is history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from shoal.cluster.client import Cluster, WatchEvent
from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change, Informer
from shoal.dialects.capabilities import HistorySnapshots, OwnedObjects, RunOwner
from shoal.dialects.dialect import Dialect, Owner
from shoal.kube.kinds import CONFIG_MAP, POD, Kind
from shoal.kube.objects import Key, Obj, uid_of
from shoal.logs import Logger

log = Logger(__name__)

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
_META = (
    *_IDENTITY, "creationTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences",
    "finalizers",
)  # fmt: skip
_SPEC = ("nodeName", "restartPolicy", "hostNetwork")
_STATUS = (
    "phase", "reason", "message", "podIP", "hostIP", "conditions", "initContainerStatuses", "containerStatuses",
)  # fmt: skip
_CONTAINER = ("name", "state", "lastState", "restartCount")

# Beside the trimmed fields of a cached object: the jobs that own it, each with its dialect, and the object as JSON.
_OWNERS, WHOLE = "owners", "whole"

_encode = msgspec.json.Encoder().encode


class Index(Protocol):
    """Receives the changes that concern the jobs of one dialect."""

    def concerns(self, change: Change) -> bool: ...

    def handle(self, change: Change) -> None: ...


class SharedInformer:
    """One kind of object, for the jobs of the given dialects that `serves` accepts."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        dialects: Iterable[Dialect],
        *,
        namespace: str | None,
        labels: str,
        serves: Callable[[Key], bool] | None,
        clock: Clock,
    ) -> None:
        self.kind = kind
        self._dialects = tuple(dialects)
        self._serves = serves
        # Of objects other than pods no final state is recorded.
        recording = (each for each in self._dialects if each.capability(HistorySnapshots) is not None)
        self._recorded = frozenset(recording) if kind == POD else frozenset()
        self._keys: dict[str, Key] = {}  # by uid
        self._indexes: dict[Dialect, Index] = {}
        self.informer = Informer(
            cluster, kind, namespace, labels=labels, trim=self._trim, on_change=self._route, clock=clock
        )

    @property
    def objects(self) -> dict[Key, Obj]:
        return self.informer.objects

    def by_uid(self, uid: str) -> Obj | None:
        key = self._keys.get(uid)
        return self.informer.objects[key] if key is not None else None

    def add_index(self, dialect: Dialect, index: Index) -> None:
        """Route the dialect's changes there from now on, beginning with what exists.

        It replaces the dialect's former index: that of a reconciler that failed and was started again.
        """
        self._indexes[dialect] = index
        for key, obj in list(self.informer.objects.items()):
            change = Change(self.kind, key, None, obj)
            if index.concerns(change):
                index.handle(change)

    def _trim(self, event: WatchEvent) -> Obj:
        obj = event.object
        meta, owners = obj["metadata"], self._owners_of(obj)
        if not owners:
            return {"metadata": _part(meta, _IDENTITY)}
        trimmed: Obj = {"metadata": _part(meta, _META), _OWNERS: owners}
        if "spec" in obj:
            trimmed["spec"] = _part(obj["spec"], _SPEC)
        if "status" in obj:
            status = trimmed["status"] = _part(obj["status"], _STATUS)
            for group in ("initContainerStatuses", "containerStatuses"):
                if group in status:
                    status[group] = [_part(entry, _CONTAINER) for entry in status[group]]
        if any(dialect in self._recorded for dialect, _ in owners):
            trimmed[WHOLE] = event.raw or _encode(obj)
        return trimmed

    def _owners_of(self, obj: Obj) -> tuple[tuple[Dialect, Owner], ...]:
        # Usually one at most. A Framework proves itself by annotations, which anybody can write, so that two dialects
        # may claim an object; each then sees it, as the uid of the job decides in the end.
        owners = []
        for dialect in self._dialects:
            try:
                owner = dialect.owner_of(obj)
            except Exception:
                # The others share this informer: an object that one dialect cannot read must not stop it for all.
                log.exception("owner not readable", kind=str(self.kind), dialect=str(dialect.kind))
                continue
            if owner is not None and (self._serves is None or self._serves(owner.key)):
                owners.append((dialect, owner))
        return tuple(owners)

    def _route(self, change: Change) -> None:
        if change.old is not None:
            self._keys.pop(uid_of(change.old), None)
        if change.new is not None:
            self._keys[uid_of(change.new)] = change.key
        for index in list(self._indexes.values()):
            if index.concerns(change):
                try:
                    index.handle(change)
                except Exception:
                    log.exception("reconciler failed to handle a change", kind=str(self.kind), key=str(change.key))


class SharedInformers:
    """The informers of every kind that jobs of these dialects own. `run` until cancelled."""

    name = "informers of owned objects"

    def __init__(
        self,
        cluster: Cluster,
        dialects: Iterable[Dialect],
        *,
        namespace: str | None = None,
        serves: Callable[[Key], bool] | None = None,
        clock: Clock,
    ) -> None:
        users: dict[tuple[Kind, str], list[Dialect]] = {}
        for dialect in dialects:
            watched = [(POD, "")]
            if dialect.capability(RunOwner) is not None:
                watched.append((CONFIG_MAP, ""))
            if (owned := dialect.capability(OwnedObjects)) is not None:
                watched += [(child.kind, child.labels) for child in owned.children]
            for kind_and_labels in watched:
                users.setdefault(kind_and_labels, []).append(dialect)
        # A kind watched with several selectors has an informer for each: to share the widest one would cache objects
        # that the selector of the others keeps out of memory.
        self._informers = {
            (kind, labels): SharedInformer(
                cluster, kind, those, namespace=namespace, labels=labels, serves=serves, clock=clock
            )
            for (kind, labels), those in users.items()
        }

    def of(self, kind: Kind, labels: str = "") -> SharedInformer:
        return self._informers[kind, labels]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for shared in self._informers.values():
                group.create_task(shared.informer.run())


def owner_in(obj: Obj | None, dialect: Dialect) -> Owner | None:
    """The job of that dialect that owns a cached object."""
    if obj is not None:
        for each, owner in obj.get(_OWNERS, ()):
            if each is dialect:
                return owner  # type: ignore[no-any-return]
    return None


def _part(whole: dict[str, Any], names: tuple[str, ...]) -> Obj:
    return {name: whole[name] for name in names if name in whole}
