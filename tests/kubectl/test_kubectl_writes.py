"""kubectl create, apply, diff, edit, patch, replace, scale, label, annotate, run and expose."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest


def config(name: str = "c", /, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"colour": "red", **spec},
    }  # fmt: skip


CREATED = {
    "configmap": (["configmap", "x", "--from-literal=a=1"], "configmap/x created\n"),
    "secret": (["secret", "generic", "x", "--from-literal=a=1"], "secret/x created\n"),
    "serviceaccount": (["serviceaccount", "x"], "serviceaccount/x created\n"),
    "service": (["service", "clusterip", "x", "--tcp=80:8080"], "service/x created\n"),
    "headless": (["service", "clusterip", "x", "--clusterip=None"], "service/x created\n"),
}


@pytest.mark.parametrize(("arguments", "printed"), CREATED.values(), ids=CREATED)
def test_create_makes_objects_from_arguments(kubectl: Any, arguments: list[str], printed: str) -> None:
    assert kubectl("create", *arguments).out == printed
    kind = arguments[0]
    assert kubectl("get", kind, "x", "-o", "name").out == f"{kind}/x\n"


def test_what_create_sends_as_protobuf_is_what_was_meant(kubectl: Any) -> None:
    kubectl("create", "service", "clusterip", "x", "--tcp=80:8080", "--tcp=81:web")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=ü")
    kubectl("create", "priorityclass", f"p-{kubectl.namespace}", "--value=-7", "--description=low")
    ports = kubectl.read("get", "svc", "x")["spec"]["ports"]
    assert [(p["port"], p["targetPort"]) for p in ports] == [(80, 8080), (81, "web")]
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data.a}").out == "w7w="
    made = kubectl.read("get", "pc", f"p-{kubectl.namespace}")
    assert (made["value"], made["description"], made["preemptionPolicy"]) == (-7, "low", "PreemptLowerPriority")


def test_create_again_prints_already_exists(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=config())
    refused = kubectl("create", "-f", "-", given=config(), ok=False)
    assert (
        refused.err == 'Error from server (AlreadyExists): error when creating "STDIN": configmaps "c" already exists\n'
    )


def test_create_with_a_wrong_field_is_refused_and_names_it(kubectl: Any) -> None:
    refused = kubectl("create", "-f", "-", given={**config(), "colour": "red"}, ok=False)
    assert refused.err == (
        'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a '
        'ConfigMap: strict decoding error: unknown field "colour"\n'
    )
    warned = kubectl("create", "--validate=warn", "-f", "-", given={**config(), "colour": "red"})
    assert warned.err == 'Warning: unknown field "colour"\n'


def test_create_of_an_invalid_pod_lists_every_mistake(kubectl: Any) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Bad_Name"}, "spec": {"containers": []}}
    refused = kubectl("create", "-f", "-", given=pod, ok=False).err
    assert refused.startswith('The Pod "Bad_Name" is invalid: \n')
    assert "* metadata.name: Invalid value: " in refused
    assert "* spec.containers: Required value" in refused


def test_dry_run_on_the_server_keeps_nothing(kubectl: Any) -> None:
    assert (
        kubectl("create", "-f", "-", "--dry-run=server", given=config()).out == "configmap/c created (server dry run)\n"
    )
    assert kubectl("get", "cm", "c", "--ignore-not-found").out == ""


def test_run_makes_a_pod(kubectl: Any) -> None:
    assert kubectl("run", "r", "--image=python", "--env=A=1", "--restart=Never", "--", "-V").out == "pod/r created\n"
    spec = kubectl.read("get", "pod", "r")["spec"]
    container = spec["containers"][0]
    assert (spec["restartPolicy"], container["args"], container["env"]) == (
        "Never",
        ["-V"],
        [{"name": "A", "value": "1"}],
    )


def test_expose_makes_a_service_for_a_pod(kubectl: Any, pod: Any) -> None:
    pod("web", labels={"app": "web"})
    assert kubectl("expose", "pod", "web", "--port=80", "--target-port=8000").out == "service/web exposed\n"
    assert kubectl.read("get", "svc", "web")["spec"]["selector"] == {"app": "web"}


@pytest.mark.parametrize("side", [[], ["--server-side"]], ids=["client side", "server side"])
def test_apply_creates_then_changes_then_leaves_alone(kubectl: Any, side: list[str]) -> None:
    suffix = " serverside-applied" if side else ""
    assert kubectl("apply", *side, "-f", "-", given=config(a="1", b="2")).out == f"configmap/c{suffix or ' created'}\n"
    assert kubectl("apply", *side, "-f", "-", given=config(a="9")).out == f"configmap/c{suffix or ' configured'}\n"
    version = kubectl.read("get", "cm", "c")["metadata"]["resourceVersion"]
    assert kubectl("apply", *side, "-f", "-", given=config(a="9")).out == f"configmap/c{suffix or ' unchanged'}\n"
    after = kubectl.read("get", "cm", "c")
    assert (after["data"], after["metadata"]["resourceVersion"]) == ({"a": "9"}, version)


@pytest.mark.parametrize("side", [[], ["--server-side"]], ids=["client side", "server side"])
def test_apply_merges_lists_by_their_keys(kubectl: Any, side: list[str]) -> None:
    def service(*ports: int) -> dict[str, Any]:
        listed = [{"name": f"p{port}", "port": port} for port in ports]
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": listed}}

    kubectl("apply", *side, "-f", "-", given=service(80, 81))
    kubectl("patch", "svc", "s", "-p", '{"spec":{"ports":[{"name":"other","port":99}]}}')
    kubectl("apply", *side, "-f", "-", given=service(80, 82))
    ports = {p["port"]: p["targetPort"] for p in kubectl.read("get", "svc", "s")["spec"]["ports"]}
    assert ports == {80: 80, 82: 82, 99: 99}


def test_apply_works_on_custom_resources(kubectl: Any, widgets: str) -> None:
    assert kubectl("apply", "-f", "-", given=widget()).out == "widget.example.com/w created\n"
    assert kubectl("apply", "-f", "-", given=widget(replicas=3)).out == "widget.example.com/w configured\n"
    assert kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=widget(replicas=4)).out == (
        "widget.example.com/w serverside-applied\n"
    )
    assert kubectl.read("get", widgets, "w")["spec"] == {"colour": "red", "replicas": 4}
    refused = kubectl("apply", "-f", "-", given=widget(colour="green"), ok=False).err
    assert 'spec.colour: Unsupported value: "green": supported values: "red", "blue"' in refused


def test_server_side_apply_names_the_manager_it_conflicts_with(kubectl: Any) -> None:
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", given=config(a="1"))
    refused = kubectl("apply", "--server-side", "--field-manager=two", "-f", "-", given=config(a="2"), ok=False)
    assert 'Apply failed with 1 conflict: conflict with "one": .data.a' in refused.err
    kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", given=config(a="2"))
    shown = kubectl("get", "cm", "c", "--show-managed-fields", "-o", "json").out
    assert [(m["manager"], m["operation"]) for m in json.loads(shown)["metadata"]["managedFields"]] == [
        ("two", "Apply")
    ]


def test_diff_shows_what_apply_would_do(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=config(a="1"))
    assert kubectl("diff", "-f", "-", given=config(a="1")).out == ""
    changed = kubectl("diff", "-f", "-", given=config(a="2"), ok=False)
    assert changed.code == 1
    assert re.search(r'^-  a: "1"\n\+  a: "2"$', changed.out, re.MULTILINE)
    served = kubectl("diff", "--server-side", "--force-conflicts", "-f", "-", given=config(a="3"), ok=False)
    assert re.search(r'^\+  a: "3"$', served.out, re.MULTILINE)


def editor(folder: Path, command: str) -> str:
    script = folder / "editor"
    script.write_text(f"#!/bin/sh\nsed -i '{command}' \"$1\"\n")
    script.chmod(0o755)
    return str(script)


def test_edit_writes_what_the_editor_left(kubectl: Any, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", given=config(a="1"))
    assert kubectl("edit", "cm", "c", KUBE_EDITOR=editor(tmp_path, 's/a: "1"/a: "2"/')).out == "configmap/c edited\n"
    assert kubectl.read("get", "cm", "c")["data"] == {"a": "2"}


def test_edit_without_a_change_writes_nothing(kubectl: Any, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", given=config(a="1"))
    assert kubectl("edit", "cm", "c", KUBE_EDITOR=editor(tmp_path, "")).err == "Edit cancelled, no changes made.\n"


PATCHES = {
    "strategic": ("strategic", '{"spec":{"ports":[{"port":81,"name":"b"}]}}', [("a", 80), ("b", 81)]),
    "merge": ("merge", '{"spec":{"ports":[{"port":81,"name":"b"}]}}', [("b", 81)]),
    "json": ("json", '[{"op":"replace","path":"/spec/ports/0/port","value":81}]', [("a", 81)]),
}


@pytest.mark.parametrize(("kind", "patch", "ports"), PATCHES.values(), ids=PATCHES)
def test_patch_of_each_type(kubectl: Any, kind: str, patch: str, ports: list[tuple[str, int]]) -> None:
    spec = {"ports": [{"name": "a", "port": 80}]}
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})
    assert kubectl("patch", "svc", "s", f"--type={kind}", "-p", patch).out == "service/s patched\n"
    found = [(p["name"], p["port"]) for p in kubectl.read("get", "svc", "s")["spec"]["ports"]]
    assert sorted(found) == ports


def test_patch_without_a_change_prints_no_change(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=config(a="1"))
    assert kubectl("patch", "cm", "c", "-p", '{"data":{"a":"1"}}').out == "configmap/c patched (no change)\n"


def test_patch_of_the_status_leaves_the_spec(kubectl: Any, widgets: str) -> None:
    kubectl("create", "-f", "-", given=widget())
    patch = '{"spec":{"colour":"blue"},"status":{"replicas":2}}'
    kubectl("patch", widgets, "w", "--subresource=status", "--type=merge", "-p", patch)
    found = kubectl.read("get", widgets, "w")
    assert (found["spec"]["colour"], found["status"]) == ("red", {"replicas": 2})


def test_a_strategic_patch_of_a_custom_resource_is_refused(kubectl: Any, widgets: str) -> None:
    kubectl("create", "-f", "-", given=widget())
    refused = kubectl("patch", widgets, "w", "-p", "{}", ok=False).err
    assert "application/strategic-merge-patch+json is not supported by example.com/v1, Kind=Widget" in refused


def test_replace_puts_another_object_in_its_place(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=config(a="1", b="2"))
    assert kubectl("replace", "-f", "-", given=config(z="9")).out == "configmap/c replaced\n"
    assert kubectl.read("get", "cm", "c")["data"] == {"z": "9"}
    uid = kubectl.read("get", "cm", "c")["metadata"]["uid"]
    out = kubectl("replace", "--force", "-f", "-", given=config(y="8")).out
    assert out.splitlines()[-1] == "configmap/c replaced"
    assert kubectl.read("get", "cm", "c")["metadata"]["uid"] != uid


def test_scale_of_a_custom_resource(kubectl: Any, widgets: str) -> None:
    kubectl("create", "-f", "-", given=widget(replicas=2))
    assert kubectl("scale", f"{widgets}/w", "--replicas=5").out == "widget.example.com/w scaled\n"
    assert kubectl.read("get", widgets, "w")["spec"]["replicas"] == 5
    assert (
        "Expected replicas to be 3, was 5"
        in kubectl("scale", f"{widgets}/w", "--current-replicas=3", "--replicas=1", ok=False).err
    )
    assert kubectl.read("get", widgets, "w", "--subresource=scale")["spec"] == {"replicas": 5}


def test_label_adds_overwrites_and_removes(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=config())
    assert kubectl("label", "cm", "c", "a=1", "b=2").out == "configmap/c labeled\n"
    assert "already has a value" in kubectl("label", "cm", "c", "a=9", ok=False).err
    kubectl("label", "cm", "c", "a=9", "--overwrite")
    assert kubectl("label", "cm", "c", "b-").out == "configmap/c unlabeled\n"
    assert kubectl.read("get", "cm", "c")["metadata"]["labels"] == {"a": "9"}
    assert "a valid label must be" in kubectl("label", "cm", "c", "x=-bad-", ok=False).err


def test_annotate_adds_and_removes(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=config())
    assert kubectl("annotate", "cm", "c", "note=hello world").out == "configmap/c annotated\n"
    assert kubectl.read("get", "cm", "c")["metadata"]["annotations"] == {"note": "hello world"}
    kubectl("annotate", "cm", "c", "note-")
    assert "annotations" not in kubectl.read("get", "cm", "c")["metadata"]


def test_cordon_and_taint_a_node(kubectl: Any) -> None:
    node = f"n-{kubectl.namespace}"
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    assert kubectl("cordon", node).out == f"node/{node} cordoned\n"
    assert kubectl("taint", "node", node, "gpu=yes:NoSchedule").out == f"node/{node} tainted\n"
    assert kubectl("get", "node", node, "--no-headers").rows[0][1] == "Unknown,SchedulingDisabled"
    taints = kubectl.read("get", "node", node)["spec"]["taints"]
    assert {"key": "gpu", "value": "yes", "effect": "NoSchedule"} in taints
    assert kubectl("uncordon", node).out == f"node/{node} uncordoned\n"
    kubectl("delete", "node", node)


def test_a_kind_that_is_not_served_is_named(kubectl: Any) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "d"}, "spec": spec}
    refused = kubectl("apply", "-f", "-", given=stateful, ok=False)
    assert 'no matches for kind "StatefulSet" in version "apps/v1"' in refused.err
