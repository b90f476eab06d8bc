"""A pod is stored with everything an API server would have filled in, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from kit.manifests import changed, pod
from shoal.kube.defaults import apply_defaults
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj

CONTAINER = {
    "name": "main",
    "image": "python:3.11",
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
PATIENCE = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for taint in ("not-ready", "unreachable")
]
STORED = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "containers": [CONTAINER],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "tolerations": PATIENCE,
    },
}
C = "spec.containers[0]"


def stored(change: Obj) -> Obj:
    found = changed(pod(), change)
    apply_defaults(POD, found)
    return found


def test_a_small_pod_is_stored_whole() -> None:
    assert stored({}) == STORED


PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
# What a person wrote, and what is stored instead of the ordinary.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "what was said stays": (
        {"spec.restartPolicy": "Never", "spec.terminationGracePeriodSeconds": 0, "spec.enableServiceLinks": False},
        {"spec.restartPolicy": "Never", "spec.terminationGracePeriodSeconds": 0, "spec.enableServiceLinks": False},
    ),
    "null and empty are nothing": (
        {"spec.restartPolicy": "", "spec.dnsPolicy": None, "spec.tolerations": None},
        {},
    ),
    "requests follow limits": (
        {f"{C}.resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "100m"}}},
        {f"{C}.resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}}},
    ),
    "amounts below a thousandth round up": (
        {f"{C}.resources": {"requests": {"cpu": "0.0001"}}},
        {f"{C}.resources": {"requests": {"cpu": "1m"}}},
    ),
    "ports are for TCP": (
        {f"{C}.ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]},
        {f"{C}.ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]},
    ),
    "on the host's network ports are the host's": (
        {"spec.hostNetwork": True, f"{C}.ports": [{"containerPort": 80}]},
        {"spec.hostNetwork": True, f"{C}.ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]},
    ),
    "probes have times": (
        {f"{C}.livenessProbe": {"httpGet": {"port": 80}}, f"{C}.readinessProbe": {"tcpSocket": {"port": 1}}},
        {
            f"{C}.livenessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, **PROBE},
            f"{C}.readinessProbe": {"tcpSocket": {"port": 1}, **PROBE},
        },
    ),
    "a grpc probe names no service": (
        {f"{C}.startupProbe": {"grpc": {"port": 1}, "periodSeconds": 3}},
        {f"{C}.startupProbe": {"grpc": {"port": 1, "service": ""}, **PROBE, "periodSeconds": 3}},
    ),
    "hooks ask over HTTP": (
        {f"{C}.lifecycle": {"preStop": {"httpGet": {"port": 80}}}},
        {f"{C}.lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}}},
    ),
    "references have a version and a divisor": (
        {
            f"{C}.env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            ]
        },
        {
            f"{C}.env": [
                {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}},
            ]
        },
    ),
    "the old name of the account counts": (
        {"spec.serviceAccount": "robot"},
        {"spec.serviceAccount": "robot", "spec.serviceAccountName": "robot"},
    ),
    "patience with everything is enough": (
        {"spec.tolerations": [{"operator": "Exists"}]},
        {"spec.tolerations": [{"operator": "Exists"}]},
    ),
    "patience of one's own is kept": (
        {"spec.tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]},
        {"spec.tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, PATIENCE[1]]},
    ),
}


@pytest.mark.parametrize(("written", "kept"), CASES.values(), ids=CASES)
def test_a_pod_is_completed(written: Obj, kept: Obj) -> None:
    assert stored(written) == changed(STORED, kept)


VOLUMES: dict[str, tuple[Obj, Obj]] = {
    "nothing is a folder": ({}, {"emptyDir": {}}),
    "folder": ({"emptyDir": {"sizeLimit": "1024Mi"}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
    "host path": ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
    "secret": ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
    "config map": ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": 420}}),
    "mode": (
        {"configMap": {"name": "c", "defaultMode": 0}},
        {"configMap": {"name": "c", "defaultMode": 0}},
    ),
    "downward": (
        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {
            "downwardAPI": {
                "items": [{"path": "n", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}],
                "defaultMode": 420,
            }
        },
    ),
    "projected token": (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": 420,
            }
        },
    ),
    "image": ({"image": {"reference": "a"}}, {"image": {"reference": "a", "pullPolicy": "Always"}}),
    "claim": ({"persistentVolumeClaim": {"claimName": "c"}}, {"persistentVolumeClaim": {"claimName": "c"}}),
    "claim of its own": (
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}}},
        {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {},
                    "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
                }
            }
        },
    ),
}


@pytest.mark.parametrize(("written", "kept"), VOLUMES.values(), ids=VOLUMES)
def test_a_volume_is_completed(written: Obj, kept: Obj) -> None:
    found = stored({"spec.volumes": [{"name": "v", **written}]})
    assert found["spec"]["volumes"] == [{"name": "v", **kept}]


IMAGES = {
    "Always": (
        "a", "a:latest", "a:latest@sha256:aaaa", "reg.io:5000/a", "localhost/a", "localhost:5000/a:latest", "a__b",
        "REG/a", "a-b.c/d:latest",
    ),
    "IfNotPresent": (
        "a:1", "a@sha256:aaaa", "reg.io:5000/a:1", "Foo", "a/B", "a b", "a:", "a..b", "library/python:3.11-slim", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "image"), [(policy, image) for policy in IMAGES for image in IMAGES[policy]])
def test_only_what_may_change_under_its_name_is_pulled_always(policy: str, image: str) -> None:
    found = stored({f"{C}.image": image})["spec"]["containers"][0]
    assert found == {**CONTAINER, "image": image, "imagePullPolicy": policy}


def asks(cpu: str, **more: str) -> Obj:
    return {"name": f"c{cpu}", "image": "x:1", "resources": {"requests": {"cpu": cpu}}, **more}


WHOLES: dict[str, tuple[dict[str, Any], Obj]] = {
    "what the containers ask for": ({"spec.containers": [asks("1"), asks("2")]}, {"cpu": "3", "memory": "1Gi"}),
    "a larger first step": (
        {"spec.containers": [asks("1")], "spec.initContainers": [asks("3")]},
        {"cpu": "3", "memory": "1Gi"},
    ),
    "a sidecar runs beside": (
        {"spec.containers": [asks("1")], "spec.initContainers": [asks("2", restartPolicy="Always"), asks("3")]},
        {"cpu": "5", "memory": "1Gi"},
    ),
    "its own limits otherwise": ({}, {"cpu": "8", "memory": "1Gi"}),
}


@pytest.mark.parametrize(("written", "requests"), WHOLES.values(), ids=WHOLES)
def test_a_pod_with_limits_of_its_own_requests_what_its_containers_need(written: Obj, requests: Obj) -> None:
    limits = {"cpu": "8", "memory": "1Gi"}
    found = stored({"spec.resources": {"limits": limits}, **written})
    assert found["spec"]["resources"] == {"limits": limits, "requests": requests}


def test_init_containers_are_completed_too() -> None:
    found = stored({"spec.initContainers": [{"name": "main", "image": "python:3.11"}]})
    assert found["spec"]["initContainers"] == [CONTAINER]
