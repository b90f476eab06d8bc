"""What `kubectl get` shows of each kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.apiserver import printers
from shoal.kube import kinds
from shoal.kube.kinds import Column, Kind

NOW = datetime(2030, 1, 1, 0, 2, tzinfo=UTC)
BORN = "2030-01-01T00:00:00Z"


def shown(kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
    layout = printers.printer_of(kind)
    meta = {"name": "x", "creationTimestamp": BORN, **obj.get("metadata", {})}
    cells = layout.cells({**obj, "metadata": meta}, NOW)
    return dict(zip([column.name for column in layout.columns], cells, strict=True))


def pod(*statuses: dict[str, Any], inits: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": s["name"]} for s in statuses] or [{"name": "c"}]}
    if inits:
        spec["initContainers"] = [{"name": s["name"], **s.pop("spec", {})} for s in inits]
    status = {"phase": "Running", "containerStatuses": list(statuses), "initContainerStatuses": inits or []}
    status.update(more.pop("status", {}))
    return {"spec": spec, "status": status, **more}


def running(name: str = "c", *, ready: bool = True, **more: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "state": {"running": {}}, **more}


def waiting(reason: str, name: str = "c") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason}}}


def ended(code: int = 0, reason: str = "", name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code, "reason": reason, **more}}}


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
PODS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "pending": (pod(status={"phase": "Pending"}), ("0/1", "Pending", "0")),
    "running": (pod(running(), running("d", ready=False)), ("1/2", "Running", "0")),
    "creating": (pod(waiting("ContainerCreating")), ("0/1", "ContainerCreating", "0")),
    "crashing": (
        pod(waiting("CrashLoopBackOff") | {"restartCount": 3, "lastState": {"terminated": {"finishedAt": BORN}}}),
        ("0/1", "CrashLoopBackOff", "3 (2m ago)"),
    ),
    "done": (pod(ended(reason="Completed"), status={"phase": "Succeeded"}), ("0/1", "Completed", "0")),
    "failed": (pod(ended(1, "Error"), status={"phase": "Failed"}), ("0/1", "Error", "0")),
    "killed": (pod(ended(137, signal=9)), ("0/1", "Signal:9", "0")),
    "odd code": (pod(ended(7)), ("0/1", "ExitCode:7", "0")),
    "one done, one runs": (pod(ended(reason="Completed"), running("d"), status=READY), ("1/2", "Running", "0")),
    "one done, one runs unready": (pod(ended(reason="Completed"), running("d")), ("1/2", "NotReady", "0")),
    "one done, one failed": (pod(ended(reason="Completed"), ended(1, "Error", "d")), ("0/2", "Error", "0")),
    "init running": (pod(waiting("PodInitializing"), inits=[running("i"), running("j")]), ("0/1", "Init:0/2", "0")),
    "init failed": (pod(waiting("PodInitializing"), inits=[ended(2, "Error", "i")]), ("0/1", "Init:Error", "0")),
    "init crashed": (pod(inits=[ended(2, name="i", signal=6)]), ("0/1", "Init:Signal:6", "0")),
    "init waits": (pod(inits=[waiting("CrashLoopBackOff", "i")]), ("0/1", "Init:CrashLoopBackOff", "0")),
    "sidecar": (
        pod(running(), inits=[running("s", started=True, restartCount=2, spec={"restartPolicy": "Always"})]),
        ("2/2", "Running", "2"),
    ),
    "evicted": (pod(status={"phase": "Failed", "reason": "Evicted"}), ("0/1", "Evicted", "0")),
    "gated": (
        pod(status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
        ("0/1", "SchedulingGated", "0"),
    ),
    "leaving": (pod(running(), metadata={"deletionTimestamp": BORN}), ("1/1", "Terminating", "0")),
    "leaving, done": (
        pod(ended(reason="Completed"), status={"phase": "Succeeded"}, metadata={"deletionTimestamp": BORN}),
        ("0/1", "Completed", "0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("obj", "cells"), PODS.values(), ids=PODS)
def test_the_status_of_a_pod_is_what_matters_now(obj: dict[str, Any], cells: tuple[str, str, str]) -> None:
    row = shown(kinds.POD, obj)
    assert (row["Ready"], row["Status"], row["Restarts"]) == cells


def test_a_wide_pod_row_names_the_node() -> None:
    obj = pod(running(), status={"podIPs": [{"ip": "10.77.0.2"}], **READY})
    obj["spec"] |= {"nodeName": "n1", "readinessGates": [{"conditionType": "Ready"}, {"conditionType": "Other"}]}
    assert shown(kinds.POD, obj) == {
        "Name": "x", "Ready": "1/1", "Status": "Running", "Restarts": "0", "Age": "2m",
        "IP": "10.77.0.2", "Node": "n1", "Nominated Node": "<none>", "Readiness Gates": "1/2",
    }  # fmt: skip


SELECTOR = {"b": "2", "a": "1"}
ROWS: dict[str, tuple[Kind, dict[str, Any], dict[str, Any]]] = {
    "namespace": (
        kinds.NAMESPACE, {"status": {"phase": "Terminating"}}, {"Name": "x", "Status": "Terminating", "Age": "2m"}
    ),
    "service account": (kinds.SERVICE_ACCOUNT, {}, {"Name": "x", "Age": "2m"}),
    "priority class": (
        kinds.PRIORITY_CLASS,
        {"value": 1000, "globalDefault": True, "preemptionPolicy": "Never"},
        {"Name": "x", "Value": 1000, "Global-Default": True, "Age": "2m", "PreemptionPolicy": "Never"},
    ),
    "lease": (kinds.LEASE, {"spec": {"holderIdentity": "me"}}, {"Name": "x", "Holder": "me", "Age": "2m"}),
    "definition": (kinds.CUSTOM_RESOURCE_DEFINITION, {}, {"Name": "x", "Created At": BORN}),
    "node": (
        kinds.NODE,
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "amd64"},
            },
        },
        {
            "Name": "x", "Status": "Ready,SchedulingDisabled", "Roles": "gpu,worker", "Age": "2m", "Version": "v1",
            "Internal-IP": "10.0.0.1", "External-IP": "<none>", "OS-Image": "<unknown>",
            "Kernel-Version": "6.1 (amd64)", "Container-Runtime": "<unknown>",
        },
    ),
    "service": (
        kinds.SERVICE,
        {"spec": {"type": "NodePort", "clusterIPs": ["10.96.0.5"], "selector": SELECTOR,
                  "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}},
        {"Name": "x", "Type": "NodePort", "Cluster-IP": "10.96.0.5", "External-IP": "<none>",
         "Port(s)": "80:30080/TCP,53/UDP", "Age": "2m", "Selector": "a=1,b=2"},
    ),
    "headless service": (
        kinds.SERVICE,
        {"spec": {"type": "ClusterIP", "clusterIPs": ["None"]}},
        {"Name": "x", "Type": "ClusterIP", "Cluster-IP": "None", "External-IP": "<none>", "Port(s)": "<none>",
         "Age": "2m", "Selector": "<none>"},
    ),
    "load balancer": (
        kinds.SERVICE,
        {"spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.6"}},
        {"Name": "x", "Type": "LoadBalancer", "Cluster-IP": "10.96.0.6", "External-IP": "<pending>",
         "Port(s)": "<none>", "Age": "2m", "Selector": "<none>"},
    ),
    "endpoints": (
        kinds.ENDPOINTS,
        {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 6)], "ports": [{"port": 80}]}]},
        {"Name": "x", "Endpoints": "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...", "Age": "2m"},
    ),
    "endpoint slice": (
        kinds.ENDPOINT_SLICE,
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
        {"Name": "x", "AddressType": "IPv4", "Ports": "<unset>", "Endpoints": "10.0.0.1", "Age": "2m"},
    ),
    "volume": (
        kinds.PERSISTENT_VOLUME,
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                  "persistentVolumeReclaimPolicy": "Delete", "claimRef": {"namespace": "n", "name": "c"},
                  "storageClassName": "local", "volumeMode": "Filesystem"}, "status": {"phase": "Bound"}},
        {"Name": "x", "Capacity": "1Gi", "Access Modes": "RWO,RWX", "Reclaim Policy": "Delete", "Status": "Bound",
         "Claim": "n/c", "StorageClass": "local", "VolumeAttributesClass": "<unset>", "Reason": "", "Age": "2m",
         "VolumeMode": "Filesystem"},
    ),
    "unbound claim": (
        kinds.PERSISTENT_VOLUME_CLAIM,
        {"spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Pending"}},
        {"Name": "x", "Status": "Pending", "Volume": "", "Capacity": "", "Access Modes": "", "StorageClass": "",
         "VolumeAttributesClass": "<unset>", "Age": "2m", "VolumeMode": "<unset>"},
    ),
    "config map": (kinds.CONFIG_MAP, {"data": {"a": ""}, "binaryData": {"b": ""}},
                   {"Name": "x", "Data": 2, "Age": "2m"}),
    "secret": (kinds.SECRET, {"type": "Opaque"}, {"Name": "x", "Type": "Opaque", "Data": 0, "Age": "2m"}),
    "event": (
        kinds.EVENT,
        {"involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"}, "type": "Normal", "reason": "Started",
         "message": "Started it\n", "source": {"component": "node", "host": "n1"}, "count": 4,
         "firstTimestamp": BORN, "lastTimestamp": "2030-01-01T00:01:30Z"},
        {"Last Seen": "30s", "Type": "Normal", "Reason": "Started", "Object": "pod/p", "Subobject": "spec",
         "Source": "node, n1", "Message": "Started it", "First Seen": "2m", "Count": 4, "Name": "x"},
    ),
    "new event": (
        kinds.EVENT_V1,
        {"regarding": {"kind": "Node", "name": "n1"}, "type": "Warning", "reason": "Lost", "note": "gone",
         "reportingController": "c", "eventTime": BORN},
        {"Last Seen": "2m", "Type": "Warning", "Reason": "Lost", "Object": "node/n1", "Subobject": "", "Source": "c",
         "Message": "gone", "First Seen": "2m", "Count": 1, "Name": "x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "obj", "row"), ROWS.values(), ids=ROWS)
def test_a_row_shows_the_columns_of_kubectl(kind: Kind, obj: dict[str, Any], row: dict[str, Any]) -> None:
    assert shown(kind, obj) == row


@pytest.mark.parametrize("kind", kinds.BUILT_IN, ids=str)
def test_an_empty_object_of_any_kind_has_a_row(kind: Kind) -> None:
    layout = printers.printer_of(kind)
    assert len(layout.cells({}, NOW)) == len(layout.columns)


CUSTOM = Kind(
    "g.example.com", "v1", "Job", "jobs", custom=True,
    columns=(
        Column("State", "string", ".status.state"),
        Column("Wanted", "integer", ".spec.replicas"),
        Column("Share", "number", ".spec.share"),
        Column("Paused", "boolean", ".spec.paused"),
        Column("Started", "date", ".status.startTime"),
        Column("Labels", "string", ".metadata.labels"),
    ),
)  # fmt: skip


def test_a_custom_resource_shows_the_columns_it_declares() -> None:
    obj = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"replicas": 2.0, "share": 1, "paused": False},
        "status": {"state": "Running", "startTime": "2030-01-01T00:01:00Z"},
    }
    assert shown(CUSTOM, obj) == {
        "Name": "x", "State": "Running", "Wanted": 2, "Share": 1.0, "Paused": False, "Started": "60s",
        "Labels": '{"a":"b"}',
    }  # fmt: skip


def test_a_value_of_another_type_leaves_the_cell_empty() -> None:
    obj = {"spec": {"replicas": "two", "share": True, "paused": "no"}, "status": {"startTime": 5}}
    assert shown(CUSTOM, obj) == {
        "Name": "x", "State": None, "Wanted": None, "Share": None, "Paused": None, "Started": None, "Labels": None
    }  # fmt: skip


def test_a_custom_resource_without_columns_shows_its_age() -> None:
    assert shown(Kind("g.example.com", "v1", "Bare", "bares", custom=True), {}) == {"Name": "x", "Age": "2m"}
