"""Informers for what jobs own, indexed by the job an object belongs to.

The dialect reads the owner from the object itself; where an object's name blocks a job that does not own it, the job
registers to be woken when it changes. Copies are trimmed to what the engine reads, because a decoded pod costs several
times its JSON; the whole object is kept as bytes where its final state is history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from shoal.cluster.client import Cluster, WatchEvent
from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change, Informer
from shoal.dialects.dialect import Owner
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, uid_of

OwnerOf = Callable[[Obj], Owner | None]

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
# Besides the trimmed fields of a copy: the whole object as JSON, its owner, what it is to the engine, and whether the
# cluster took its deletion since.
_WHOLE, _OWNER, OBSERVED_POD, _DELETING = "whole", "owner", "body", "doomed"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class OwnedInformer:
    """One kind of object, of all jobs of a dialect."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        owner: OwnerOf,
        *,
        namespace: str | None = None,
        labels: str = "",
        wake: Callable[[Key], None],
        freed: Callable[[Key], None],
        gone: Callable[[Obj], None] | None = None,
        went: Callable[[Key, str], None] = lambda _, __: None,
        clock: Clock,
    ) -> None:
        self.kind = kind
        self._owner = owner
        self._wake = wake
        self._freed = freed
        self._gone = gone
        self._went = went
        self._of: dict[Key, dict[Key, None]] = {}  # by job, in order of appearance
        self._by_uid: dict[str, Key] = {}
        self._awaited: dict[Key, Key] = {}  # an object in the way -> the job that waits for its end
        self.reflector = Informer(
            cluster, kind, namespace, labels=labels, trim=self._trimmed, on_change=self._changed, clock=clock
        )

    def of(self, job: Key) -> Iterator[Obj]:
        """What belongs to the job of that name, and what blocks one of its names."""
        objects = self.reflector.objects
        for key in self._of.get(job, ()):
            yield objects[key]

    def get(self, key: Key) -> Obj | None:
        return self.reflector.objects.get(key)

    def name_of(self, uid: str) -> str | None:
        key = self._by_uid.get(uid)
        return key.name if key is not None else None

    def mark_deleting(self, uid: str) -> None:
        """The API server accepted its deletion: until the copy shows the result, there is nothing to request again."""
        if (key := self._by_uid.get(uid)) is not None:
            self.reflector.objects[key][_DELETING] = True

    def is_marked_deleting(self, uid: str) -> bool:
        key = self._by_uid.get(uid)
        return key is not None and _DELETING in self.reflector.objects[key]

    def await_end(self, key: Key, job: Key) -> bool:
        """Index another owner's object under this job until it is deleted; returns whether it exists."""
        if key not in self.reflector.objects:
            return False
        self._awaited[key] = job
        self._of.setdefault(job, {})[key] = None
        return True

    def _trimmed(self, event: WatchEvent) -> Obj:
        obj = event.object
        meta, owner = obj["metadata"], self._owner(obj)
        if owner is None:
            return {"metadata": _part(meta, _IDENTITY)}
        trimmed: Obj = {"metadata": _part(meta, _META), _OWNER: owner}
        if "spec" in obj:
            trimmed["spec"] = _part(obj["spec"], _SPEC)
        if "status" in obj:
            trimmed["status"] = _slim_status(obj["status"])
        if self._gone is not None:
            trimmed[_WHOLE] = event.raw or _encode(obj)
        return trimmed

    def _changed(self, change: Change) -> None:
        before, after = (_job_of(obj) for obj in (change.old, change.new))
        if change.old is not None:
            self._forget(change, before, after)
        if change.new is not None:
            self._by_uid[uid_of(change.new)] = change.key
            if after is not None:
                self._of.setdefault(after, {})[change.key] = None
        waiting = self._awaited.get(change.key)
        if change.new is None or (change.old is not None and uid_of(change.old) != uid_of(change.new)):
            self._no_longer_awaited(change.key, after)
        for job in {before, after, waiting} - {None}:
            assert job is not None
            self._wake(job)

    def _forget(self, change: Change, before: Key | None, after: Key | None) -> None:
        old = change.old
        assert old is not None
        same = change.new is not None and uid_of(change.new) == uid_of(old)
        if not same:
            self._by_uid.pop(uid_of(old), None)
            if before is not None:
                self._went(before, uid_of(old))
            if self._gone is not None and _WHOLE in old:
                self._gone(_decode(old[_WHOLE]))
        if before is not None and before != after:
            self._remove(before, change.key)

    def _no_longer_awaited(self, key: Key, owner: Key | None) -> None:
        job = self._awaited.pop(key, None)
        if job is not None:
            self._freed(job)
            if job != owner:
                self._remove(job, key)

    def _remove(self, job: Key, key: Key) -> None:
        keys = self._of.get(job)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._of[job]


def _job_of(obj: Obj | None) -> Key | None:
    owner: Owner | None = obj.get(_OWNER) if obj is not None else None
    return owner.key if owner is not None else None


def _part(whole: dict[str, Any], names: tuple[str, ...]) -> Obj:
    return {name: whole[name] for name in names if name in whole}


def _slim_status(status: Obj) -> Obj:
    slim = _part(status, _STATUS)
    for group in ("initContainerStatuses", "containerStatuses"):
        if group in slim:
            slim[group] = [_part(entry, _CONTAINER) for entry in slim[group]]
    return slim
