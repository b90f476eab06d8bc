"""The documents hold what kubectl and generated clients look for in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis

from kit.crd_builders import TEXT, definition, fields, version
from shoal.kube.kinds import BUILT_IN, NAMESPACE, POD, Kind
from shoal.kube.openapi import document, v2
from shoal.kube.structural_schema import kinds_of

SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
(WIDGET,) = kinds_of(
    definition(
        version(
            {**fields(spec={**fields(size={**TEXT, "description": "How many."}), "description": "What is wanted."})},
            subresources={"status": {}, "scale": SCALE},
        )
    )
)
KINDS = (*BUILT_IN, WIDGET)
GROUPS = sorted({(kind.group, kind.version) for kind in KINDS})


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every object within a document."""
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from parts(child)
    elif isinstance(value, list):
        for child in value:
            yield from parts(child)


def gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def collection(kind: Kind) -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def component(found: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The component of a kind, looked up the way kubectl does."""
    marks = "x-kubernetes-group-version-kind"
    (described,) = [c for c in found["components"]["schemas"].values() if gvk(kind) in c.get(marks, ())]
    return described


def explained(kind: Kind, *path: str) -> dict[str, Any]:
    """Follow fields through references and lists, as `kubectl explain` does."""
    found = document(KINDS, kind.group, kind.version)
    here = component(found, kind)
    for step in path:
        here = resolved(found, here)["properties"][step]
    return {**resolved(found, here), **{k: v for k, v in here.items() if k == "description"}}


def resolved(found: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    while "properties" not in place and any(
        step in place for step in ("$ref", "allOf", "items", "additionalProperties")
    ):
        if "$ref" in place:
            place = found["components"]["schemas"][place["$ref"].rpartition("/")[2]]
        else:
            place = place["allOf"][0] if "allOf" in place else place.get("items") or place["additionalProperties"]
    return place


@pytest.mark.parametrize(("group", "version_"), GROUPS, ids=[group or "core" for group, _ in GROUPS])
def test_every_reference_leads_somewhere(group: str, version_: str) -> None:
    found = document(KINDS, group, version_)
    names = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    assert {p["$ref"] for p in parts(found) if isinstance(p.get("$ref"), str)} <= names


@pytest.mark.parametrize(("group", "version_"), GROUPS, ids=[group or "core" for group, _ in GROUPS])
def test_a_document_is_valid_openapi(group: str, version_: str) -> None:
    schema = schemathesis.openapi.from_dict(document(KINDS, group, version_))
    schema.validate()
    assert [operation.ok().path for operation in schema.get_all_operations()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_kind_is_found_by_its_path_and_by_its_component(kind: Kind) -> None:
    found = document(KINDS, kind.group, kind.version)
    listing = found["paths"][collection(kind)]["get"]
    assert listing["x-kubernetes-group-version-kind"] == gvk(kind)
    assert {"apiVersion", "kind", "metadata"} <= set(component(found, kind)["properties"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_patch_lists_its_media_types(kind: Kind) -> None:
    patch = document(KINDS, kind.group, kind.version)["paths"][f"{collection(kind)}/{{name}}"]["patch"]
    taken = {"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
    strategic = set() if kind.custom else {"application/strategic-merge-patch+json"}
    assert set(patch["requestBody"]["content"]) == taken | strategic
    assert [p["name"] for p in patch["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]


def test_operations_have_names_of_their_own() -> None:
    found = [document(KINDS, *group) for group in GROUPS]
    names = [p["operationId"] for p in parts([d["paths"] for d in found]) if "operationId" in p]
    assert len(set(names)) == len(names)
    assert {"listCoreV1NamespacedPod", "listCoreV1PodForAllNamespaces", "readCoreV1NamespacedPodLog"} < set(names)


def test_paths_of_a_kind() -> None:
    paths = document((POD,), "", "v1")["paths"]
    base = "/api/v1/namespaces/{namespace}/pods"
    assert {path: sorted(set(item) - {"parameters"}) for path, item in paths.items()} == {
        "/api/v1/pods": ["get"],
        base: ["delete", "get", "post"],
        f"{base}/{{name}}": ["delete", "get", "patch", "put"],
        f"{base}/{{name}}/binding": ["post"],
        f"{base}/{{name}}/eviction": ["post"],
        f"{base}/{{name}}/exec": ["get", "post"],
        f"{base}/{{name}}/portforward": ["get", "post"],
        f"{base}/{{name}}/log": ["get"],
        f"{base}/{{name}}/status": ["get", "patch", "put"],
    }


def test_namespaces_are_not_deleted_all_at_once() -> None:
    assert sorted(set(document((NAMESPACE,), "", "v1")["paths"]["/api/v1/namespaces"]) - {"parameters"}) == [
        "get",
        "post",
    ]


EXPLAINED: list[tuple[tuple[Any, ...], str]] = [
    ((POD,), "A group of containers that run together on one node and share addresses and volumes."),
    ((POD, "spec", "containers"), "The containers. At least one; their names cannot be changed."),
    (
        (POD, "spec", "containers", "env", "valueFrom", "fieldRef"),
        "A field of the pod, such as metadata.name or status.podIP.",
    ),
    ((POD, "metadata", "ownerReferences", "uid"), "UID of the owner."),
    ((WIDGET, "spec"), "What is wanted."),
    ((WIDGET, "spec", "size"), "How many."),
    ((WIDGET, "metadata", "name"), "Name, unique within the kind and namespace. Cannot be changed."),
]


@pytest.mark.parametrize(("where", "description"), EXPLAINED, ids=[".".join([str(w[0]), *w[1:]]) for w, _ in EXPLAINED])
def test_fields_are_explained_at_every_level(where: tuple[Any, ...], description: str) -> None:
    assert explained(*where)["description"] == description


def test_lists_and_choices_are_described_for_merging_and_choosing() -> None:
    containers = component(document(KINDS, "", "v1"), POD)
    found = document(KINDS, "", "v1")["components"]["schemas"]
    spec = found["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert containers["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    assert spec["volumes"] == {
        "description": "The volumes its containers can mount.",
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Volume"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-strategy": "merge,retainKeys",
        "x-kubernetes-patch-merge-key": "name",
    }
    assert spec["restartPolicy"]["enum"] == ["Always", "Never", "OnFailure"]
    assert found["io.k8s.apimachinery.pkg.api.resource.Quantity"]["oneOf"] == [{"type": "string"}, {"type": "number"}]


def test_scale_is_described_as_the_kind_it_is() -> None:
    paths = document((WIDGET,), "example.com", "v1")["paths"]
    patch = paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/scale"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "autoscaling", "kind": "Scale", "version": "v1"}


def test_openapi_v2_has_the_same_kinds_and_no_v3_keywords() -> None:
    found = v2(KINDS)
    marks = "x-kubernetes-group-version-kind"
    described = [mark for d in found["definitions"].values() for mark in d.get(marks, ())]
    assert [kind for kind in KINDS if gvk(kind) not in described] == []
    names = {f"#/definitions/{name}" for name in found["definitions"]}
    references = {p["$ref"] for p in parts(found) if isinstance(p.get("$ref"), str)}
    assert references <= names
    put = found["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["put"]
    assert put["parameters"][-1] == {
        "name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"},
    }  # fmt: skip
