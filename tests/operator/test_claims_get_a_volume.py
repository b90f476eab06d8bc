"""Which volume a claim gets: claims and volumes in, actions out."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.controllers.persistent_volumes import Action, BindVolume, ProvisionVolume, ReleaseVolume, plan_actions
from shoal.kube.objects import Obj


def claim(name: str = "data", *, size: str = "1Gi", phase: str = "Pending", **spec: Any) -> Obj:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"c-{name}"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
        "status": {"phase": phase},
    }


def volume(name: str = "v", *, size: str = "1Gi", phase: str = "Available", **spec: Any) -> Obj:
    return {
        "metadata": {"name": name, "uid": f"v-{name}", "resourceVersion": "1", "labels": {"disk": "ssd"}},
        "spec": {"accessModes": ["ReadWriteOnce", "ReadWriteMany"], "capacity": {"storage": size}, **spec},
        "status": {"phase": phase},
    }


def held_by(uid: str, **more: Any) -> Obj:
    return {"claimRef": {"namespace": "ns", "name": uid.removeprefix("c-"), "uid": uid}, **more}


LEAVING = claim()
LEAVING["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
GONE = volume("gone", phase="Bound", **held_by("c-old", persistentVolumeReclaimPolicy="Delete"))
KEPT = volume("kept", phase="Bound", **held_by("c-old", persistentVolumeReclaimPolicy="Retain"))
SMALL, LARGE = volume("small", size="2Gi"), volume("large", size="5Gi")
MINE = volume("mine", **held_by("c-data"))

CASES = [
    pytest.param([claim()], [], [ProvisionVolume(claim())], id="no volume: make one"),
    pytest.param([claim()], [LARGE, SMALL], [BindVolume(claim(), SMALL)], id="the smallest that fits"),
    pytest.param([claim(size="9Gi")], [LARGE], [ProvisionVolume(claim(size="9Gi"))], id="too small"),
    pytest.param(
        [claim(storageClassName="fast")], [SMALL], [ProvisionVolume(claim(storageClassName="fast"))], id="another class"
    ),
    pytest.param(
        [claim(accessModes=["ReadOnlyMany"])],
        [SMALL],
        [ProvisionVolume(claim(accessModes=["ReadOnlyMany"]))],
        id="other modes",
    ),
    pytest.param(
        [claim(selector={"matchLabels": {"disk": "hdd"}})],
        [SMALL],
        [ProvisionVolume(claim(selector={"matchLabels": {"disk": "hdd"}}))],
        id="not selected",
    ),
    pytest.param([claim()], [SMALL, MINE], [BindVolume(claim(), MINE)], id="one that already names the claim"),
    pytest.param([claim(volumeName="later")], [SMALL], [], id="waits for the volume it names"),
    pytest.param(
        [claim("a"), claim("b")], [SMALL], [BindVolume(claim("a"), SMALL), ProvisionVolume(claim("b"))], id="given once"
    ),
    pytest.param([claim(phase="Bound"), LEAVING], [], [], id="nothing to do"),
    pytest.param([], [GONE], [ReleaseVolume(GONE)], id="its claim is gone"),
    pytest.param([], [volume("kept", phase="Released", **KEPT["spec"] | {})], [], id="released and kept"),
]


@pytest.mark.parametrize(("claims", "volumes", "actions"), CASES)
def test_claims_and_volumes_settle(claims: list[Obj], volumes: list[Obj], actions: list[Action]) -> None:
    assert plan_actions(claims, volumes) == actions


NODE = {"annotations": {"volume.kubernetes.io/selected-node": "n"}}
PLACED = claim(storageClassName="late")
PLACED["metadata"] |= NODE
KNOWN = {
    "late": {"provisioner": "acme.io/disks", "volumeBindingMode": "WaitForFirstConsumer"},
    "local": {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"},
}
LATE_ONE, CHOSEN = volume("free", storageClassName="late"), volume("chosen", **held_by("c-data"))

CLASSES = [
    pytest.param(claim(storageClassName="late"), [LATE_ONE], [], id="waits for its first pod"),
    pytest.param(PLACED, [], [ProvisionVolume(PLACED)], id="its first pod has a node"),
    pytest.param(
        claim(storageClassName="late"),
        [CHOSEN],
        [BindVolume(claim(storageClassName="late"), CHOSEN)],
        id="chosen for it",
    ),
    pytest.param(claim(storageClassName="local"), [], [], id="nobody makes any"),
]


@pytest.mark.parametrize(("one", "volumes", "actions"), CLASSES)
def test_classes_say_when_a_claim_gets_its_volume(one: Obj, volumes: list[Obj], actions: list[Action]) -> None:
    assert plan_actions([one], volumes, KNOWN) == actions
