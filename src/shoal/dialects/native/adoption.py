"""Adoption and release of pods by selectors, as Kubernetes does it.

A pod without a controller is adopted by the oldest ReplicaSet or Job of its namespace that selects it; one whose labels
its controller no longer selects is released, and runs on without it. Objects that are being deleted, have ended, or are
managed by another controller adopt no pods. Indexed Jobs adopt none either: a pod that was created for no index has
none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.dialects.native.batch_job_spec import FINALIZER, MANAGER, is_indexed
from shoal.kube.conditions import is_true
from shoal.kube.kinds import JOB, Kind
from shoal.kube.objects import Key, Obj, at_path, is_terminating, key_of, labels_of, uid_of
from shoal.kube.owners import controller_of, owner_reference
from shoal.kube.selectors import LabelSelector, from_label_selector

OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Adopter:
    """A ReplicaSet or Job that may take pods and let them go."""

    kind: Kind
    key: Key
    uid: str
    created: str
    selector: LabelSelector
    adopts: bool = True

    @property
    def order(self) -> tuple[str, Key]:
        """The oldest first."""
        return self.created, self.key

    def is_about(self, pod: Obj) -> bool:
        """A ReplicaSet counts only those that have not ended."""
        return self.kind == JOB or at_path(pod, "status", "phase") not in OVER


def adopter_from(kind: Kind, manifest: Obj) -> Adopter | None:
    """Return None where the object neither adopts nor releases pods."""
    spec = manifest.get("spec") or {}
    is_others = kind == JOB and spec.get("managedBy") not in (None, MANAGER)
    if is_others or is_terminating(manifest) or any(is_true(manifest, claim) for claim in ("Complete", "Failed")):
        return None
    return Adopter(
        kind, key_of(manifest), uid_of(manifest), str(manifest["metadata"].get("creationTimestamp") or ""),
        from_label_selector(spec.get("selector")), adopts=not (kind == JOB and is_indexed(spec)),
    )  # fmt: skip


def slim(manifest: Obj) -> Obj:
    """What `adopter_from` reads."""
    meta, spec, status = (manifest.get(part) or {} for part in ("metadata", "spec", "status"))
    kept = {
        "metadata": ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
                     "ownerReferences"),
        "spec": ("selector", "managedBy", "completionMode"),
        "status": ("conditions",),
    }  # fmt: skip
    parts = {"metadata": meta, "spec": spec, "status": status}
    return {part: {name: parts[part][name] for name in names if name in parts[part]} for part, names in kept.items()}


def adopter_of(pod: Obj, claimants: Iterable[Adopter]) -> Adopter | None:
    """The object that adopts an uncontrolled pod."""
    if controller_of(pod) is not None or is_terminating(pod):
        return None
    labels = labels_of(pod)
    able = [each for each in claimants if each.adopts and each.is_about(pod) and each.selector.matches(labels)]
    return min(able, key=lambda each: each.order, default=None)


def orphans_of(manifest: Obj) -> str:
    """Labels of the pods that a new one would take."""
    return str(from_label_selector(at_path(manifest, "spec", "selector")))


def orphans_of_job(manifest: Obj) -> str:
    """Only of a Job with a manual selector: no pod has the labels of another Job before it creates pods."""
    return orphans_of(manifest) if at_path(manifest, "spec", "manualSelector") else ""


def adopt_patch(kind: Kind, pod: Obj, manifest: Obj) -> Obj | None:
    """How an object of that kind takes an orphan, where it does."""
    claimant = adopter_from(kind, manifest)
    taker = adopter_of(pod, [claimant]) if claimant is not None else None
    return adoption_patch(pod, taker) if taker is not None else None


def is_released(pod: Obj, controller: Adopter) -> bool:
    return controller.is_about(pod) and not controller.selector.matches(labels_of(pod))


def adoption_patch(pod: Obj, by: Adopter) -> Obj:
    """The strategic patch that makes the pod its own. The pod of a Job is kept until it has been counted."""
    owner = {"apiVersion": by.kind.api_version, "kind": by.kind.kind, "metadata": {"name": by.key.name, "uid": by.uid}}
    held = {"finalizers": [FINALIZER]} if by.kind == JOB else {}
    return {"metadata": {"uid": uid_of(pod), "ownerReferences": [owner_reference(owner)], **held}}


def release_patch(pod: Obj, by: Adopter) -> Obj:
    freed = {"$deleteFromPrimitiveList/finalizers": [FINALIZER]} if by.kind == JOB else {}
    return {"metadata": {"uid": uid_of(pod), "ownerReferences": [{"$patch": "delete", "uid": by.uid}], **freed}}
