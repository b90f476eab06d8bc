"""One step of a rollout: from a Deployment and its ReplicaSets to the writes that come next.

`plan_rollout` is a function of what is stored and of the time. It may be called again at any moment, also after a crash
between two of its writes: each step follows from the sizes and counts it finds, never from steps before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil, floor

from shoal.controllers.deployments import status as progress
from shoal.controllers.deployments.replica_sets import (
    DESIRED,
    MOST,
    REVISION,
    by_age,
    counted,
    current_annotations,
    find_current,
    new_replica_set,
    revision_of,
    size_of,
    sizing,
)
from shoal.dialects import state_annotation
from shoal.kube.conditions import find_condition
from shoal.kube.counts import parse_count
from shoal.kube.objects import Obj, annotations_of, at_path, is_terminating, name_of, uid_of

_NO_LIMIT = 2**31 - 1
Sizes = dict[str, int]  # pods wanted, by the name of the ReplicaSet


@dataclass(frozen=True, slots=True)
class CreateReplicaSet:
    replica_set: Obj
    event: str


@dataclass(frozen=True, slots=True)
class PatchReplicaSet:
    """A merge patch on the version that was seen."""

    replica_set: Obj
    patch: Obj
    event: str  # '' where the size stays


@dataclass(frozen=True, slots=True)
class DeleteReplicaSet:
    """Of a ReplicaSet without pods that the history no longer holds."""

    replica_set: Obj


Write = CreateReplicaSet | PatchReplicaSet | DeleteReplicaSet


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """`writes` in their order, then the status of the Deployment; `wake_at`: when time alone changes the status."""

    writes: tuple[Write, ...] = ()
    status: Obj = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)  # None: removed
    wake_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    size: int
    is_rolling: bool
    surge: int  # pods beyond the size
    unavailable: int  # pods that may be missing

    @property
    def most(self) -> int:
        return self.size + self.surge

    @property
    def least_available(self) -> int:
        return self.size - self.unavailable


def limits_of(deployment: Obj) -> RolloutLimits:
    spec = deployment["spec"]
    size, strategy = int(spec["replicas"]), spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return RolloutLimits(size, is_rolling=False, surge=0, unavailable=0)
    found = strategy.get("rollingUpdate") or {}
    surge = _share(found.get("maxSurge", 0), size, is_rounded_up=True)
    unavailable = _share(found.get("maxUnavailable", 0), size, is_rounded_up=False)
    if not surge and not unavailable:  # both were rounded to 0, and then nothing could ever move
        unavailable = 1
    return RolloutLimits(size, is_rolling=True, surge=surge, unavailable=min(unavailable, size))


def _share(value: int | str, size: int, *, is_rounded_up: bool) -> int:
    if isinstance(value, int):
        return value
    part = int(value.removesuffix("%")) * size / 100
    return ceil(part) if is_rounded_up else floor(part)


def plan_rollout(deployment: Obj, owned: Sequence[Obj], now: datetime) -> RolloutPlan:
    limits, sets = limits_of(deployment), by_age(owned)
    current = find_current(deployment, sets)
    old = [each for each in sets if each is not current]
    sizes = {name_of(each): size_of(each) for each in sets}
    before = (deployment.get("status") or {}).get("conditions") or []
    if is_terminating(deployment):
        return RolloutPlan(status=_status(deployment, limits, sets, current, sizes, before, now))
    conditions = progress.paused_or_resumed(deployment, before, now)
    is_paused = bool(deployment["spec"].get("paused"))
    is_rollout = not is_paused and not _is_resized(deployment, sets)

    # 1. The ReplicaSet of the current template
    created = None
    if is_rollout and current is None and (limits.is_rolling or not _hold_pods(old)):
        size = _current_size(limits, 0, sum(sizes.values()))
        current = created = new_replica_set(deployment, old, size=size, most=limits.most)
        sizes[name_of(created)] = size
        sets = [*sets, created]
    conditions = _found(deployment, conditions, current, is_new=created is not None, now=now)

    # 2. Sizes
    if not is_rollout:
        sizes = resize(deployment, limits, current, old, sizes)
    elif limits.is_rolling:
        assert current is not None
        sizes = roll(limits, current, old, sizes)
    else:
        sizes = recreate(limits, current, old, sizes)

    # 3. Writes
    writes: list[Write] = (
        [CreateReplicaSet(created, _scaled(created, 0, sizes[name_of(created)]))] if created is not None else []
    )
    changes = (
        _change(deployment, limits, each, current, old, sizes, not is_rollout) for each in sets if each is not created
    )
    writes += [change for change in changes if change is not None]
    if is_paused or (is_rollout and progress.is_complete(deployment, deployment.get("status") or {})):
        limit = int(at_path(deployment, "spec", "revisionHistoryLimit", default=_NO_LIMIT))
        kept = sorted((each for each in old if not is_terminating(each)), key=revision_of)
        for each in kept[: max(len(kept) - limit, 0)]:
            generation = each["metadata"].get("generation") or 0
            has_pods = size_of(each) or counted(each, "replicas")
            if not has_pods and generation <= counted(each, "observedGeneration"):
                writes.append(DeleteReplicaSet(each))

    # 4. Status
    status = _status(deployment, limits, sets, current, sizes, conditions, now)
    wake_at = None
    if is_rollout:
        made, wake_at = progress.progress(deployment, status["conditions"], status, current, now)
        status["conditions"] = made
    annotations: dict[str, str | None] = {
        state_annotation.ANNOTATION: None
    }  # `kubectl rollout undo` copies it from a ReplicaSet
    if current is not None:
        annotations[REVISION] = current_annotations(deployment, current, old)[REVISION]
    return RolloutPlan(tuple(writes), status, annotations, wake_at)


def _found(
    deployment: Obj, conditions: progress.Conditions, current: Obj | None, *, is_new: bool, now: datetime
) -> progress.Conditions:
    if current is None or not progress.has_deadline(deployment):
        return conditions
    if is_new:
        reason, text = "NewReplicaSetCreated", f'Created new replica set "{name_of(current)}"'
    elif find_condition(conditions, progress.PROGRESSING) is None:
        reason, text = "FoundNewReplicaSet", f'Found new replica set "{name_of(current)}"'
    else:
        return conditions
    return progress.with_condition(conditions, progress.PROGRESSING, "True", reason, text, now)


def _status(
    deployment: Obj, limits: RolloutLimits, sets: Sequence[Obj], current: Obj | None, sizes: Sizes,
    conditions: progress.Conditions, now: datetime,
) -> Obj:  # fmt: skip
    status = progress.counts(deployment, sets, current, sizes.values())
    return {**status, "conditions": progress.availability(conditions, status, least=limits.least_available, now=now)}


# --- sizes ---------------------------------------------------------------------------------------------------------


def roll(limits: RolloutLimits, current: Obj, old: Sequence[Obj], sizes: Sizes) -> Sizes:
    """The current ReplicaSet grows as far as the surge allows; where it cannot, the old ones shrink."""
    name, total = name_of(current), sum(sizes.values())
    grown = _current_size(limits, sizes[name], total)
    if grown != sizes[name]:
        return {**sizes, name: grown}
    missing = sizes[name] - counted(current, "availableReplicas")
    spare = max(total - limits.least_available - missing, 0)
    old = [each for each in old if sizes[name_of(each)]]
    # Pods that are not available go first: without them nothing becomes worse.
    cleaned = dict(sizes)
    for each in old:
        ill = max(sizes[name_of(each)] - counted(each, "availableReplicas"), 0)
        gone = min(spare, ill)
        cleaned[name_of(each)] -= gone
        spare -= gone
    available = sum(counted(each, "availableReplicas") for each in (*old, current))
    surplus = min(available - limits.least_available, spare)  # a status may lag behind the size
    for each in old:
        gone = max(min(cleaned[name_of(each)], surplus), 0)
        cleaned[name_of(each)] -= gone
        surplus -= gone
    return cleaned


def _current_size(limits: RolloutLimits, size: int, total: int) -> int:
    """The size of the current ReplicaSet, of `total` pods in all."""
    if not limits.is_rolling:
        return limits.size
    if size > limits.size:
        return limits.size
    room = max(limits.most - total, 0)
    return size + min(room, limits.size - size)


def recreate(limits: RolloutLimits, current: Obj | None, old: Sequence[Obj], sizes: Sizes) -> Sizes:
    """First the old pods go, and only then new ones come."""
    if current is None or _hold_pods(old):
        return {**sizes, **{name_of(each): 0 for each in old}}
    return {**sizes, name_of(current): limits.size}


def _hold_pods(sets: Sequence[Obj]) -> bool:
    """Whether pods are left, also those that are still ending."""
    return any(size_of(each) or counted(each, "replicas") or counted(each, "terminatingReplicas") for each in sets)


def _is_resized(deployment: Obj, sets: Sequence[Obj]) -> bool:
    """Whether the size of the Deployment changed since its active ReplicaSets were sized."""
    desired = str(deployment["spec"]["replicas"])
    return any(size_of(each) and annotations_of(each).get(DESIRED, desired) != desired for each in sets)


def resize(deployment: Obj, limits: RolloutLimits, current: Obj | None, old: Sequence[Obj], sizes: Sizes) -> Sizes:
    """A new size in the middle of a rollout, or while it is paused, is shared among the ReplicaSets with pods."""
    sets = [*old, *([current] if current is not None else [])]
    active = [each for each in sets if sizes[name_of(each)]]
    if not sets:
        return sizes
    if len(active) <= 1:
        only = active[0] if active else current if current is not None else old[-1]
        return {**sizes, name_of(only): limits.size}
    if current is not None:
        size = deployment["spec"]["replicas"]
        figures = (size_of(current), counted(current, "availableReplicas"))
        if figures == (size, size) and annotations_of(current).get(DESIRED) == str(size):
            return {**sizes, **{name_of(each): 0 for each in old}}  # it has all pods already
    return _proportional(deployment, limits, active, sizes) if limits.is_rolling else sizes


def _proportional(deployment: Obj, limits: RolloutLimits, active: Sequence[Obj], sizes: Sizes) -> Sizes:
    added = (limits.most if limits.size else 0) - sum(sizes[name_of(each)] for each in active)
    if not added:
        return sizes
    # The largest first; of equal ones the newest grows first, the oldest shrinks first.
    ages = list(active) if added < 0 else list(reversed(active))
    order = sorted(ages, key=lambda each: -sizes[name_of(each)])
    replicas = int(at_path(deployment, "status", "replicas", default=0))
    resized, left = dict(sizes), added
    for each in order:
        # By how much it changes where it keeps its share of the Deployment.
        size, part = sizes[name_of(each)], 0
        most = parse_count(annotations_of(each).get(MOST)) or replicas
        if not limits.size:
            part = -size
        elif most:
            part = floor(size * limits.most / most + 0.5) - size
        part = min(part, left) if added > 0 else max(part, left)
        resized[name_of(each)] += part
        left -= part
    first = name_of(order[0])
    resized[first] = max(resized[first] + left, 0)
    return resized


# --- writes --------------------------------------------------------------------------------------------------------


def _change(
    deployment: Obj, limits: RolloutLimits, replica_set: Obj, current: Obj | None, old: Sequence[Obj], sizes: Sizes,
    is_resize: bool,
) -> PatchReplicaSet | None:  # fmt: skip
    size, wanted = size_of(replica_set), sizes[name_of(replica_set)]
    before, after, spec = annotations_of(replica_set), dict(annotations_of(replica_set)), Obj()
    if replica_set is current:
        after = current_annotations(deployment, replica_set, old)
        ready = deployment["spec"].get("minReadySeconds") or 0
        if (replica_set["spec"].get("minReadySeconds") or 0) != ready:
            spec["minReadySeconds"] = ready
    if wanted != size or (is_resize and size):
        after |= sizing(deployment, limits.most)
    if wanted != size:
        spec["replicas"] = wanted
    changed = {name: text for name, text in after.items() if before.get(name) != text}
    if not changed and not spec:
        return None
    meta = {"uid": uid_of(replica_set), "resourceVersion": replica_set["metadata"]["resourceVersion"]}
    patch = {"metadata": {**meta, **({"annotations": changed} if changed else {})}, **({"spec": spec} if spec else {})}
    return PatchReplicaSet(replica_set, patch, _scaled(replica_set, size, wanted))


def _scaled(replica_set: Obj, before: int, after: int) -> str:
    if before == after:
        return ""
    return f"Scaled {'up' if after > before else 'down'} replica set {name_of(replica_set)} from {before} to {after}"
