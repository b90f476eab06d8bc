"""A job language whose gangs are handed to a backend: the same language, with another object for its groups.

Everything that depends on the backend is here, so that neither the language nor the operator asks who it is: the kind
that is watched and written (and so the rights), the digest that says when a group has to change, the door that pods
wait behind, and the link between a pod and its gang.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace as with_fields

from shoal.dialects.dialect import Dialect, Kin, LedgerPatch, ManifestInvalid, Relative, Settings
from shoal.dialects.gang_backends import backend, remembered
from shoal.dialects.gang_backends.backend import Backend
from shoal.dialects.gang_backends.gang import Gang
from shoal.engine import Action, Apply, CompanionRef, Create, Group, GroupRef, Happening, Job, JobState, Seen, TaskRef
from shoal.engine.policies import Gate, GroupGate, Reaction
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, annotations_of, labels_of, name_of, namespace_of, uid_of
from shoal.kube.structural_schema import kinds_of
from shoal.scheduler.api.pod_groups import ELASTIC, GROUP_NAME, POD_GROUP

RECORDED = "shoal.dev/gang-scheduler"  # on a job: whom its gang was handed to
LEFT_OUT = "shoal.dev/left-out"  # on a group: what of the gang its scheduler cannot be told
_SLICE = "slice:"
_OURS = "shoal.dev/"  # on a job: what we remember there ourselves
_MOST_KNOWN = 1_000


def handed(dialect: Dialect, backend: Backend) -> Dialect:
    """The language with its gangs handed over; a language without gangs as it is."""
    kin = dialect.kin
    if kin is None or kin.gangs is None:
        return dialect
    gangs = _Gangs(kin, backend)
    if backend.kind != kin.group:
        # Its queues are another scheduler's, and nothing that is there says whether a job may enter them.
        dialect = replace(dialect, admit_among=None, neighbours=())
    return replace(
        dialect,
        kin=_kin(kin, backend, gangs),
        read=partial(_read, dialect, backend, gangs),
        render=partial(_render, dialect, backend, gangs),
        record=partial(_record, dialect, backend),
    )


def has_gangs(dialect: Dialect) -> bool:
    return dialect.kin is not None and dialect.kin.gangs is not None


def without_groups(dialect: Dialect) -> Dialect:
    """The language with nobody told of its gangs: what it needs in any case."""
    return handed(dialect, backend("none"))


def as_recorded(dialect: Dialect, manifest: Obj) -> Dialect:
    """The language as the operator of this job speaks it, for those who only look."""
    found = remembered(annotations_of(manifest).get(RECORDED) or "")
    return dialect if found is None else handed(dialect, found)


def left_out(group: Obj) -> str:
    """What of the gang its scheduler could not be told, as a list for people."""
    return annotations_of(group).get(LEFT_OUT, "")


class _Gangs:
    """What jobs ask for, kept by what they are read from: every pod of a job asks for the same."""

    def __init__(self, kin: Kin, backend: Backend) -> None:
        assert kin.gangs is not None
        self._gangs = kin.gangs
        self._longest_name = backend.longest_name
        self._known: dict[tuple[object, ...], Mapping[str, Gang]] = {}
        self._last: tuple[Obj, Mapping[str, Gang]] = ({}, {})

    def of(self, manifest: Obj) -> Mapping[str, Gang]:
        """Thousands of pods in a row are dressed from one and the same manifest, which nobody changes."""
        if manifest is not self._last[0]:
            self._last = (manifest, self._recall(manifest))
        return self._last[1]

    def _recall(self, manifest: Obj) -> Mapping[str, Gang]:
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

    def _read(self, manifest: Obj) -> Mapping[str, Gang]:
        limit = self._longest_name
        return {key: replace(gang, name=_fitting(gang.name, limit)) for key, gang in self._gangs(manifest).items()}


def _fitting(name: str, limit: int) -> str:
    """A name that is too long loses its end to eight letters nobody else has."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-.')}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


def digest_of(backend: Backend, gang: Gang) -> str:
    told = {**backend.spec(gang), **({ELASTIC: True} if backend.asks and gang.is_elastic else {})}
    return blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=8).hexdigest()


def _name(backend: Backend, gang: Gang) -> str:
    """Where each size is an object of its own, its name says which."""
    return f"{gang.name}-{digest_of(backend, gang)[:8]}" if backend.is_sliced else gang.name


# --- the job and its pods ------------------------------------------------------------------------------------------


def _read(dialect: Dialect, backend: Backend, gangs: _Gangs, manifest: Obj, settings: Settings) -> Job | None:
    job = dialect.read(manifest, settings)
    if job is None:
        return None
    wanted = gangs.of(manifest)
    refusals = [why for gang in wanted.values() if (why := backend.refuses(gang))]
    if refusals:
        raise ManifestInvalid([Cause("FieldValueForbidden", why, "spec") for why in refusals])
    policies = job.policies
    if backend.evicts:
        # In front: a policy for all events speaks of what befalls its pods, and a place taken back costs nothing.
        again = Reaction(Action.RESTART_RUN, frozenset({Happening.GROUP_EVICTED}), charged=False)
        policies = replace(policies, reactions=(again, *policies.reactions))
    return replace(job, policies=replace(policies, gates=tuple(_gates(policies.gates, backend, wanted))))


def _gates(gates: Iterable[Gate], backend: Backend, gangs: Mapping[str, Gang]) -> Iterator[Gate]:
    for gate in gates:
        if not isinstance(gate, GroupGate):
            yield gate
        elif backend.kind is not None:
            plans = tuple(
                replace(plan, digest=digest_of(backend, gangs[plan.key]), gives=plan.gives if backend.asks else None)
                for plan in gate.groups
            )
            yield replace(gate, groups=plans, opens=backend.opens, follows=backend.follows)


def _render(dialect: Dialect, backend: Backend, gangs: _Gangs, manifest: Obj, create: Create) -> Obj:
    pod = dialect.render(manifest, create)
    pod["metadata"].get("annotations", {}).pop(GROUP_NAME, None)
    ref = create.target
    assert isinstance(ref, TaskRef)
    gang = next((each for each in gangs.of(manifest).values() if each.has(ref.role)), None)
    if gang is not None:
        backend.join(pod, gang)
    return pod


def _record(dialect: Dialect, backend: Backend, job: Job, state: JobState, settings: Settings) -> LedgerPatch:
    """Beside the ledger, where that is an annotation too: whoever looks at the job knows whom to ask for its gang."""
    made = dialect.record(job, state, settings)
    if not made.annotations:
        return made
    return replace(made, annotations={**made.annotations, RECORDED: backend.label})


# --- the group -----------------------------------------------------------------------------------------------------


def _kin(kin: Kin, backend: Backend, gangs: _Gangs) -> Kin:
    children = tuple(child for child in kin.children if child.kind != kin.group)
    if backend.kind is not None:
        children = (
            *(replace(child, kind=backend.kind) for child in kin.children if child.kind == kin.group),
            *children,
        )
    return replace(
        kin,
        children=children,
        dress=partial(_dress, kin, backend, gangs),
        place=partial(_place, kin, backend, gangs),
        recognise=partial(_recognise, kin, backend),
        definitions=partial(_definitions, kin, backend),
        group=backend.kind or kin.group,
        waits=lambda group: backend.standing(group).why.rstrip("."),
        among=partial(_among, backend, gangs) if backend.is_sliced else None,
        looks=backend.looks,
        answer=backend.answer,
        succeed=partial(_succeed, backend) if backend.is_sliced else None,
    )


def _dress(kin: Kin, backend: Backend, gangs: _Gangs, manifest: Obj, apply: Apply, is_new: bool) -> Obj:
    made = kin.dress(manifest, apply, is_new)
    if not isinstance(apply.target, GroupRef):
        return made
    assert backend.kind is not None
    gang = gangs.of(manifest)[apply.target.key]
    unsaid = ", nor ".join(backend.leaves_out(gang))
    notes = {**annotations_of(made), **backend.notes, **({LEFT_OUT: unsaid} if unsaid else {})}
    if not backend.asks:
        notes.pop(ELASTIC, None)  # whom it evicts, and when, is that scheduler's own affair
    metadata = {**made["metadata"], "name": _name(backend, gang), "annotations": notes}
    kind = backend.kind
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": backend.spec(gang)}


def _place(kin: Kin, backend: Backend, gangs: _Gangs, manifest: Obj, target: Any) -> tuple[Kind, str]:
    if isinstance(target, GroupRef) and backend.kind is not None:
        return backend.kind, _name(backend, gangs.of(manifest)[target.key])
    if isinstance(target, CompanionRef) and target.name.startswith(_SLICE) and backend.kind is not None:
        key, _, digest = target.name.removeprefix(_SLICE).rpartition(":")
        return backend.kind, f"{gangs.of(manifest)[key].name}-{digest[:8]}"
    return kin.place(manifest, target)


def _recognise(kin: Kin, backend: Backend, obj: Obj, manifest: Obj) -> Relative | None:
    found = kin.recognise(obj, manifest)
    if found is None or not isinstance(found[1], Group) or not isinstance(found[0], GroupRef):
        return found
    seen = backend.standing(obj)
    return found[0], with_fields(found[1], admitted=seen.admitted, unknown=seen.broken, evicted=seen.evicted)


def _definitions(kin: Kin, backend: Backend) -> tuple[Obj, ...]:
    """The kinds of somebody else's scheduler are its own to define."""
    return tuple(each for each in kin.definitions() if backend.kind == POD_GROUP or kinds_of(each)[0] != POD_GROUP)


# --- groups that take over from each other -------------------------------------------------------------------------


def _among(backend: Backend, gangs: _Gangs, found: Sequence[Relative], manifest: Obj) -> list[Relative]:
    """Of several objects for one gang: the granted one stands for it until another of the right size is granted too.

    Then the older ones are companions nobody wants, and go. Meanwhile nobody new is made.
    """
    kept: list[Relative] = [each for each in found if not isinstance(each[1], Group)]
    wanted = gangs.of(manifest)
    by_key: dict[str, list[Group]] = {}
    for _, seen in found:
        if isinstance(seen, Group):
            by_key.setdefault(seen.key, []).append(seen)
    for key, groups in by_key.items():
        digest = digest_of(backend, wanted[key]) if key in wanted else ""
        kept += _settled(key, groups, digest)
    return kept


def _settled(key: str, groups: list[Group], digest: str) -> Iterator[Relative]:
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
            seen = Seen(group.uid, group.digest, leaving=group.leaving, owned=group.owned)
            yield CompanionRef(f"{_SLICE}{key}:{group.digest}"), seen


def _succeed(backend: Backend, made: Obj, others: Iterable[Obj]) -> None:
    """Name the granted one that a new object takes over from."""
    before = [obj for obj in others if backend.standing(obj).admitted]
    if before:
        made["metadata"]["annotations"][backend.takes_over] = f"{namespace_of(before[0])}/{name_of(before[0])}"
