"""The downward API: what a container may learn about its own pod, and its resources.

Pure. The same paths serve environment variables (`fieldRef`, `resourceFieldRef`) and downwardAPI volumes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from shoal.kube.messages import Message
from shoal.kube.objects import Obj, annotations_of, labels_of
from shoal.kube.quantity import Quantity
from shoal.node.pod_lifecycle import find_container
from shoal.node.pod_references import ReferenceMissing

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_WHOLE_BYTES = ("memory", "ephemeral-storage")


def field_value(pod: Obj, path: str, *, pod_ip: str, host_ip: str, node: str) -> str:
    """The value at a `fieldPath`; an absent label or annotation is the empty string."""
    if subscript := _SUBSCRIPT.fullmatch(path):
        values = labels_of(pod) if subscript[1] == "labels" else annotations_of(pod)
        return values.get(subscript[2], "")
    if path == "metadata.labels":
        return _listed(labels_of(pod))
    if path == "metadata.annotations":
        return _listed(annotations_of(pod))
    meta = pod["metadata"]
    known = {
        "metadata.name": meta.get("name", ""),
        "metadata.namespace": meta.get("namespace", ""),
        "metadata.uid": meta.get("uid", ""),
        "spec.nodeName": node,
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName") or "default",
        "status.hostIP": host_ip,
        "status.hostIPs": host_ip,
        "status.podIP": pod_ip,
        "status.podIPs": pod_ip,
    }
    if path not in known:
        raise ReferenceMissing(Message("FieldRef.Unknown", {"path": path}))
    return str(known[path])


def _listed(values: Mapping[str, str]) -> str:
    """One `key="value"` a line, sorted, as files of downwardAPI volumes have it."""
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(values.items()))


def resource_value(pod: Obj, container: Obj, ref: Obj, allocatable: Mapping[str, str]) -> str:
    """The value of a `resourceFieldRef`, in units of its divisor, rounded up.

    A limit that was not set is what the node has to give, as programs that size themselves expect.
    """
    about = find_container(pod, ref["containerName"]) if ref.get("containerName") else container
    if about is None:
        raise ReferenceMissing(Message("ResourceFieldRef.NoContainer", {"container": ref["containerName"]}))
    which, _, name = str(ref["resource"]).partition(".")
    resources = about.get("resources") or {}
    amount = (resources.get(which) or {}).get(name)
    if amount is None and which == "limits" and name in ("cpu", *_WHOLE_BYTES):
        amount = allocatable.get(name)
    if which not in ("limits", "requests"):
        raise ReferenceMissing(Message("ResourceFieldRef.Unknown", {"resource": ref["resource"]}))
    divisor = Quantity.parse(str(ref.get("divisor") or "0"))
    unit = divisor.nanos or Quantity.of(1).nanos
    return str(-(-Quantity.parse(str(amount or "0")).nanos // unit))
