"""Forms of answers: tables, metadata only, YAML, indentation; and what no server can give."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kit.api_objects import config_map, container, failure, not_found, pod
from kit.raw_api import METADATA, METADATA_LIST, TABLE, Api, Obj, Space


def columns(table: Obj) -> list[tuple[str, str, int]]:
    return [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]]


def test_a_table_of_config_maps(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1", "y": "2"})).ok()
    table = space.get("configmaps", accept=TABLE).ok()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert columns(table) == [("Name", "string", 0), ("Data", "string", 0), ("Age", "string", 0)]
    (row,) = table["rows"]
    assert row["cells"][:2] == ["a", 2]
    metadata = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert row["object"] == metadata


def test_a_table_of_one_object(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    table = space.get("configmaps/a", accept=TABLE).ok()
    assert [row["cells"][0] for row in table["rows"]] == ["a"]
    assert table["metadata"] == {"resourceVersion": made["metadata"]["resourceVersion"]}


INCLUDED = {"None": None, "Metadata": "PartialObjectMetadata", "Object": "ConfigMap"}


@pytest.mark.parametrize(("include", "kind"), INCLUDED.items(), ids=INCLUDED.keys())
def test_rows_of_a_table_carry_the_requested_object(space: Space, include: str, kind: str | None) -> None:
    space.post("configmaps", config_map("a")).ok()
    (row,) = space.get("configmaps", accept=TABLE, includeObject=include).ok()["rows"]
    assert (row["object"] or {}).get("kind") == kind


def test_rows_cannot_carry_anything_else(space: Space) -> None:
    refused = space.get("configmaps", accept=TABLE, includeObject="Some").failure()
    message = (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Some": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )
    assert refused == failure(400, "BadRequest", message)


def test_a_table_of_pods(space: Space) -> None:
    space.post("pods", pod("a", containers=[container("x"), container("y")], nodeName="n1")).ok()
    table = space.get("pods", accept=TABLE).ok()
    assert columns(table) == [
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Status", "string", 0),
        ("Restarts", "string", 0),
        ("Age", "string", 0),
        ("IP", "string", 1),
        ("Node", "string", 1),
        ("Nominated Node", "string", 1),
        ("Readiness Gates", "string", 1),
    ]
    (row,) = table["rows"]
    cells = row["cells"]
    assert cells[:4] + cells[5:] == ["a", "0/2", "Pending", "0", "<none>", "n1", "<none>", "<none>"]


def container_status(name: str, **more: Any) -> Obj:
    return {"name": name, "image": "tool:1", "imageID": "", "ready": False, "restartCount": 0} | more


POD_STATES: dict[str, tuple[Obj, list[Any]]] = {
    "running": (
        {"phase": "Running", "containerStatuses": [container_status("main", ready=True, state={"running": {}})]},
        ["1/1", "Running", "0"],
    ),
    "waiting": (
        {
            "phase": "Pending",
            "containerStatuses": [container_status("main", state={"waiting": {"reason": "ContainerCreating"}})],
        },
        ["0/1", "ContainerCreating", "0"],
    ),
    "completed": (
        {
            "phase": "Succeeded",
            "containerStatuses": [
                container_status("main", state={"terminated": {"exitCode": 0, "reason": "Completed"}})
            ],
        },
        ["0/1", "Completed", "0"],
    ),
    "failed": (
        {
            "phase": "Failed",
            "containerStatuses": [
                container_status("main", restartCount=2, state={"terminated": {"exitCode": 1, "reason": "Error"}})
            ],
        },
        ["0/1", "Error", "2"],
    ),
    "killed by a signal": (
        {
            "phase": "Failed",
            "containerStatuses": [container_status("main", state={"terminated": {"exitCode": 137, "signal": 9}})],
        },
        ["0/1", "Signal:9", "0"],
    ),
    "evicted": ({"phase": "Failed", "reason": "Evicted"}, ["0/1", "Evicted", "0"]),
}


@pytest.mark.parametrize(("status", "cells"), POD_STATES.values(), ids=POD_STATES.keys())
def test_the_state_of_a_pod_is_shown_in_its_row(space: Space, status: Obj, cells: list[Any]) -> None:
    space.post("pods", pod("a")).ok()
    space.patch("pods/a/status", {"status": status}).ok()
    (row,) = space.get("pods", accept=TABLE).ok()["rows"]
    assert row["cells"][1:4] == cells


def test_a_pod_under_deletion_is_terminating(space: Space) -> None:
    space.post("pods", pod("a", nodeName="n1")).ok()
    space.delete("pods/a").ok()
    (row,) = space.get("pods", accept=TABLE).ok()["rows"]
    assert row["cells"][2] == "Terminating"


TABLES = {
    "/api/v1/namespaces": ["Name", "Status", "Age"],
    "/api/v1/nodes": [
        "Name", "Status", "Roles", "Age", "Version", "Internal-IP", "External-IP", "OS-Image", "Kernel-Version",
        "Container-Runtime",
    ],
    "/api/v1/services": ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"],
    "/api/v1/endpoints": ["Name", "Endpoints", "Age"],
    "/api/v1/secrets": ["Name", "Type", "Data", "Age"],
    "/api/v1/serviceaccounts": ["Name", "Age"],
    "/api/v1/events": [
        "Last Seen", "Type", "Reason", "Object", "Subobject", "Source", "Message", "First Seen", "Count", "Name",
    ],
    "/api/v1/persistentvolumes": [
        "Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
        "VolumeAttributesClass", "Reason", "Age", "VolumeMode",
    ],
    "/api/v1/persistentvolumeclaims": [
        "Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
        "VolumeMode",
    ],
    "/api/v1/resourcequotas": ["Name", "Request", "Limit", "Age"],
    "/apis/policy/v1/poddisruptionbudgets": ["Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"],
    "/apis/storage.k8s.io/v1/storageclasses": [
        "Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age",
    ],
    "/apis/coordination.k8s.io/v1/leases": ["Name", "Holder", "Age"],
    "/apis/scheduling.k8s.io/v1/priorityclasses": ["Name", "Value", "Global-Default", "Age", "PreemptionPolicy"],
    "/apis/discovery.k8s.io/v1/endpointslices": ["Name", "AddressType", "Ports", "Endpoints", "Age"],
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": ["Name", "Created At"],
}  # fmt: skip


@pytest.mark.parametrize(("path", "expected"), TABLES.items(), ids=[path.rpartition("/")[2] for path in TABLES])
def test_every_kind_has_the_columns_of_kubectl(server: Api, path: str, expected: list[str]) -> None:
    table = server.get(path, accept=TABLE, limit=1).ok()
    assert [each["name"] for each in table["columnDefinitions"]] == expected


def test_metadata_alone_can_be_requested(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert space.get("configmaps/a", accept=METADATA).ok() == partial


def test_a_list_of_metadata_can_be_requested(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    listed = space.get("configmaps", accept=METADATA_LIST).ok()
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert [item["metadata"] for item in listed["items"]] == [made["metadata"]]


def test_metadata_can_be_watched(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    with space.watch("configmaps", accept=METADATA) as watch:
        (event,) = watch.take(1)
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert event == {"type": "ADDED", "object": partial}


def test_yaml_can_be_requested(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"})).ok()
    answer = space.get("configmaps/a", accept="application/yaml")
    assert (answer.status, answer.content_type) == (200, "application/yaml")
    assert yaml.safe_load(answer.body)["data"] == {"x": "1"}


@pytest.mark.parametrize("accept", ["*/*", "text/html, application/json;q=0.5", "application/json"])
def test_json_is_served_to_all_who_accept_it(space: Space, accept: str) -> None:
    space.post("configmaps", config_map("a")).ok()
    answer = space.get("configmaps/a", accept=accept)
    assert (answer.status, answer.content_type) == (200, "application/json")


def test_what_cannot_be_given_is_refused(space: Space) -> None:
    refused = space.get("configmaps", accept="application/xml").failure()
    assert (refused["code"], refused["reason"]) == (406, "NotAcceptable")


def test_an_unknown_form_falls_back_where_plain_json_is_taken(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    odd = "application/json;as=Odd;v=v1;g=meta.k8s.io"
    assert space.get("configmaps/a", accept=f"{odd},application/json").ok()["kind"] == "ConfigMap"
    assert space.get("configmaps/a", accept=odd).status == 406


def test_an_error_is_a_status_whatever_was_requested(space: Space) -> None:
    assert space.get("configmaps/none", accept=TABLE).failure() == not_found("configmaps", "none")


def test_answers_are_indented_on_demand(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    pretty = space.get("configmaps/a", pretty="true").body
    assert pretty.startswith(b'{\n  "')
    assert json.loads(pretty) == made


def test_an_answer_is_one_line_and_a_newline(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    body = space.get("configmaps/a").body
    assert (body.count(b"\n"), body[-1:]) == (1, b"\n")
