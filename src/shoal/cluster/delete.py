"""Deleting: at once, after a grace period, or when the last finalizer has gone.

A request to delete marks the object and says how long it may take; who waits (a node for its processes, the
collector for dependents, any controller for its finalizer) finishes it later. What happens to dependents is the
collector's work: here only its finalizers are set.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from shoal.cluster.client import DeleteOptions, Propagation
from shoal.cluster.registry import Core, Resource
from shoal.cluster.types import Deleted, Stored
from shoal.kube import kinds, times
from shoal.kube.conditions import with_condition
from shoal.kube.defaults import pods as pod_defaults
from shoal.kube.errors import ApiError, conflict, forbidden
from shoal.kube.objects import Key, Obj

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class _Grace:
    """`seconds` 0 means now; `pending`: an earlier request already gave less time."""

    seconds: int = 0
    pending: bool = False
    asked: bool = False  # whether the kind knows grace at all


class Remover:
    def __init__(self, core: Core) -> None:
        self._core = core

    def delete(self, resource: Resource, key: Key, options: DeleteOptions) -> Deleted:
        stored = self._core.stored(resource, key)
        if resource.kind == kinds.NAMESPACE:
            return self._delete_namespace(resource, stored, options)
        check_preconditions(resource, stored, options)
        obj = resource.live(stored)
        grace = self._grace(resource, obj, options)
        if grace.pending:
            return Deleted(resource.show(stored), gone=False)
        finalizers = _finalizers(obj, options.propagation)
        meta = obj["metadata"]
        before = dict(meta)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        if not grace.asked:
            if not finalizers:
                return Deleted(resource.show(self._gone(resource, stored, options)), gone=True)
            self._mark_now(meta)
        else:
            self._mark(meta, grace.seconds)
        marked = stored if meta == before else self._changed(resource, obj, stored, options)
        if finalizers or grace.seconds > 0:
            return Deleted(resource.show(marked), gone=False)
        return Deleted(resource.show(self._gone(resource, marked, options)), gone=True)

    def _changed(self, resource: Resource, obj: Obj, stored: Stored, options: DeleteOptions) -> Stored:
        if options.dry_run:
            return self._core.made(resource, obj, 0, stored)
        return self._core.put(resource, obj, stored)

    def _gone(self, resource: Resource, stored: Stored, options: DeleteOptions) -> Stored:
        return stored if options.dry_run else self._core.remove(resource, stored.key)

    def _mark_now(self, meta: Obj) -> None:
        """Nothing but finalizers holds the object from now on."""
        now = self._core.moment()
        self._count(meta)
        if not meta.get("deletionTimestamp") or times.parse(meta["deletionTimestamp"]) > now:
            meta["deletionTimestamp"] = times.rfc3339(now)
        meta["deletionGracePeriodSeconds"] = 0

    def _mark(self, meta: Obj, seconds: int) -> None:
        """Set, or move forward, the moment at which the object should be gone."""
        now = self._core.moment()
        self._count(meta)
        since = now
        if meta.get("deletionTimestamp"):
            since = times.parse(meta["deletionTimestamp"]) - timedelta(seconds=meta["deletionGracePeriodSeconds"])
        due = since + timedelta(seconds=seconds)
        if due < now:
            due, seconds = now, min(seconds, 1)
        meta["deletionTimestamp"] = times.rfc3339(due)
        meta["deletionGracePeriodSeconds"] = seconds

    def _count(self, meta: Obj) -> None:
        """The wish to be gone is a change of what is wanted, once."""
        if not meta.get("deletionTimestamp") and meta.get("generation"):
            meta["generation"] += 1

    def _grace(self, resource: Resource, obj: Obj, options: DeleteOptions) -> _Grace:
        if resource.kind != kinds.POD:
            return _Grace()
        meta, spec = obj["metadata"], obj.get("spec") or {}
        asked = options.grace_seconds
        if asked is not None and asked < 0:
            asked = 1
        if meta.get("deletionTimestamp"):
            left = meta.get("deletionGracePeriodSeconds")
            if not left:
                return _Grace()
            return _Grace(pending=True) if asked is None or asked >= left else _Grace(asked, asked=True)
        seconds = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in _OVER:
            seconds = 0
        return _Grace(seconds if seconds >= 0 else 1, asked=True)

    # Namespaces

    def _delete_namespace(self, resource: Resource, stored: Stored, options: DeleteOptions) -> Deleted:
        """A namespace says it is going; the collector empties it, and its own finalizer holds it until then."""
        name = stored.key.name
        if name in IMMORTAL:
            raise forbidden(kinds.NAMESPACE, name, "this namespace may not be deleted")
        _check_namespace_preconditions(stored, options)
        obj = stored.obj()
        if not stored.leaving:
            meta = obj["metadata"]
            meta["deletionTimestamp"] = self._core.now()
            obj.setdefault("status", {})["phase"] = "Terminating"
            finalizers = _finalizers(obj, options.propagation)
            if finalizers:
                meta["finalizers"] = finalizers
            return Deleted(self._changed(resource, obj, stored, options), gone=False)
        if obj["spec"].get("finalizers") or stored.finalizers:
            return Deleted(stored, gone=False)
        return Deleted(self._gone(resource, stored, options), gone=True)

    # Eviction

    def evict(self, key: Key, options: DeleteOptions) -> Deleted:
        """Delete a pod on behalf of somebody who needs its place; its status says so."""
        resource = self._core.pods
        stored = self._core.stored(resource, key)
        check_preconditions(resource, stored, options)
        pod = stored.obj()
        if not options.dry_run and not stored.leaving:
            status = pod.setdefault("status", {})
            status["conditions"] = with_condition(
                status.get("conditions"), "DisruptionTarget", True, now=self._core.now(),
                reason="EvictionByEvictionAPI", message="Eviction API: evicting",
            )  # fmt: skip
            pod_defaults.conditions(status)
            self._core.put(resource, pod, stored)
        plain = DeleteOptions(options.grace_seconds, options.propagation, dry_run=options.dry_run)
        return self.delete(resource, key, plain)


def _finalizers(obj: Obj, propagation: Propagation | None) -> list[str]:
    """The finalizers of the object with those of the collector set as the request wants them."""
    present: list[str] = obj["metadata"].get("finalizers") or []
    kept = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    if propagation is Propagation.ORPHAN or (propagation is None and ORPHAN in present):
        return [*kept, ORPHAN]
    if propagation is Propagation.FOREGROUND or (propagation is None and FOREGROUND in present):
        return [*kept, FOREGROUND]
    return kept


def check_preconditions(resource: Resource, stored: Stored, options: DeleteOptions) -> None:
    wanted = options.preconditions
    if wanted.uid is not None and wanted.uid != stored.uid:
        raise _unmet(
            resource, stored,
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({stored.uid}). "
            f"The object might have been deleted and then recreated",
        )  # fmt: skip
    if wanted.resource_version is not None and wanted.resource_version != str(stored.revision):
        raise _unmet(
            resource, stored,
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({stored.revision}). The object might have been modified",
        )  # fmt: skip


def _unmet(resource: Resource, stored: Stored, why: str) -> ApiError:
    """Kubernetes names the kind here, not the resource."""
    kind, name = resource.kind, stored.key.name
    error = conflict(kind, name, why)
    error.message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    error.details = {**(error.details or {}), "kind": kind.kind}
    return error


def _check_namespace_preconditions(stored: Stored, options: DeleteOptions) -> None:
    wanted = options.preconditions
    name = stored.key.name
    if wanted.uid is not None and wanted.uid != stored.uid:
        why = f"Precondition failed: UID in precondition: {wanted.uid}, UID in object meta: {stored.uid}"
        raise conflict(kinds.NAMESPACE, name, why)
    if wanted.resource_version is not None and wanted.resource_version != str(stored.revision):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {wanted.resource_version}, "
            f"ResourceVersion in object meta: {stored.revision}"
        )
        raise conflict(kinds.NAMESPACE, name, why)
