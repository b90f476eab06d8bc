"""Defaults of the small kinds: Namespace, Node, Secret, Event, PriorityClass, Lease."""

from __future__ import annotations

import base64

from shoal.kube.defaults.field_access import amounts, below, fill, fill_missing
from shoal.kube.objects import Obj

NAME_LABEL = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER = "kubernetes"
_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip


def namespace(obj: Obj) -> None:
    """The label with its own name, the finalizer that empties it first, and the phase it starts in.

    A namespace that is being deleted keeps its remaining finalizers.
    """
    meta = below(obj, "metadata")
    if name := meta.get("name"):
        below(meta, "labels")[NAME_LABEL] = name
    spec = below(obj, "spec")
    if not meta.get("deletionTimestamp"):
        finalizers = spec.get("finalizers") or []
        if NAMESPACE_FINALIZER not in finalizers:
            spec["finalizers"] = [*finalizers, NAMESPACE_FINALIZER]
    fill(below(obj, "status"), "phase", "Active")


def node(obj: Obj) -> None:
    below(obj, "spec")
    status = below(obj, "status")
    amounts(status, "capacity")
    amounts(status, "allocatable")
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    fill_missing(below(below(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", 0)
    info = below(status, "nodeInfo")
    for name in _NODE_INFO:
        fill_missing(info, name, "")


def secret(obj: Obj) -> None:
    """The type, and stringData encoded into data: stringData is write-only and never stored."""
    fill(obj, "type", "Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        data = below(obj, "data")
        for key, text in plain.items():
            data[key] = base64.b64encode((text or "").encode()).decode()


def event(obj: Obj) -> None:
    for name in ("involvedObject", "source"):
        below(obj, name)
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        fill_missing(obj, name, "")


def event_v1(obj: Obj) -> None:
    below(obj, "deprecatedSource")
    for name in ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        obj.setdefault(name, None)


def priority_class(obj: Obj) -> None:
    fill_missing(obj, "value", 0)
    fill_missing(obj, "preemptionPolicy", "PreemptLowerPriority")


def lease(obj: Obj) -> None:
    """Coordinated election is not served: its fields are dropped, as by a server without that feature."""
    spec = below(obj, "spec")
    for name in ("strategy", "preferredHolder"):
        spec.pop(name, None)
