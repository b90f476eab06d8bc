"""A dialect whose gangs are handed to a backend: the same dialect in a wrapper, with another object for its groups.

Everything that depends on the backend is here, so that neither the dialect nor the operator depends on which one it is:
the kind that is watched and written (and so the rights), the digest that detects when a group has to change, the gate
that pods wait behind, and the link between a pod and its gang.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from msgspec.structs import replace as with_fields

from shoal.dialects.capabilities import (
    Capability,
    ClusterValidation,
    DialectSettings,
    Gangs,
    ObservedChild,
    OwnedObjects,
    OwnedObjectsWrapper,
)
from shoal.dialects.dialect import Dialect, DialectWrapper, ManifestInvalid, StatePatch
from shoal.dialects.gang_backends import backend, backend_by_label
from shoal.dialects.gang_backends.backend import Backend
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.engine import (
    Action,
    Apply,
    Create,
    EventType,
    GroupRef,
    Job,
    JobState,
    ObservedGroup,
    ObservedObject,
    OwnedObjectRef,
    Target,
    TaskRef,
)
from shoal.engine.policies import Gate, GroupGate, Reaction
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, annotations_of, labels_of, name_of, namespace_of, uid_of
from shoal.kube.structural_schema import kinds_of
from shoal.scheduler.api.pod_groups import ELASTIC, GROUP_NAME, POD_GROUP

RECORDED = "shoal.dev/gang-scheduler"  # on a job: the backend of its gang
LEFT_OUT = "shoal.dev/left-out"  # on a group: what of the gang its scheduler cannot express
_SLICE = "slice:"
_OURS = "shoal.dev/"  # on a job: what we remember there ourselves
_MOST_KNOWN = 1_000


def with_backend(dialect: Dialect, backend: Backend) -> Dialect:
    """The language with its gangs handed over; a language without gangs as it is."""
    owned, gangs = dialect.capability(OwnedObjects), dialect.capability(Gangs)
    return dialect if owned is None or gangs is None else _DelegatedDialect(dialect, owned, gangs, backend)


def has_gangs(dialect: Dialect) -> bool:
    return dialect.capability(Gangs) is not None


def without_groups(dialect: Dialect) -> Dialect:
    """The dialect without a gang scheduler: only what it needs in any case."""
    return with_backend(dialect, backend("none"))


def with_recorded_backend(dialect: Dialect, manifest: Obj) -> Dialect:
    """The dialect with the backend that the operator of this job recorded, for read-only clients."""
    found = backend_by_label(annotations_of(manifest).get(RECORDED) or "")
    return dialect if found is None else with_backend(dialect, found)


def unsupported_features(group: Obj) -> str:
    """Return what of the gang its scheduler cannot express, as a list for people."""
    return annotations_of(group).get(LEFT_OUT, "")


class _GangCache:
    """What jobs request, cached by what it is read from: every pod of a job requests the same."""

    def __init__(self, gangs: Gangs, backend: Backend) -> None:
        self._gangs = gangs
        self._longest_name = backend.longest_name
        self._known: dict[tuple[object, ...], Mapping[str, GangSpec]] = {}
        self._last: tuple[Obj, Mapping[str, GangSpec]] = ({}, {})

    def of(self, manifest: Obj) -> Mapping[str, GangSpec]:
        """Thousands of pods in a row are built from one and the same manifest, which is never mutated."""
        if manifest is not self._last[0]:
            self._last = (manifest, self._recall(manifest))
        return self._last[1]

    def _recall(self, manifest: Obj) -> Mapping[str, GangSpec]:
        generation = manifest["metadata"].get("generation")
        if generation is None:
            return self._read(manifest)
        notes = ((key, text) for key, text in annotations_of(manifest).items() if not key.startswith(_OURS))
        version = (uid_of(manifest), generation, frozenset(notes), frozenset(labels_of(manifest).items()))
        if version not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[version] = self._read(manifest)
        return self._known[version]

    def _read(self, manifest: Obj) -> Mapping[str, GangSpec]:
        limit = self._longest_name
        return {
            key: replace(gang, name=_fitting(gang.name, limit)) for key, gang in self._gangs.specs(manifest).items()
        }


def _fitting(name: str, limit: int) -> str:
    """Truncate a name that is too long and append eight hex digits that make it unique."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-.')}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


def digest_of(backend: Backend, gang: GangSpec) -> str:
    content = {**backend.spec(gang), **({ELASTIC: True} if backend.requests_shrink and gang.is_elastic else {})}
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()


def _name(backend: Backend, gang: GangSpec) -> str:
    """Where each size is an object of its own, its name contains the digest."""
    return f"{gang.name}-{digest_of(backend, gang)[:8]}" if backend.is_sliced else gang.name


# --- the job and its pods ------------------------------------------------------------------------------------------


class _DelegatedDialect(DialectWrapper):
    """Jobs, pods and job states as the dialect makes them, completed by what the backend needs."""

    def __init__(self, dialect: Dialect, owned: OwnedObjects, gangs: Gangs, backend: Backend) -> None:
        self._backend = backend
        self._wanted = _GangCache(gangs, backend)
        replaced: tuple[type[Capability], ...] = (OwnedObjects, Gangs)
        if backend.kind != gangs.group:
            # Its queues are another scheduler's, and no object here shows whether a job may enter them.
            replaced = (*replaced, ClusterValidation)
        own = _DelegatedObjects(owned, gangs.group, backend, self._wanted)
        super().__init__(dialect, replaced=replaced, added=(own, _DelegatedGangs(gangs, backend, self._wanted)))

    def to_job(self, manifest: Obj, settings: DialectSettings) -> Job | None:
        job, backend = super().to_job(manifest, settings), self._backend
        if job is None:
            return None
        wanted = self._wanted.of(manifest)
        refusals = [why for gang in wanted.values() if (why := backend.rejection_reason(gang))]
        if refusals:
            raise ManifestInvalid([Cause("FieldValueForbidden", why, "spec") for why in refusals])
        policies = job.policies
        if backend.evicts:
            # First: a policy for all events means events of its pods, and a revoked admission costs no retry.
            again = Reaction(Action.RESTART_RUN, frozenset({EventType.GROUP_EVICTED}), charged=False)
            policies = replace(policies, reactions=(again, *policies.reactions))
        return replace(job, policies=replace(policies, gates=tuple(_gates(policies.gates, backend, wanted))))

    def build_pod(self, manifest: Obj, create: Create) -> Obj:
        pod = super().build_pod(manifest, create)
        pod["metadata"].get("annotations", {}).pop(GROUP_NAME, None)
        ref = create.target
        assert isinstance(ref, TaskRef)
        gang = next((each for each in self._wanted.of(manifest).values() if each.has(ref.role)), None)
        if gang is not None:
            self._backend.add_pod(pod, gang)
        return pod

    def save_state(self, job: Job, state: JobState, settings: DialectSettings) -> StatePatch:
        """Record the backend next to the job state where that is an annotation too, so that users can see it."""
        made = super().save_state(job, state, settings)
        if not made.annotations:
            return made
        return replace(made, annotations={**made.annotations, RECORDED: self._backend.label})


def _gates(gates: Iterable[Gate], backend: Backend, gangs: Mapping[str, GangSpec]) -> Iterator[Gate]:
    for gate in gates:
        if not isinstance(gate, GroupGate):
            yield gate
        elif backend.kind is not None:
            plans = tuple(
                replace(
                    plan,
                    digest=digest_of(backend, gangs[plan.key]),
                    reclaim_limits=plan.reclaim_limits if backend.requests_shrink else None,
                )
                for plan in gate.groups
            )
            yield replace(gate, groups=plans, opens_when=backend.opens_when, follows=backend.follows)


# --- the group -----------------------------------------------------------------------------------------------------


class _DelegatedObjects(OwnedObjectsWrapper):
    """The owned objects of the dialect, with the backend's kind in the place of its groups."""

    def __init__(self, owned: OwnedObjects, group: Kind, backend: Backend, wanted: _GangCache) -> None:
        self._backend = backend
        self._wanted = wanted
        children = tuple(child for child in owned.children if child.kind != group)
        if backend.kind is not None:
            groups = (replace(child, kind=backend.kind) for child in owned.children if child.kind == group)
            children = (*groups, *children)
        super().__init__(owned, children)

    def build_object(self, manifest: Obj, apply: Apply, *, is_new: bool) -> Obj:
        made, backend = super().build_object(manifest, apply, is_new=is_new), self._backend
        if not isinstance(apply.target, GroupRef):
            return made
        assert backend.kind is not None
        gang = self._wanted.of(manifest)[apply.target.key]
        unsupported = ", nor ".join(backend.unsupported_fields(gang))
        notes = {
            **annotations_of(made),
            **backend.group_annotations,
            **({LEFT_OUT: unsupported} if unsupported else {}),
        }
        if not backend.requests_shrink:
            notes.pop(ELASTIC, None)  # eviction is decided by that scheduler alone
        metadata = {**made["metadata"], "name": _name(backend, gang), "annotations": notes}
        kind = backend.kind
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": backend.spec(gang)}

    def locate_object(self, manifest: Obj, target: Target) -> tuple[Kind, str]:
        backend = self._backend
        if isinstance(target, GroupRef) and backend.kind is not None:
            return backend.kind, _name(backend, self._wanted.of(manifest)[target.key])
        if isinstance(target, OwnedObjectRef) and target.name.startswith(_SLICE) and backend.kind is not None:
            key, _, digest = target.name.removeprefix(_SLICE).rpartition(":")
            return backend.kind, f"{self._wanted.of(manifest)[key].name}-{digest[:8]}"
        return super().locate_object(manifest, target)

    def observe_child(self, obj: Obj, manifest: Obj) -> ObservedChild | None:
        found = super().observe_child(obj, manifest)
        if found is None or not isinstance(found[1], ObservedGroup) or not isinstance(found[0], GroupRef):
            return found
        seen = self._backend.status_of(obj)
        group = with_fields(found[1], admitted=seen.admitted, unknown=seen.partially_placed, evicted=seen.evicted)
        return found[0], group

    def definitions(self) -> tuple[Obj, ...]:
        """CRDs of a foreign scheduler are left to that scheduler."""
        own = self._backend.kind == POD_GROUP
        return tuple(each for each in super().definitions() if own or kinds_of(each)[0] != POD_GROUP)


class _DelegatedGangs(Gangs):
    """What the dialect's jobs request, and how the backend's scheduler responds to it."""

    def __init__(self, gangs: Gangs, backend: Backend, wanted: _GangCache) -> None:
        self._inner = gangs
        self._backend = backend
        self._wanted = wanted
        self.group = backend.kind or gangs.group
        self.cluster_lookups = backend.cluster_lookups
        self.acknowledges_pods = backend.acknowledge_pods is not None

    def specs(self, manifest: Obj) -> Mapping[str, GangSpec]:
        return self._inner.specs(manifest)

    def pending_reason(self, group: Obj) -> str:
        return self._backend.status_of(group).message.rstrip(".")

    def select_groups(self, found: Sequence[ObservedChild], manifest: Obj) -> Sequence[ObservedChild]:
        return _select_groups(self._backend, self._wanted, found, manifest) if self._backend.is_sliced else found

    def replace_group(self, made: Obj, others: Iterable[Obj]) -> None:
        backend = self._backend
        before = [obj for obj in others if backend.status_of(obj).admitted] if backend.is_sliced else []
        if before:  # the new object names the granted one that it takes over from
            name = f"{namespace_of(before[0])}/{name_of(before[0])}"
            made["metadata"]["annotations"][backend.replaces_annotation] = name

    def acknowledge_pods(self, group: Obj, are_up: bool, now: str) -> Obj | None:
        tell = self._backend.acknowledge_pods
        return tell(group, are_up, now) if tell is not None else None


# --- groups that take over from each other -------------------------------------------------------------------------


def _select_groups(
    backend: Backend, gangs: _GangCache, found: Sequence[ObservedChild], manifest: Obj
) -> list[ObservedChild]:
    """Of several objects for one gang, the admitted one represents it until another of the right size is admitted.

    Then the older ones are unneeded owned objects and are deleted. Until then no other is created.
    """
    kept: list[ObservedChild] = [each for each in found if not isinstance(each[1], ObservedGroup)]
    wanted = gangs.of(manifest)
    by_key: dict[str, list[ObservedGroup]] = {}
    for _, seen in found:
        if isinstance(seen, ObservedGroup):
            by_key.setdefault(seen.key, []).append(seen)
    for key, groups in by_key.items():
        digest = digest_of(backend, wanted[key]) if key in wanted else ""
        kept += _current_group(key, groups, digest)
    return kept


def _current_group(key: str, groups: list[ObservedGroup], digest: str) -> Iterator[ObservedChild]:
    fresh = next((group for group in groups if group.digest == digest), None)
    older = [group for group in groups if group is not fresh]
    granted = next((group for group in older if group.admitted or group.evicted), None)
    if fresh is not None and (fresh.admitted or granted is None):
        standing = fresh
    elif fresh is not None and granted is not None:
        standing = with_fields(granted, digest=digest, admitted=False)
    else:
        standing = with_fields(granted or older[0], admitted=False)
    yield GroupRef(key), standing
    for group in older:
        if group.uid != standing.uid:
            seen = ObservedObject(group.uid, group.digest, leaving=group.leaving, owned=group.owned)
            yield OwnedObjectRef(f"{_SLICE}{key}:{group.digest}"), seen
