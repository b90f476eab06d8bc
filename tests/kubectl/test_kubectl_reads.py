"""kubectl get in its many forms, describe, explain and what discovery feeds."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml


def config(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"k": name}}


@pytest.fixture
def maps(kubectl: Any) -> Any:
    kubectl("create", "-f", "-", given=[config("a", app="x", tier="1"), config("b", app="x"), config("c", app="y")])
    return kubectl


def test_get_prints_a_table(maps: Any) -> None:
    assert [row[:2] for row in maps("get", "cm").rows] == [["NAME", "DATA"], ["a", "1"], ["b", "1"], ["c", "1"]]


def test_get_of_a_pod_prints_its_state_and_wide_prints_its_place(kubectl: Any, pod: Any) -> None:
    pod("runner")
    row = dict(zip(*kubectl("get", "pod", "runner").rows, strict=True))
    assert row.pop("AGE")
    assert row == {"NAME": "runner", "READY": "0/1", "STATUS": "Pending", "RESTARTS": "0"}
    head, wide = kubectl("get", "pods", "-o", "wide").out.splitlines()
    assert re.split(r"\s{2,}", head.strip())[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert wide.split()[5:] == ["<none>", "node-1", "<none>", "<none>"]


def test_get_as_json_and_yaml_give_the_same_object(maps: Any) -> None:
    as_json = json.loads(maps("get", "cm", "a", "-o", "json").out)
    assert as_json == yaml.safe_load(maps("get", "cm", "a", "-o", "yaml").out)
    assert (as_json["apiVersion"], as_json["kind"], as_json["data"]) == ("v1", "ConfigMap", {"k": "a"})


OUTPUTS = {
    "jsonpath": ("jsonpath={.items[*].metadata.name}", "a b c"),
    "custom columns": ("custom-columns=N:.metadata.name,V:.data.k", "N     V\na     a\nb     b\nc     c\n"),
    "name": ("name", "configmap/a\nconfigmap/b\nconfigmap/c\n"),
    "go template": ("go-template={{range .items}}{{.metadata.name}};{{end}}", "a;b;c;"),
}


@pytest.mark.parametrize(("form", "printed"), OUTPUTS.values(), ids=OUTPUTS)
def test_get_prints_the_output_format(maps: Any, form: str, printed: str) -> None:
    assert maps("get", "cm", "-o", form).out == printed


SELECTIONS = {
    "equal": (["-l", "app=x"], "a b"),
    "unequal": (["-l", "app!=x"], "c"),
    "set": (["-l", "app in (x,y),!tier"], "b c"),
    "field": (["--field-selector", "metadata.name=b"], "b"),
    "field not": (["--field-selector", "metadata.name!=b"], "a c"),
}


@pytest.mark.parametrize(("arguments", "names"), SELECTIONS.values(), ids=SELECTIONS)
def test_get_selects(maps: Any, arguments: list[str], names: str) -> None:
    assert maps("get", "cm", *arguments, "-o", "jsonpath={.items[*].metadata.name}").out == names


def test_get_sorts_by_a_path(maps: Any) -> None:
    maps("patch", "cm", "b", "-p", '{"data":{"k":"0"}}')
    printed = maps("get", "cm", "--sort-by=.data.k", "--no-headers").rows
    assert [row[0] for row in printed] == ["b", "a", "c"]


def test_get_reads_long_lists_in_pieces(maps: Any) -> None:
    out = maps("get", "cm", "--chunk-size=1", "-o", "name", "-v=8")
    assert out.out == "configmap/a\nconfigmap/b\nconfigmap/c\n"
    assert len(re.findall(r"continue=\w+", out.err)) >= 2


def test_get_shows_labels_and_label_columns(maps: Any) -> None:
    assert maps("get", "cm", "a", "--show-labels", "--no-headers").rows[0][-1] == "app=x,tier=1"
    assert maps("get", "cm", "a", "-L", "tier", "--no-headers").rows[0][-1] == "1"


def test_get_across_namespaces_names_them(maps: Any) -> None:
    rows = maps("get", "cm", "-A").rows
    assert rows[0][:2] == ["NAMESPACE", "NAME"]
    assert [maps.namespace, "a"] in [row[:2] for row in rows]


def test_get_watch_prints_changes_until_it_is_stopped(maps: Any) -> None:
    watching = maps.start("get", "cm", "-w", "--no-headers")
    try:
        assert watching.stdout is not None
        assert [watching.stdout.readline().split()[0] for _ in range(3)] == ["a", "b", "c"]
        maps("create", "-f", "-", given=config("d"))
        assert watching.stdout.readline().split()[:2] == ["d", "1"]
        maps("patch", "cm", "d", "-p", '{"data":{"more":"x"}}')
        assert watching.stdout.readline().split()[:2] == ["d", "2"]
    finally:
        watching.terminate()
        watching.communicate()


def test_get_watch_prints_the_event_types(maps: Any) -> None:
    form = "jsonpath={.type}:{.object.data.k};"
    watching = maps.start("get", "cm", "a", "-w", "--output-watch-events", "-o", form)
    try:
        assert watching.stdout is not None
        assert watching.stdout.read(len("ADDED:a;")) == "ADDED:a;"
        maps("patch", "cm", "a", "-p", '{"data":{"k":"new"}}')
        maps("delete", "cm", "a")
        assert watching.stdout.read(len("MODIFIED:new;DELETED:new;")) == "MODIFIED:new;DELETED:new;"
    finally:
        watching.terminate()
        watching.communicate()


def test_get_of_a_missing_object_is_an_error(kubectl: Any) -> None:
    assert kubectl("get", "cm", "ghost", ok=False).err == 'Error from server (NotFound): configmaps "ghost" not found\n'
    assert kubectl("get", "cm", "ghost", "--ignore-not-found").out == ""
    assert (
        kubectl("get", "sandwiches", ok=False).err == 'error: the server doesn\'t have a resource type "sandwiches"\n'
    )
    assert kubectl("get", "pods").err == f"No resources found in {kubectl.namespace} namespace.\n"


def test_get_of_a_custom_resource_shows_its_columns(kubectl: Any, widgets: str) -> None:
    given = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"colour": "red"}}
    kubectl("create", "-f", "-", given=given)
    assert [row[:3] for row in kubectl("get", "wd").rows] == [["NAME", "COLOUR", "REPLICAS"], ["w", "red", "1"]]
    assert kubectl("get", "toys", "-o", "wide").rows[0] == ["NAME", "COLOUR", "REPLICAS", "READY", "AGE"]


KINDS = [
    "ns", "nodes", "pods", "svc", "ep", "cm", "secrets", "sa", "events", "events.events.k8s.io", "pv", "pvc",
    "endpointslices", "pc", "leases", "crd", "all", "po,svc",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_listed_everywhere(kubectl: Any, kind: str) -> None:
    kubectl("get", kind, "-A")


def test_raw_paths_are_served(kubectl: Any) -> None:
    assert kubectl("get", "--raw", "/readyz").out == "ok"
    assert kubectl("get", "--raw", "/livez/ping").out == "ok"
    assert json.loads(kubectl("get", "--raw", "/version").out)["minor"] == "36"


def test_api_resources_lists_names_and_kinds(kubectl: Any, widgets: str) -> None:
    rows = {" ".join(row) for row in kubectl("api-resources").rows}
    assert {
        "pods po v1 true Pod",
        "nodes no v1 false Node",
        "widgets wd example.com/v1 true Widget",
        "leases coordination.k8s.io/v1 true Lease",
    } <= rows
    verbs = kubectl("api-resources", "--api-group=example.com", "-o", "wide", "--no-headers").rows[0]
    assert verbs[-2:] == ["create,delete,deletecollection,get,list,patch,update,watch", "toys"]


def test_api_versions_lists_groups(kubectl: Any) -> None:
    printed = set(kubectl("api-versions").out.split())
    assert {"v1", "coordination.k8s.io/v1", "events.k8s.io/v1", "metrics.k8s.io/v1beta1"} <= printed


def test_version_names_both_sides_without_a_warning(kubectl: Any) -> None:
    out = kubectl("version")
    assert re.search(r"^Server Version: v1\.36\.0\+shoal", out.out, re.MULTILINE)
    assert out.err == ""


def test_cluster_info_names_the_server(kubectl: Any) -> None:
    assert f"control plane is running at {kubectl.server.url}" in re.sub(
        r"\x1b\[[\d;]*m", "", kubectl("cluster-info").out
    )


def test_explain_describes_a_field(kubectl: Any) -> None:
    out = kubectl("explain", "pod.spec.containers.ports").out
    assert "KIND:       Pod" in out
    assert "FIELD: ports <[]ContainerPort>" in out
    assert re.search(r"containerPort\t<integer> -required-", out)


def test_explain_recursively_lists_everything(kubectl: Any) -> None:
    out = kubectl("explain", "pod.spec.containers", "--recursive").out
    assert re.search(r"livenessProbe\t<Probe>\n(.*\n)*?\s+httpGet\t<HTTPGetAction>", out)


def test_explain_knows_custom_resources(kubectl: Any, widgets: str) -> None:
    out = kubectl("explain", "widget.spec").out
    assert "GROUP:      example.com" in out
    assert "What it should be." in out
    assert re.search(r"colour\t<string> -required-\n\s+enum: red, blue\n\s+The paint\.", out)
    assert re.search(r"parts\t<\[\]Object>", kubectl("explain", "widget.spec", "--recursive").out)


@pytest.mark.parametrize(
    "path",
    ["node.status", "service.spec.ports", "pvc.spec", "event", "lease.spec", "endpointslice", "crd.spec.versions"],
)
def test_explain_knows_every_kind(kubectl: Any, path: str) -> None:
    assert "FIELDS:" in kubectl("explain", path).out
