"""Where a PersistentVolume lies on a machine.

A volume of a storage system that is not there (CSI, NFS, or no source at all) is a folder of the cluster. Its path is
an annotation, written when the volume is bound.
"""

from __future__ import annotations

from shoal.kube.objects import Obj, annotations_of

SOURCES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
FOLDER = "shoal.dev/volume-folder"  # on a bound volume without a path of its own


def source_of(volume: Obj) -> str:
    """The name of its source; '' where it has none."""
    spec = volume.get("spec") or {}
    return next((name for name in SOURCES if spec.get(name) is not None), "")


def needs_folder(volume: Obj) -> bool:
    """Whether it lies on storage that a machine does not have."""
    return source_of(volume) not in ("hostPath", "local")


def path_of(volume: Obj) -> str:
    """Where it lies; '' where it has no place yet."""
    spec = volume.get("spec") or {}
    path = (spec.get("hostPath") or spec.get("local") or {}).get("path")
    return path or annotations_of(volume).get(FOLDER) or ""
