"""Rows of volumes and claims."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.apiserver.printers.table import AGE, NAME, UNSET, TablePrinter, age, mapping, name, text
from shoal.kube.objects import Obj

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"

_VOLUME = (
    NAME,
    text("Capacity", "Size of the volume."),
    text("Access Modes", "How the volume may be mounted."),
    text("Reclaim Policy", "What happens to the volume once its claim is gone."),
    text("Status", "Whether the volume is free or bound."),
    text("Claim", "Claim the volume is bound to."),
    text("StorageClass", "Class the volume belongs to."),
    text("VolumeAttributesClass", "Class of the volume's attributes."),
    text("Reason", "Why the volume is in a failed state."),
    AGE,
    text("VolumeMode", "File system or raw block device.", wide=True),
)


def volume_cells(volume: Obj, now: datetime) -> list[Any]:
    spec, status = mapping(volume, "spec"), mapping(volume, "status")
    claim = spec.get("claimRef")
    return [
        name(volume),
        str((spec.get("capacity") or {}).get("storage") or "0"),
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(volume),
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "",
        _class(volume),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason") or "",
        age(volume, now),
        spec.get("volumeMode") or UNSET,
    ]


_CLAIM = (
    NAME,
    text("Status", "Whether the claim has its volume."),
    text("Volume", "Volume the claim is bound to."),
    text("Capacity", "Size of that volume."),
    text("Access Modes", "How that volume may be mounted."),
    text("StorageClass", "Class the claim asks for."),
    text("VolumeAttributesClass", "Class of attributes the claim asks for."),
    AGE,
    text("VolumeMode", "File system or raw block device.", wide=True),
)


def claim_cells(claim: Obj, now: datetime) -> list[Any]:
    spec, status = mapping(claim, "spec"), mapping(claim, "status")
    bound = bool(spec.get("volumeName"))
    return [
        name(claim),
        _phase(claim),
        spec.get("volumeName") or "",
        str((status.get("capacity") or {}).get("storage") or "0") if bound else "",
        _modes(status) if bound else "",
        _class(claim),
        spec.get("volumeAttributesClassName") or UNSET,
        age(claim, now),
        spec.get("volumeMode") or UNSET,
    ]


def _phase(obj: Obj) -> str:
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return "Terminating"
    return str(mapping(obj, "status").get("phase") or "")


def _modes(holder: Obj) -> str:
    given = holder.get("accessModes") or ()
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _class(obj: Obj) -> str:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION) or mapping(obj, "spec").get("storageClassName") or "")


PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("", "PersistentVolume"): TablePrinter(_VOLUME, volume_cells),
    ("", "PersistentVolumeClaim"): TablePrinter(_CLAIM, claim_cells),
}
