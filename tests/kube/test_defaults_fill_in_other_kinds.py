"""What an API server fills in for the kinds other than pods; a second time it finds nothing to do."""

from __future__ import annotations

from typing import Any

import pytest

from kit import manifests
from kit.manifests import GONE, changed
from kit.validation_tables import KINDS, Mistake, fresh, mistakes
from shoal.kube import kinds
from shoal.kube.defaults import apply_defaults
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

EVERY_KIND = {**KINDS, "definition": kinds.CUSTOM_RESOURCE_DEFINITION}
NO_INFO = dict.fromkeys(
    ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
     "kubeProxyVersion", "operatingSystem", "architecture"), "",
)  # fmt: skip
NO_AGENT = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": NO_INFO}
SERVICE_SPEC = {
    "selector": {"app": "web"},
    "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}
HEADLESS = {"clusterIP": "None", "clusterIPs": ["None"]}
BOTH = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
NOWHERE = {"loadBalancer": {}}
CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "volumeMode": "Filesystem",
}


def without(obj: Obj, *names: str) -> Obj:
    return {name: value for name, value in obj.items() if name not in names}


# The builder, what is changed in its object, and the fields that are stored beside the metadata.
CASES: dict[str, tuple[str, dict[str, Any], Obj]] = {
    "service": ("service", {}, {"spec": SERVICE_SPEC, "status": NOWHERE}),
    "service with a chosen address": (
        "service",
        {"spec.clusterIP": "10.96.3.4"},
        {"spec": {**SERVICE_SPEC, "clusterIP": "10.96.3.4", "clusterIPs": ["10.96.3.4"]}, "status": NOWHERE},
    ),
    "headless service": (
        "service",
        {"spec.clusterIP": "None"},
        {"spec": {**SERVICE_SPEC, **HEADLESS}, "status": NOWHERE},
    ),
    "headless service of somebody else's addresses": (
        "service",
        {"spec.clusterIP": "None", "spec.selector": GONE},
        {"spec": {**without(SERVICE_SPEC, "selector"), **HEADLESS, **BOTH}, "status": NOWHERE},
    ),
    "service under another name": (
        "service",
        {"spec": {"type": "ExternalName", "externalName": "a.b"}},
        {"spec": {"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None"}, "status": NOWHERE},
    ),
    "service that remembers clients": (
        "service",
        {"spec.sessionAffinity": "ClientIP"},
        {
            "spec": {
                **SERVICE_SPEC,
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            },
            "status": NOWHERE,
        },
    ),
    "service on every node": (
        "service",
        {"spec.type": "NodePort"},
        {"spec": {**SERVICE_SPEC, "type": "NodePort", "externalTrafficPolicy": "Cluster"}, "status": NOWHERE},
    ),
    "service behind a balancer": (
        "service",
        {"spec.type": "LoadBalancer"},
        {
            "spec": {
                **SERVICE_SPEC,
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": True,
            },
            "status": NOWHERE,
        },
    ),
    "endpoints": (
        "endpoints",
        {},
        {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80, "protocol": "TCP"}]}]},
    ),
    "endpoint slice": (
        "endpoint_slice",
        {},
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {}}],
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
        },
    ),
    "empty endpoint slice": (
        "endpoint_slice",
        {"endpoints": GONE, "ports": GONE},
        {"addressType": "IPv4", "endpoints": None, "ports": None},
    ),
    "config map": ("config_map", {}, {"data": {"mode": "fast"}}),
    "secret": ("secret", {}, {"type": "Opaque", "data": {"token": "c2VjcmV0"}}),
    "secret in plain text": (
        "secret",
        {"stringData": {"token": "new", "more": "b"}},
        {"type": "Opaque", "data": {"token": "bmV3", "more": "Yg=="}},
    ),
    "service account": ("service_account", {}, {}),
    "claim": (
        "claim",
        {"spec.resources.requests.storage": "1024Mi"},
        {"spec": CLAIM_SPEC, "status": {"phase": "Pending"}},
    ),
    "claim that copies what cannot be copied": (
        "claim",
        {"spec.dataSource": {"kind": "Pod", "name": "x"}},
        {"spec": CLAIM_SPEC, "status": {"phase": "Pending"}},
    ),
    "volume": (
        "volume",
        {},
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/srv/disk", "type": ""},
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Pending"},
        },
    ),
    "node": ("node", {}, {"spec": {}, "status": NO_AGENT}),
    "node with capacity": (
        "node",
        {"status.capacity": {"cpu": "2000m"}},
        {"spec": {}, "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}, **NO_AGENT}},
    ),
    "priority class": ("priority_class", {}, {"value": 1000, "preemptionPolicy": "PreemptLowerPriority"}),
    "lease": ("lease", {"spec.strategy": "X"}, {"spec": {"holderIdentity": "node-1", "leaseDurationSeconds": 40}}),
    "event": (
        "event",
        {"type": GONE, "reason": GONE, "message": GONE, "involvedObject": {}},
        {
            "involvedObject": {},
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": None,
            "reportingComponent": "",
            "reportingInstance": "",
        },
    ),
    "definition": (
        "definition",
        {"spec.versions": [{"name": "v1beta1"}, {"name": "v1", "storage": True}]},
        {
            "spec": {
                "group": "sea.dev",
                "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
                "scope": "Namespaced",
                "versions": [{"name": "v1beta1"}, {"name": "v1", "storage": True}],
                "conversion": {"strategy": "None"},
            },
            "status": {"storedVersions": ["v1"], "conditions": None, "acceptedNames": {"plural": "", "kind": ""}},
        },
    ),
}


@pytest.mark.parametrize(("builder", "change", "kept"), CASES.values(), ids=CASES)
def test_an_object_is_completed(builder: str, change: Obj, kept: Obj) -> None:
    found = changed(getattr(manifests, builder)(), change)
    apply_defaults(EVERY_KIND[builder], found)
    assert without(found, "metadata") == kept


NAMESPACES: dict[str, tuple[Obj, Obj, Obj]] = {
    "new": ({"name": "team"}, {}, {"finalizers": ["kubernetes"]}),
    "with a finalizer": ({"name": "team"}, {"finalizers": ["a/b"]}, {"finalizers": ["a/b", "kubernetes"]}),
    "leaving": ({"name": "team", "deletionTimestamp": "2026-11-16T04:13:00Z"}, {"finalizers": []}, {"finalizers": []}),
}


@pytest.mark.parametrize(("meta", "spec", "kept"), NAMESPACES.values(), ids=NAMESPACES)
def test_a_namespace_carries_its_name_and_empties_itself_first(meta: Obj, spec: Obj, kept: Obj) -> None:
    found = {"metadata": dict(meta), "spec": dict(spec)}
    apply_defaults(kinds.NAMESPACE, found)
    labels = {"kubernetes.io/metadata.name": "team"}
    assert found == {"metadata": {**meta, "labels": labels}, "spec": kept, "status": {"phase": "Active"}}


@pytest.mark.parametrize("builder", sorted(EVERY_KIND))
def test_an_object_without_anything_is_completed_without_complaint(builder: str) -> None:
    apply_defaults(EVERY_KIND[builder], {"metadata": {}})


def test_custom_kinds_are_left_alone() -> None:
    boat: Obj = {"metadata": {"name": "b"}}
    apply_defaults(Kind("sea.dev", "v1", "Boat", "boats", custom=True), boat)
    assert boat == {"metadata": {"name": "b"}}


TABLES = ("containers", "environments", "volumes", "resources", "probes", "placement", "pods", "services", "storage")


@pytest.mark.parametrize("mistake", [pytest.param(each, id=each.id) for each in mistakes(*TABLES)])
def test_a_second_time_there_is_nothing_to_fill_in(mistake: Mistake) -> None:
    once = fresh(mistake.second)
    apply_defaults(mistake.kind, once)
    twice = fresh(once)
    apply_defaults(mistake.kind, twice)
    assert twice == once
