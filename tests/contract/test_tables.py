"""What a person reads: the cells of a row, kind by kind, as kubectl prints them."""

from __future__ import annotations

from typing import Any

from kit.api_objects import lease, secret, service
from kit.raw_api import TABLE, Api, Obj, Space


def row(api: Api, path: str, **query: Any) -> dict[str, Any]:
    """The only row, by the names of its columns and without its age."""
    table = api.get(path, accept=TABLE, **query).ok()
    (found,) = table["rows"]
    cells = dict(zip([each["name"] for each in table["columnDefinitions"]], found["cells"], strict=True))
    assert isinstance(cells.pop("Age", "0s"), str)
    return cells


def test_a_row_of_a_service(space: Space) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]
    address = space.post("services", service("a", ports=ports)).ok()["spec"]["clusterIP"]
    assert row(space.api, space.path("services")) == {
        "Name": "a",
        "Type": "ClusterIP",
        "Cluster-IP": address,
        "External-IP": "<none>",
        "Port(s)": "80/TCP,53/UDP",
        "Selector": "app=a",
    }


def test_a_row_of_an_external_name(space: Space) -> None:
    spec = {"type": "ExternalName", "externalName": "example.com"}
    space.post("services", {"metadata": {"name": "a"}, "spec": spec}).ok()
    assert row(space.api, space.path("services")) == {
        "Name": "a",
        "Type": "ExternalName",
        "Cluster-IP": "<none>",
        "External-IP": "example.com",
        "Port(s)": "<none>",
        "Selector": "<none>",
    }


def test_a_row_of_a_secret(space: Space) -> None:
    space.post("secrets", secret("a", data={"x": "aGk=", "y": "aGk="})).ok()
    assert row(space.api, space.path("secrets")) == {"Name": "a", "Type": "Opaque", "Data": 2}


def test_a_row_of_a_lease(space: Space) -> None:
    group = "coordination.k8s.io/v1"
    space.post("leases", lease("a", holderIdentity="me"), group=group).ok()
    assert row(space.api, space.path("leases", group)) == {"Name": "a", "Holder": "me"}


def test_a_row_of_a_claim(space: Space) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    space.post("persistentvolumeclaims", {"metadata": {"name": "a"}, "spec": spec}).ok()
    assert row(space.api, space.path("persistentvolumeclaims")) == {
        "Name": "a",
        "Status": "Pending",
        "Volume": "",
        "Capacity": "",
        "Access Modes": "",
        "StorageClass": "",
        "VolumeAttributesClass": "<unset>",
        "VolumeMode": "Filesystem",
    }


def test_a_row_of_a_volume(server: Api, unique_name: str) -> None:
    modes = ["ReadWriteOnce", "ReadOnlyMany"]
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": modes, "hostPath": {"path": "/x"}}
    server.post("/api/v1/persistentvolumes", {"metadata": {"name": unique_name}, "spec": spec}).ok()
    assert row(server, f"/api/v1/persistentvolumes/{unique_name}") == {
        "Name": unique_name,
        "Capacity": "1Gi",
        "Access Modes": "RWO,ROX",
        "Reclaim Policy": "Retain",
        "Status": "Pending",
        "Claim": "",
        "StorageClass": "",
        "VolumeAttributesClass": "<unset>",
        "Reason": "",
        "VolumeMode": "Filesystem",
    }


def test_a_row_of_an_endpoint_slice(space: Space) -> None:
    group = "discovery.k8s.io/v1"
    body = {
        "metadata": {"name": "a"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"]}, {"addresses": ["10.1.2.4"]}],
        "ports": [{"port": 80}, {"name": "x", "port": 81}],
    }
    space.post("endpointslices", body, group=group).ok()
    assert row(space.api, space.path("endpointslices", group)) == {
        "Name": "a",
        "AddressType": "IPv4",
        "Ports": "80,81",
        "Endpoints": "10.1.2.3,10.1.2.4",
    }


def test_a_row_of_endpoints(space: Space) -> None:
    subset = {"addresses": [{"ip": "10.1.2.3"}, {"ip": "10.1.2.4"}], "ports": [{"port": 80}]}
    space.post("endpoints", {"metadata": {"name": "a"}, "subsets": [subset]}).ok()
    assert row(space.api, space.path("endpoints")) == {"Name": "a", "Endpoints": "10.1.2.3:80,10.1.2.4:80"}


def test_a_row_of_a_priority_class(server: Api, unique_name: str) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    server.post(path, {"metadata": {"name": unique_name}, "value": 1000}).ok()
    assert row(server, f"{path}/{unique_name}") == {
        "Name": unique_name,
        "Value": 1000,
        "Global-Default": False,
        "PreemptionPolicy": "PreemptLowerPriority",
    }


def test_a_row_of_a_node(server: Api, unique_name: str) -> None:
    labels = {"node-role.kubernetes.io/worker": ""}
    body = {"metadata": {"name": unique_name, "labels": labels}, "spec": {"unschedulable": True}}
    server.post("/api/v1/nodes", body).ok()
    status: Obj = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {
            "kubeletVersion": "v1.0",
            "osImage": "os",
            "kernelVersion": "k",
            "containerRuntimeVersion": "c",
        },
    }
    server.patch(f"/api/v1/nodes/{unique_name}/status", {"status": status}).ok()
    assert row(server, f"/api/v1/nodes/{unique_name}") == {
        "Name": unique_name,
        "Status": "Ready,SchedulingDisabled",
        "Roles": "worker",
        "Version": "v1.0",
        "Internal-IP": "10.0.0.1",
        "External-IP": "<none>",
        "OS-Image": "os",
        "Kernel-Version": "k",
        "Container-Runtime": "c",
    }


def test_a_row_of_an_event(space: Space) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": space.name, "fieldPath": "spec.containers{main}"}
    moment = "2026-01-01T00:00:00Z"
    body = {
        "metadata": {"name": "a"},
        "involvedObject": about,
        "reason": "Why",
        "message": "text\n",
        "type": "Normal",
        "count": 3,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": "c", "host": "h"},
    }
    space.post("events", body).ok()
    found = row(space.api, space.path("events"))
    assert found.pop("Last Seen") == found.pop("First Seen")
    assert found == {
        "Type": "Normal",
        "Reason": "Why",
        "Object": "pod/p",
        "Subobject": "spec.containers{main}",
        "Source": "c, h",
        "Message": "text",
        "Count": 3,
        "Name": "a",
    }


def test_a_row_of_a_namespace(space: Space) -> None:
    assert row(space.api, f"/api/v1/namespaces/{space.name}") == {"Name": space.name, "Status": "Active"}
