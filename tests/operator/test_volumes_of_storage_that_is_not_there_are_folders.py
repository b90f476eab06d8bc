"""A PersistentVolume on CSI or NFS, or without a source, is a folder of the cluster, and its author is warned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.shoal_command import shoal
from shoal.cluster.object_validation import deviation_warnings
from shoal.kube.kinds import PERSISTENT_VOLUME
from shoal.kube.objects import Obj
from shoal.kube.persistent_volumes import FOLDER, path_of
from shoal.kube.validation.storage_rules import volume_on_create

SHARED: Obj = {
    "capacity": {"storage": "5Gi"},
    "volumeMode": "Filesystem",
    "accessModes": ["ReadWriteMany"],
    "persistentVolumeReclaimPolicy": "Retain",
}


def volume(**source: Any) -> Obj:
    metadata = {"name": "pv-torch-checkpoint", "namespace": "elastic-job"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": {**SHARED, **source}}


CLAIM: Obj = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "checkpoint"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "5Gi"}},
        "volumeName": "pv-torch-checkpoint",
    },
}


def job(script: str) -> Obj:
    container = {
        "name": "main", "image": "acme/trainer:1", "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "data", "mountPath": "/mnt/blob"}],
    }  # fmt: skip
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "checkpoint"}}]
    template = {"spec": {"restartPolicy": "Never", "containers": [container], "volumes": volumes}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"template": template}}


SOURCES: dict[str, Obj] = {
    "none": {},
    "CSI": {"csi": {"driver": "disk.example.com", "volumeHandle": "v-1"}},
    "NFS": {"nfs": {"server": "files.example.com", "path": "/checkpoints"}},
}


@pytest.mark.processes
@pytest.mark.parametrize("source", SOURCES)
async def test_pods_write_into_the_folder(tmp_path: Path, source: str) -> None:
    file = tmp_path / "job.yaml"
    objects = [volume(**SOURCES[source]), CLAIM, job("echo 1 > /mnt/blob/model && cat /mnt/blob/model")]
    file.write_text(yaml.safe_dump_all(objects))
    ended = await shoal("run", "--plain", str(file))
    assert (ended.code, "a folder of the cluster" in ended.err) == (0, True), ended.err


@pytest.mark.processes
async def test_a_volume_that_the_scheduler_chooses_gets_its_folder(tmp_path: Path) -> None:
    late = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    chosen = {**CLAIM, "spec": {**CLAIM["spec"], "storageClassName": "late"}}
    del chosen["spec"]["volumeName"]
    objects = [late, volume(storageClassName="late", **SOURCES["CSI"]), chosen, job("echo 1 > /mnt/blob/model")]
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    ended = await shoal("run", "--plain", str(file))
    assert ended.code == 0, ended.err


WARNED: dict[str, tuple[Obj, str]] = {
    "none": (volume(), "spec: it names no source, so the volume is a folder of the cluster"),
    "CSI": (
        volume(**SOURCES["CSI"]),
        "spec.csi: there is no csi storage here, so the volume is a folder of the cluster",
    ),
}


def test_a_volume_needs_no_source() -> None:
    """Kubernetes refuses one without."""
    assert list(volume_on_create({**volume(), "metadata": {"name": "pv"}})) == []


@pytest.mark.parametrize("case", WARNED)
def test_the_author_is_warned(case: str) -> None:
    written, text = WARNED[case]
    (warning,) = deviation_warnings(PERSISTENT_VOLUME, written)
    assert warning.startswith(text)


@pytest.mark.parametrize(
    "source", [{"hostPath": {"path": "/data"}}, {"local": {"path": "/data"}}], ids=["hostPath", "local"]
)
def test_a_volume_with_a_path_keeps_it(source: Obj) -> None:
    written = volume(**source)
    written["metadata"]["annotations"] = {FOLDER: "/elsewhere"}
    assert (deviation_warnings(PERSISTENT_VOLUME, written), path_of(written)) == ((), "/data")
