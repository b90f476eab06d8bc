"""Which EndpointSlices a Service should have: whole objects compared."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.controllers.endpoint_slices import endpoints_for, slices_for
from shoal.kube.objects import Obj


def service(**spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "ns", "uid": "s1", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8000}], **spec},
    }


def pod(name: str, ip: str | None = "10.77.0.2", *, ready: bool = True, phase: str = "Running", **more: Any) -> Obj:
    meta = {"name": name, "namespace": "ns", "uid": f"u-{name}", "labels": more.pop("labels", {"app": "web"})}
    if more.pop("leaving", False):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status: Obj = {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    if ip:
        status["podIP"] = ip
    return {"metadata": meta, "spec": {"nodeName": "n1", "containers": [], **more}, "status": status}


def endpoint(name: str, ip: str, *, ready: bool = True, serving: bool = True, terminating: bool = False) -> Obj:
    return {
        "addresses": [ip],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": {"kind": "Pod", "namespace": "ns", "name": name, "uid": f"u-{name}"},
        "nodeName": "n1",
    }


OWNER = {
    "apiVersion": "v1",
    "kind": "Service",
    "name": "web",
    "uid": "s1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def test_ready_pods_are_listed_in_order_under_the_service_they_belong_to() -> None:
    pods = [pod("b", "10.77.0.3"), pod("a"), pod("other", labels={"app": "db"}), pod("unplaced", None)]
    assert slices_for(service(), pods) == [
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "web-0",
                "namespace": "ns",
                "labels": {
                    "team": "a",
                    "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpoints.shoal.dev",
                },
                "ownerReferences": [OWNER],
            },
            "addressType": "IPv4",
            "endpoints": [endpoint("a", "10.77.0.2"), endpoint("b", "10.77.0.3")],
            "ports": [{"name": "http", "port": 8000, "protocol": "TCP"}],
        }
    ]


CONDITIONS = [
    pytest.param({}, {"ready": False}, endpoint("a", "10.77.0.2", ready=False, serving=False), id="not ready"),
    pytest.param(
        {"publishNotReadyAddresses": True}, {"ready": False}, endpoint("a", "10.77.0.2"), id="published anyway"
    ),
    pytest.param(
        {}, {"leaving": True}, endpoint("a", "10.77.0.2", ready=False, terminating=True), id="leaving, still serving"
    ),
    pytest.param(
        {},
        {"hostname": "a", "subdomain": "web"},
        {**endpoint("a", "10.77.0.2"), "hostname": "a"},
        id="a hostname of this service",
    ),
    pytest.param({}, {"hostname": "a", "subdomain": "db"}, endpoint("a", "10.77.0.2"), id="a hostname of another"),
]


@pytest.mark.parametrize(("spec", "change", "expected"), CONDITIONS)
def test_an_endpoint_says_whether_to_use_it(spec: Obj, change: dict[str, Any], expected: Obj) -> None:
    assert slices_for(service(**spec), [pod("a", **change)])[0]["endpoints"] == [expected]


def test_a_finished_pod_has_no_endpoint_and_an_empty_service_keeps_an_empty_slice() -> None:
    made = slices_for(service(), [pod("a", phase="Succeeded"), pod("b", phase="Failed")])
    assert [(piece["metadata"]["name"], piece["endpoints"]) for piece in made] == [("web-0", [])]


def test_a_named_port_is_looked_up_in_each_pod() -> None:
    def serving(name: str, ip: str, port: int) -> Obj:
        return pod(name, ip, containers=[{"name": "c", "ports": [{"name": "http", "containerPort": port}]}])

    made = slices_for(
        service(ports=[{"port": 80, "targetPort": "http"}]),
        [serving("a", "10.77.0.2", 8080), serving("b", "10.77.0.3", 9090)],
    )
    assert [(p["ports"][0]["port"], p["endpoints"][0]["addresses"]) for p in made] == [
        (8080, ["10.77.0.2"]),
        (9090, ["10.77.0.3"]),
    ]


def test_a_large_service_is_cut_into_slices_of_a_thousand() -> None:
    pods = [pod(f"p{i:04}", f"10.77.{i // 250}.{i % 250}") for i in range(2300)]
    assert [len(piece["endpoints"]) for piece in slices_for(service(), pods)] == [1000, 1000, 300]


def test_endpoints_say_the_same_as_the_slices() -> None:
    pods = [pod("a"), pod("b", "10.77.0.3", ready=False)]
    assert endpoints_for(service(), slices_for(service(), pods))["subsets"] == [
        {
            "addresses": [
                {
                    "ip": "10.77.0.2",
                    "nodeName": "n1",
                    "targetRef": {"kind": "Pod", "namespace": "ns", "name": "a", "uid": "u-a"},
                }
            ],
            "notReadyAddresses": [
                {
                    "ip": "10.77.0.3",
                    "nodeName": "n1",
                    "targetRef": {"kind": "Pod", "namespace": "ns", "name": "b", "uid": "u-b"},
                }
            ],
            "ports": [{"name": "http", "port": 8000, "protocol": "TCP"}],
        }
    ]
