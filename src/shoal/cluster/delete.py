"""Deletion: at once, after a grace period, or when the last finalizer has been removed.

A delete request marks the object and sets how long it may take; the component that holds it (a node for its
processes, the collector for dependents, any controller for its finalizer) finishes it later. Dependents are handled
by the collector: here only its finalizers are set.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from shoal.cluster.client import DeleteOptions, DeletionPropagation
from shoal.cluster.registry import Core, Resource
from shoal.cluster.types import DeleteResult, Stored
from shoal.kube import kinds, times
from shoal.kube.conditions import with_condition
from shoal.kube.defaults import pod_defaults
from shoal.kube.errors import ApiError, conflict, forbidden
from shoal.kube.objects import Key, Obj

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
_TERMINAL_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class _Grace:
    """`seconds` 0 means now; `pending`: an earlier request has a shorter period."""

    seconds: int = 0
    pending: bool = False
    supported: bool = False  # whether the kind supports grace at all


class Deleter:
    def __init__(self, core: Core) -> None:
        self._core = core

    def delete(self, resource: Resource, key: Key, options: DeleteOptions) -> DeleteResult:
        stored = self._core.stored(resource, key)
        if resource.kind == kinds.NAMESPACE:
            return self._delete_namespace(resource, stored, options)
        check_preconditions(resource, stored, options)
        obj = resource.decode(stored)
        grace = self._grace(resource, obj, options)
        if grace.pending:
            return DeleteResult(resource.from_storage(stored), removed=False)
        finalizers = _finalizers(obj, options.propagation)
        meta = obj["metadata"]
        before = dict(meta)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        if not grace.supported:
            if not finalizers:
                return DeleteResult(
                    resource.from_storage(self._remove_unless_dry_run(resource, stored, options)), removed=True
                )
            # The kind has no grace period: nothing but finalizers holds the object from now on.
            now = self._core.now_datetime()
            self._bump_generation(meta)
            if not meta.get("deletionTimestamp") or times.parse(meta["deletionTimestamp"]) > now:
                meta["deletionTimestamp"] = times.rfc3339(now)
            meta["deletionGracePeriodSeconds"] = 0
        else:
            self._set_deletion(meta, grace.seconds)
        updated = stored if meta == before else self._put_unless_dry_run(resource, obj, stored, options)
        if finalizers or grace.seconds > 0:
            return DeleteResult(resource.from_storage(updated), removed=False)
        return DeleteResult(
            resource.from_storage(self._remove_unless_dry_run(resource, updated, options)), removed=True
        )

    def _put_unless_dry_run(self, resource: Resource, obj: Obj, stored: Stored, options: DeleteOptions) -> Stored:
        if options.dry_run:
            return self._core.build_stored(resource, obj, 0, stored)
        return self._core.put(resource, obj, stored)

    def _remove_unless_dry_run(self, resource: Resource, stored: Stored, options: DeleteOptions) -> Stored:
        return stored if options.dry_run else self._core.remove(resource, stored.key)

    def _set_deletion(self, meta: Obj, seconds: int) -> None:
        """Set, or move forward, the moment at which the object should be gone."""
        now = self._core.now_datetime()
        self._bump_generation(meta)
        since = now
        if meta.get("deletionTimestamp"):
            since = times.parse(meta["deletionTimestamp"]) - timedelta(seconds=meta["deletionGracePeriodSeconds"])
        due = since + timedelta(seconds=seconds)
        if due < now:
            due, seconds = now, min(seconds, 1)
        meta["deletionTimestamp"] = times.rfc3339(due)
        meta["deletionGracePeriodSeconds"] = seconds

    def _bump_generation(self, meta: Obj) -> None:
        """A deletion request changes the desired state, once."""
        if not meta.get("deletionTimestamp") and meta.get("generation"):
            meta["generation"] += 1

    def _grace(self, resource: Resource, obj: Obj, options: DeleteOptions) -> _Grace:
        if resource.kind != kinds.POD:
            return _Grace()
        meta, spec = obj["metadata"], obj.get("spec") or {}
        supported = options.grace_seconds
        if supported is not None and supported < 0:
            supported = 1
        if meta.get("deletionTimestamp"):
            remaining = meta.get("deletionGracePeriodSeconds")
            if not remaining:
                return _Grace()
            return (
                _Grace(pending=True)
                if supported is None or supported >= remaining
                else _Grace(supported, supported=True)
            )
        seconds = supported if supported is not None else spec.get("terminationGracePeriodSeconds") or 0
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in _TERMINAL_PHASES:
            seconds = 0
        return _Grace(seconds if seconds >= 0 else 1, supported=True)

    # Namespaces

    def _delete_namespace(self, resource: Resource, stored: Stored, options: DeleteOptions) -> DeleteResult:
        """Set a namespace to Terminating; the collector empties it, and its own finalizer holds it until then."""
        name = stored.key.name
        if name in PROTECTED_NAMESPACES:
            raise forbidden(kinds.NAMESPACE, name, "this namespace may not be deleted")
        preconditions = options.preconditions
        if preconditions.uid is not None and preconditions.uid != stored.uid:
            why = f"Precondition failed: UID in precondition: {preconditions.uid}, UID in object meta: {stored.uid}"
            raise conflict(kinds.NAMESPACE, name, why)
        if preconditions.resource_version is not None and preconditions.resource_version != str(stored.revision):
            why = (
                f"Precondition failed: ResourceVersion in precondition: {preconditions.resource_version}, "
                f"ResourceVersion in object meta: {stored.revision}"
            )
            raise conflict(kinds.NAMESPACE, name, why)
        obj = stored.obj()
        if not stored.terminating:
            meta = obj["metadata"]
            meta["deletionTimestamp"] = self._core.now()
            obj.setdefault("status", {})["phase"] = "Terminating"
            finalizers = _finalizers(obj, options.propagation)
            if finalizers:
                meta["finalizers"] = finalizers
            return DeleteResult(self._put_unless_dry_run(resource, obj, stored, options), removed=False)
        if obj["spec"].get("finalizers") or stored.finalizers:
            return DeleteResult(stored, removed=False)
        return DeleteResult(self._remove_unless_dry_run(resource, stored, options), removed=True)

    # Eviction

    def evict(self, key: Key, options: DeleteOptions) -> DeleteResult:
        """Delete a pod on behalf of another that needs its place, and record this in its status."""
        resource = self._core.pods
        stored = self._core.stored(resource, key)
        check_preconditions(resource, stored, options)
        pod = stored.obj()
        if not options.dry_run and not stored.terminating:
            status = pod.setdefault("status", {})
            status["conditions"] = with_condition(
                status.get("conditions"), "DisruptionTarget", True, now=self._core.now(),
                reason="EvictionByEvictionAPI", message="Eviction API: evicting",
            )  # fmt: skip
            pod_defaults.conditions(status)
            self._core.put(resource, pod, stored)
        plain = DeleteOptions(options.grace_seconds, options.propagation, dry_run=options.dry_run)
        return self.delete(resource, key, plain)


def _finalizers(obj: Obj, propagation: DeletionPropagation | None) -> list[str]:
    """The finalizers of the object, with those of the collector set as requested."""
    present: list[str] = obj["metadata"].get("finalizers") or []
    kept = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    if propagation is DeletionPropagation.ORPHAN or (propagation is None and ORPHAN in present):
        return [*kept, ORPHAN]
    if propagation is DeletionPropagation.FOREGROUND or (propagation is None and FOREGROUND in present):
        return [*kept, FOREGROUND]
    return kept


def check_preconditions(resource: Resource, stored: Stored, options: DeleteOptions) -> None:
    wanted = options.preconditions
    if wanted.uid is not None and wanted.uid != stored.uid:
        raise _precondition_error(
            resource, stored,
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({stored.uid}). "
            f"The object might have been deleted and then recreated",
        )  # fmt: skip
    if wanted.resource_version is not None and wanted.resource_version != str(stored.revision):
        raise _precondition_error(
            resource, stored,
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({stored.revision}). The object might have been modified",
        )  # fmt: skip


def _precondition_error(resource: Resource, stored: Stored, why: str) -> ApiError:
    """Kubernetes names the kind here, not the resource."""
    kind, name = resource.kind, stored.key.name
    error = conflict(kind, name, why)
    error.message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    error.details = {**(error.details or {}), "kind": kind.kind}
    return error
