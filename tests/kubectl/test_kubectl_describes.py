"""kubectl describe gathers an object and what belongs to it; events shows what happened."""

from __future__ import annotations

import re
from typing import Any

import pytest


def event(kubectl: Any, obj: dict[str, Any], reason: str, message: str, *, type: str = "Normal") -> None:  # noqa: A002
    meta = obj["metadata"]
    about = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "name": meta["name"], "uid": meta["uid"]}
    about["namespace"] = meta.get("namespace", "")
    kubectl("create", "-f", "-", given={
        "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": f"{meta['name']}."}, "involvedObject": about,
        "reason": reason, "message": message, "type": type, "count": 2, "source": {"component": "tester"},
        "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:01:00Z",
    })  # fmt: skip


def test_describe_of_a_pod_prints_its_containers_and_events(kubectl: Any, pod: Any) -> None:
    event(kubectl, pod("p", "one", "two"), "Started", "off we go")
    out = kubectl("describe", "pod", "p").out
    assert re.search(r"^Name:\s+p$", out, re.MULTILINE)
    assert re.search(r"^Node:\s+node-1/$", out, re.MULTILINE)
    assert re.search(r"^  one:\n.*\n(.*\n)*?^  two:", out, re.MULTILINE)
    assert re.search(r"^  Normal\s+Started\s+.*\s+tester\s+off we go$", out, re.MULTILINE)


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def test_describe_of_a_node_sums_up_its_pods(kubectl: Any, pod: Any) -> None:
    name = f"n-{kubectl.namespace}"
    kubectl("create", "-f", "-", given=node(name))
    status = '{"status":{"capacity":{"cpu":"4"},"allocatable":{"cpu":"4"}}}'
    kubectl("patch", "node", name, "--subresource=status", "-p", status)
    pod("p", placed=False)
    kubectl.server.call(lambda cluster: cluster.bind("p", kubectl.namespace, node=name))
    out = kubectl("describe", "node", name).out
    assert re.search(r"^Capacity:\n  cpu:\s+4$", out, re.MULTILINE)
    assert re.search(rf"^Non-terminated Pods:\s+\(1 in total\)\n(.*\n)*?  {kubectl.namespace}\s+p\s", out, re.MULTILINE)
    kubectl("delete", "node", name)


OBJECTS: dict[str, tuple[dict[str, Any], str]] = {
    "service": (
        {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
        r"^Selector:\s+a=b$",
    ),
    "persistentvolumeclaim": (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
        r"^Status:\s+Pending$",
    ),
    "configmap": ({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}}, r"^key:\n----\nvalue$"),
    "secret": ({"apiVersion": "v1", "kind": "Secret", "stringData": {"key": "value"}}, r"^key:\s+5 bytes$"),
    "serviceaccount": ({"apiVersion": "v1", "kind": "ServiceAccount"}, r"^Name:\s+x$"),
    "lease": (
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "me"}},
        r"^\s+Holder Identity:\s+me$",
    ),
    "endpoints": (
        {"apiVersion": "v1", "kind": "Endpoints", "subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]},
        r"^\s+Addresses:\s+10.0.0.1$",
    ),
    "endpointslice": (
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []},
        r"^AddressType:\s+IPv4$",
    ),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_describe_of_each_kind(kubectl: Any, kind: str) -> None:
    obj, expected = OBJECTS[kind]
    kubectl("create", "-f", "-", given={**obj, "metadata": {"name": "x"}})
    assert re.search(expected, kubectl("describe", kind, "x").out, re.MULTILINE)


def test_describe_of_cluster_scoped_kinds(kubectl: Any, widgets: str) -> None:
    assert re.search(r"^Status:\s+Active$", kubectl("describe", "namespace", "default").out, re.MULTILINE)
    assert re.search(r"^\s+Kind:\s+Widget$", kubectl("describe", "crd", widgets).out, re.MULTILINE)
    name = f"v-{kubectl.namespace}"
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    kubectl(
        "create",
        "-f",
        "-",
        given={"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec},
    )
    assert re.search(r"^\s+Path:\s+/x$", kubectl("describe", "pv", name).out, re.MULTILINE)
    kubectl("delete", "pv", name)


def test_describe_of_a_custom_resource(kubectl: Any, widgets: str) -> None:
    spec = {"colour": "blue"}
    given = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
    kubectl("create", "-f", "-", given=given)
    assert re.search(r"^Spec:\n  Colour:\s+blue$", kubectl("describe", widgets, "w").out, re.MULTILINE)


def test_events_lists_what_happened_and_filters(kubectl: Any, pod: Any) -> None:
    event(kubectl, pod("a"), "Started", "off we go")
    event(kubectl, pod("b"), "Failed", "no luck", type="Warning")
    rows = kubectl("events").rows
    assert rows[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    output = {" ".join(row[row.index("Pod/" + name) :]) for row, name in zip(rows[1:], "ab", strict=True)}
    assert output == {"Pod/a off we go", "Pod/b no luck"}
    assert [row[-2:] for row in kubectl("events", "--types=Warning", "--no-headers").rows] == [["no", "luck"]]
    assert [row[-3:] for row in kubectl("events", "--for=pod/a", "--no-headers").rows] == [["off", "we", "go"]]
    assert {row[3] for row in kubectl("get", "events", "--no-headers").rows} == {"pod/a", "pod/b"}
