"""The status of a Deployment: what its ReplicaSets count together, and the conditions Available and Progressing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from shoal.controllers.deployments.replica_sets import counted
from shoal.kube.conditions import find_condition
from shoal.kube.objects import Obj, at_path, name_of
from shoal.kube.times import parse, rfc3339

PROGRESSING = "Progressing"
AVAILABLE = "Available"

NEW_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"

_NO_DEADLINE = 2**31 - 1
_ORDER = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
)  # fmt: skip

Conditions = list[Obj]


def with_condition(
    conditions: Sequence[Obj],
    condition_type: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    renew: bool = False,
) -> Conditions:
    """Unchanged where status and reason are those of before, unless `renew`: lastUpdateTime is the time of the last
    progress."""
    before = find_condition(conditions, condition_type)
    if before is not None and (before.get("status"), before.get("reason")) == (status, reason) and not renew:
        return list(conditions)
    is_same = before is not None and before.get("status") == status
    since = before["lastTransitionTime"] if before is not None and is_same else rfc3339(now)
    made = {
        "type": condition_type, "status": status, "lastUpdateTime": rfc3339(now), "lastTransitionTime": since,
        "reason": reason, "message": message,
    }  # fmt: skip
    return [*without(conditions, condition_type), made]


def without(conditions: Iterable[Obj], condition_type: str) -> Conditions:
    return [each for each in conditions if each.get("type") != condition_type]


def has_deadline(deployment: Obj) -> bool:
    return bool(at_path(deployment, "spec", "progressDeadlineSeconds", default=_NO_DEADLINE) != _NO_DEADLINE)


def paused_or_resumed(deployment: Obj, conditions: Conditions, now: datetime) -> Conditions:
    """A deadline does not run while a Deployment is paused."""
    progress = find_condition(conditions, PROGRESSING) or {}
    if not has_deadline(deployment) or progress.get("reason") == TIMED_OUT:
        return conditions
    is_paused = bool(deployment["spec"].get("paused"))
    if is_paused and progress.get("reason") != PAUSED:
        return with_condition(conditions, PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    if not is_paused and progress.get("reason") == PAUSED:
        return with_condition(conditions, PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
    return conditions


def creation_failed(deployment: Obj, name: str, why: str, now: datetime) -> Obj:
    """The status after the ReplicaSet of a new template was refused."""
    status = deployment.get("status") or {}
    if not has_deadline(deployment):
        return status
    message = f'Failed to create new replica set "{name}": {why}'
    conditions = status.get("conditions") or []
    made = with_condition(conditions, PROGRESSING, "False", "ReplicaSetCreateError", message, now)
    return {**status, "conditions": made}


def counts(deployment: Obj, replica_sets: Sequence[Obj], current: Obj | None, sizes: Iterable[int]) -> Obj:
    """All numbers of the status; those that are 0 are left out."""
    available = sum(counted(each, "availableReplicas") for each in replica_sets)
    numbers = {
        "observedGeneration": deployment["metadata"].get("generation") or 0,
        "replicas": sum(counted(each, "replicas") for each in replica_sets),
        "updatedReplicas": counted(current, "replicas") if current is not None else 0,
        "readyReplicas": sum(counted(each, "readyReplicas") for each in replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(sizes) - available, 0),
    }
    status = {name: numbers[name] for name in _ORDER if numbers[name]}
    collisions = at_path(deployment, "status", "collisionCount")
    leaving = sum(counted(each, "terminatingReplicas") for each in replica_sets)
    return {
        **status,
        "terminatingReplicas": leaving,
        **({"collisionCount": collisions} if collisions is not None else {}),
    }


def availability(conditions: Conditions, status: Obj, *, least: int, now: datetime) -> Conditions:
    if status.get("availableReplicas", 0) >= least:
        text = "Deployment has minimum availability."
        return with_condition(conditions, AVAILABLE, "True", "MinimumReplicasAvailable", text, now)
    text = "Deployment does not have minimum availability."
    return with_condition(conditions, AVAILABLE, "False", "MinimumReplicasUnavailable", text, now)


def is_complete(deployment: Obj, status: Obj) -> bool:
    """All pods are of the current template and available."""
    size = deployment["spec"]["replicas"]
    numbers = {status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")}
    return numbers == {size} and status.get("observedGeneration", 0) >= (deployment["metadata"].get("generation") or 0)


def progress(
    deployment: Obj, conditions: Conditions, status: Obj, current: Obj | None, now: datetime
) -> tuple[Conditions, datetime | None]:
    """The condition Progressing after a step of a rollout, and when its deadline ends."""
    if not has_deadline(deployment):
        return without(conditions, PROGRESSING), None
    before = find_condition(conditions, PROGRESSING)
    is_over = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if before is not None and before.get("reason") == NEW_AVAILABLE and is_over:
        return conditions, None
    what = f'ReplicaSet "{name_of(current)}"' if current is not None else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        text = f"{what} has successfully progressed."
        return with_condition(conditions, PROGRESSING, "True", NEW_AVAILABLE, text, now), None
    stored, due = deployment.get("status") or {}, _deadline(deployment, before)
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    # Progress: fewer pods of former templates, or more of the current one.
    if outdated(status) < outdated(stored) or any(status.get(name, 0) > stored.get(name, 0) for name in grown):
        text = f"{what} is progressing."
        conditions = with_condition(conditions, PROGRESSING, "True", "ReplicaSetUpdated", text, now, renew=True)
    elif due is not None and due < now:
        text = f"{what} has timed out progressing."
        return with_condition(conditions, PROGRESSING, "False", TIMED_OUT, text, now), None
    due = _deadline(deployment, find_condition(conditions, PROGRESSING))
    # One second more: moments in a status are cut to whole seconds.
    return conditions, due + timedelta(seconds=1) if due is not None else None


def outdated(status: Obj) -> int:
    """Pods of former templates."""
    return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))


def _deadline(deployment: Obj, condition: Obj | None) -> datetime | None:
    """None where none runs: nothing has begun, or it has ended already."""
    if (
        condition is None
        or condition.get("reason") in (NEW_AVAILABLE, TIMED_OUT)
        or not condition.get("lastUpdateTime")
    ):
        return None
    return parse(condition["lastUpdateTime"]) + timedelta(seconds=deployment["spec"]["progressDeadlineSeconds"])
