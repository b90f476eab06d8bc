"""Defaults of PersistentVolume and PersistentVolumeClaim."""

from __future__ import annotations

from shoal.kube.defaults.filling import amounts, below, fill, fill_missing
from shoal.kube.objects import Obj


def volume(obj: Obj) -> None:
    spec = below(obj, "spec")
    amounts(spec, "capacity")
    if path := spec.get("hostPath"):
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
