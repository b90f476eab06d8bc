"""The objects of one kind that the jobs of one dialect own, indexed by job.

Where another owner's object has a name that a job needs, the job registers to be woken when that object is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from shoal.cluster.informer import Change, EventHandler, Informer
from shoal.dialects.dialect import Dialect
from shoal.kube.objects import Key, Obj, uid_of
from shoal.operator.shared_informers import WHOLE, SharedInformer, owner_in

# Beside the fields of a cached object: what the pod is to the engine, and that the API server accepted its deletion.
OBSERVED_POD, _DELETING = "observed", "deleting"

_decode = msgspec.json.Decoder().decode


class JobIndex:
    """Kept up to date by a shared informer."""

    def __init__(
        self,
        shared: SharedInformer,
        dialect: Dialect,
        *,
        wake: Callable[[Key], None],
        on_name_freed: Callable[[Key], None] = lambda _: None,
        on_deletion: Callable[[Key, str], None] = lambda _, __: None,
        on_final_version: Callable[[Obj], None] | None = None,
        on_change: EventHandler | None = None,
    ) -> None:
        """`wake`: a job whose objects changed; `on_name_freed`: a job whose name conflict ended; `on_deletion`: job and
        uid of an object that was deleted; `on_final_version`: the last version of it; `on_change`: every change, no
        matter which job owns the object. Without that, changes of other dialects' objects do not arrive here."""
        self._shared = shared
        self._dialect = dialect
        self._wake = wake
        self._on_name_freed = on_name_freed
        self._on_final_version = on_final_version
        self._on_deletion = on_deletion
        self._on_change = on_change
        self._of: dict[Key, dict[Key, None]] = {}  # by job, in order of appearance
        self._awaited: dict[Key, Key] = {}  # an object in the way -> the job that waits for its end
        shared.add_index(dialect, self)

    @property
    def informer(self) -> Informer:
        return self._shared.informer

    def of(self, job: Key) -> Iterator[Obj]:
        """What belongs to the job of that name, and what blocks one of its names."""
        objects = self._shared.objects
        for key in self._of.get(job, ()):
            yield objects[key]

    def get(self, key: Key) -> Obj | None:
        return self._shared.objects.get(key)

    def name_of(self, uid: str) -> str | None:
        found = self._shared.by_uid(uid)
        return str(found["metadata"]["name"]) if found is not None else None

    def mark_deleting(self, uid: str) -> None:
        """The API server accepted its deletion: until the cache shows the result, there is nothing to request again."""
        if (found := self._shared.by_uid(uid)) is not None:
            found[_DELETING] = True

    def is_marked_deleting(self, uid: str) -> bool:
        found = self._shared.by_uid(uid)
        return found is not None and _DELETING in found

    def await_end(self, key: Key, job: Key) -> bool:
        """Index another owner's object under this job until it is deleted; returns whether it exists."""
        if key not in self._shared.objects:
            return False
        self._awaited[key] = job
        self._of.setdefault(job, {})[key] = None
        return True

    def concerns(self, change: Change) -> bool:
        return (
            self._on_change is not None
            or change.key in self._awaited
            or owner_in(change.old, self._dialect) is not None
            or owner_in(change.new, self._dialect) is not None
        )

    def handle(self, change: Change) -> None:
        old, new = change.old, change.new
        before, after = (owner.key if (owner := owner_in(obj, self._dialect)) else None for obj in (old, new))
        is_gone = old is not None and (new is None or uid_of(new) != uid_of(old))
        if old is not None and before is not None:
            if is_gone:
                self._on_deletion(before, uid_of(old))
                if self._on_final_version is not None and WHOLE in old:
                    self._on_final_version(_decode(old[WHOLE]))
            if before != after:
                self._remove(before, change.key)
        if after is not None:
            self._of.setdefault(after, {})[change.key] = None
        waiting = self._awaited.get(change.key)
        if waiting is not None and is_gone:
            del self._awaited[change.key]
            self._on_name_freed(waiting)
            if waiting != after:
                self._remove(waiting, change.key)
        for job in {before, after, waiting}:
            if job is not None:
                self._wake(job)
        if self._on_change is not None:
            self._on_change(change)

    def _remove(self, job: Key, key: Key) -> None:
        keys = self._of.get(job)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._of[job]
