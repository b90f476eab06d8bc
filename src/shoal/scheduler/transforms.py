"""Objects cut down to what the loops read: ten thousand whole pods, decoded, are a few hundred megabytes."""

from __future__ import annotations

from functools import lru_cache

from shoal.kube.objects import Obj, annotations_of, without_managed_fields
from shoal.kube.owners import controller_of
from shoal.scheduler.api.implicit_pod_groups import lacks_group
from shoal.scheduler.planner.from_objects import READ

__all__ = ["slim_pod", "without_managed_fields"]

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels")
_SPEC = (
    "nodeName", "nodeSelector", "affinity", "tolerations", "priority", "schedulingGates", "overhead",
    "hostname", "subdomain", "schedulerName", "preemptionPolicy", "topologySpreadConstraints",
    "priorityClassName", "activeDeadlineSeconds",
)  # fmt: skip
_CONTAINER = ("resources", "ports", "restartPolicy")
_CLAIMS = {"persistentVolumeClaim", "ephemeral"}
_STATUS = ("phase", "podIP", "conditions", "startTime")


def slim_pod(pod: Obj, *, owners: bool = False) -> Obj:
    """The fields that placing a pod, serving it and reporting on it need.
    The kind of its controller is always kept, its uid with `owners` and where the PodGroup is named after it."""
    spec = pod["spec"]
    slim = _part(spec, _SPEC)
    for group in ("containers", "initContainers"):
        if group in spec:
            slim[group] = [_part(container, _CONTAINER) for container in spec[group]]
    if slim.get("tolerations") == _USUAL:
        slim["tolerations"] = _USUAL
    if claims := [volume for volume in spec.get("volumes") or () if volume.keys() & _CLAIMS]:
        slim["volumes"] = claims
    metadata = _part(pod["metadata"], _META)
    if notes := _part(annotations_of(pod), READ):
        metadata["annotations"] = notes
    if (controller := controller_of(pod)) is not None:
        names_it = (owners and controller.get("apiVersion") in _NATIVE) or lacks_group(pod)
        kept = [_part(controller, ("uid", "kind", "controller"))] if names_it else _controller(controller.get("kind"))
        metadata["ownerReferences"] = kept
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": slim,
        "status": _part(pod.get("status") or {}, _STATUS),
    }


def _part(whole: Obj, names: tuple[str, ...]) -> Obj:
    return {name: whole[name] for name in names if name in whole}


@lru_cache(maxsize=64)  # one list for all pods that are controlled by such an object
def _controller(kind: str | None) -> list[Obj]:
    return [{"kind": kind, "controller": True}]


_NATIVE = ("apps/v1", "batch/v1")
# Nearly every pod has exactly these; one list serves them all.
_USUAL = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
]
