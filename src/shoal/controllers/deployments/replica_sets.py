"""The ReplicaSets of a Deployment: one for each version of its pod template, with its revision in an annotation.

The name of a ReplicaSet follows from the template, so a creation that is repeated after a crash finds the ReplicaSet
that the first one made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.dialects import state_annotation
from shoal.kube import names
from shoal.kube.counts import parse_count
from shoal.kube.kinds import REPLICA_SET
from shoal.kube.objects import Obj, annotations_of, at_path, name_of, namespace_of
from shoal.kube.owners import owner_reference
from shoal.kube.patching.json_values import clone

HASH = "pod-template-hash"
_PREFIX = "deployment.kubernetes.io"
REVISION = f"{_PREFIX}/revision"
REVISION_HISTORY = f"{_PREFIX}/revision-history"
DESIRED = f"{_PREFIX}/desired-replicas"
MOST = f"{_PREFIX}/max-replicas"
_LONGEST_HISTORY = 2000  # characters

# Annotations of a Deployment that are not copied to its ReplicaSets. `kubectl rollout undo` copies those of a
# ReplicaSet to the Deployment, so the stored state of one ReplicaSet could otherwise reach another.
_NOT_COPIED = frozenset({
    "kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to",
    REVISION, REVISION_HISTORY, DESIRED, MOST, state_annotation.ANNOTATION,
})  # fmt: skip


def size_of(replica_set: Obj) -> int:
    return int(at_path(replica_set, "spec", "replicas", default=1))


def counted(replica_set: Obj, field: str) -> int:
    """A number of its status."""
    return int(at_path(replica_set, "status", field, default=0))


def by_age(replica_sets: Iterable[Obj]) -> list[Obj]:
    """The oldest first."""
    return sorted(replica_sets, key=lambda each: (each["metadata"].get("creationTimestamp") or "", name_of(each)))


def find_current(deployment: Obj, replica_sets: Iterable[Obj]) -> Obj | None:
    """The ReplicaSet of the current template; the oldest where an adopted one has the same."""
    wanted = _comparable_template(deployment["spec"]["template"])
    return next(
        (each for each in by_age(replica_sets) if _comparable_template(each["spec"]["template"]) == wanted), None
    )


def new_replica_set(deployment: Obj, old: Iterable[Obj], *, size: int, most: int) -> Obj:
    template: Obj = clone(deployment["spec"]["template"])
    collisions = int(at_path(deployment, "status", "collisionCount", default=0))
    letters = names.hashed(msgspec.json.encode([_comparable_template(template), collisions], order="sorted"))
    labels = {**(template.setdefault("metadata", {}).get("labels") or {}), HASH: letters}
    template["metadata"]["labels"] = labels
    selector: Obj = clone(deployment["spec"]["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: letters}
    spec: Obj = {"replicas": size, "selector": selector, "template": template}
    if ready := at_path(deployment, "spec", "minReadySeconds"):
        spec["minReadySeconds"] = ready
    made: Obj = {
        "apiVersion": REPLICA_SET.api_version,
        "kind": REPLICA_SET.kind,
        "metadata": {
            "name": f"{name_of(deployment)}-{letters}",
            "namespace": namespace_of(deployment),
            "labels": dict(labels),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": spec,
    }
    made["metadata"]["annotations"] = current_annotations(deployment, made, old) | sizing(deployment, most)
    return made


def has_template_of(replica_set: Obj, other: Obj) -> bool:
    return bool(
        _comparable_template(replica_set["spec"]["template"]) == _comparable_template(other["spec"]["template"])
    )


def revision_of(obj: Obj) -> int:
    return parse_count(annotations_of(obj).get(REVISION)) or 0


def current_annotations(deployment: Obj, current: Obj, old: Iterable[Obj]) -> dict[str, str]:
    """What the ReplicaSet of the current template carries: annotations of the Deployment, and the highest revision."""
    annotations = dict(annotations_of(current))
    annotations |= {name: text for name, text in annotations_of(deployment).items() if name not in _NOT_COPIED}
    before, revision = annotations.get(REVISION, ""), 1 + max((revision_of(each) for each in old), default=0)
    if revision_of(current) >= revision:
        return annotations
    annotations[REVISION] = str(revision)
    if before:  # a rollback: the template was current before
        revisions = [*filter(None, annotations.get(REVISION_HISTORY, "").split(",")), before]
        while len(",".join(revisions)) > _LONGEST_HISTORY:
            del revisions[0]  # the oldest
        annotations[REVISION_HISTORY] = ",".join(revisions)
    return annotations


def sizing(deployment: Obj, most: int) -> dict[str, str]:
    """The size of the Deployment when its ReplicaSets were sized last: it distinguishes a resize from a rollout."""
    return {DESIRED: str(deployment["spec"]["replicas"]), MOST: str(most)}


def _comparable_template(template: Obj) -> Any:
    """A template without the label that its ReplicaSet adds, and without what typed clients write or leave out."""
    labels = {name: text for name, text in (at_path(template, "metadata", "labels") or {}).items() if name != HASH}
    return _without_empty({**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}})


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        found = ((name, _without_empty(each)) for name, each in value.items())
        return {name: each for name, each in found if each is not None and each != {} and each != []}
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    return value
