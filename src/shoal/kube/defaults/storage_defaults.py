"""Defaults of PersistentVolume and PersistentVolumeClaim."""

from __future__ import annotations

from shoal.kube.defaults.field_access import amounts, below, fill, fill_missing
from shoal.kube.objects import Obj

_DATA_SOURCES = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))


def volume(obj: Obj) -> None:
    spec = below(obj, "spec")
    amounts(spec, "capacity")
    if (path := spec.get("hostPath")) is not None:
        fill_missing(path, "type", "")
    fill(spec, "persistentVolumeReclaimPolicy", "Retain")
    fill_missing(spec, "volumeMode", "Filesystem")
    fill(below(obj, "status"), "phase", "Pending")


def claim(obj: Obj) -> None:
    claim_spec(below(obj, "spec"))
    status = below(obj, "status")
    amounts(status, "capacity")
    fill(status, "phase", "Pending")


def claim_spec(spec: Obj) -> None:
    resources = below(spec, "resources")
    amounts(resources, "requests")
    amounts(resources, "limits")
    fill_missing(spec, "volumeMode", "Filesystem")
    if "dataSource" in spec and spec.get("dataSourceRef") is None:
        # The old field drops what is neither a claim nor a snapshot; the new one, dataSourceRef, rejects it.
        source = spec["dataSource"] or {}
        if (source.get("kind"), source.get("apiGroup") or "") not in _DATA_SOURCES:
            del spec["dataSource"]
