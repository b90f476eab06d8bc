"""Discovery and OpenAPI: what clients ask before anything else."""

from __future__ import annotations

from typing import Any

import pytest

from kit.asgi_client import Asgi

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(*versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    listed = [{"name": v, "served": True, "storage": v == versions[0], "schema": schema} for v in versions]
    names = {"plural": "toys", "kind": "Toy", "shortNames": ["ty"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": listed}
    return {"metadata": {"name": "toys.example.com"}, "spec": spec}


async def test_the_core_group_lists_its_resources_and_their_parts(http: Asgi) -> None:
    found = (await http("GET", "/api/v1")).json
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "v1")
    by_name = {resource["name"]: resource for resource in found["resources"]}
    assert by_name["pods"] == {
        "name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "shortNames": ["po"],
        "categories": ["all"],
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }  # fmt: skip
    assert by_name["pods/eviction"] == {
        "name": "pods/eviction", "singularName": "", "namespaced": True, "group": "policy", "version": "v1",
        "kind": "Eviction", "verbs": ["create"],
    }  # fmt: skip
    assert by_name["namespaces/finalize"]["verbs"] == ["update"]


async def test_groups_prefer_their_most_stable_version(http: Asgi) -> None:
    await http("POST", CRDS, definition("v1alpha1", "v1", "v1beta2", "v2"))
    found = (await http("GET", "/apis/example.com")).json
    assert [version["version"] for version in found["versions"]] == ["v2", "v1", "v1beta2", "v1alpha1"]
    assert found["preferredVersion"] == {"groupVersion": "example.com/v2", "version": "v2"}
    listed = (await http("GET", "/apis")).json["groups"]
    assert {key: found[key] for key in ("name", "versions", "preferredVersion")} in listed


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_aggregated_discovery_lists_every_group(http: Asgi, path: str) -> None:
    answer = await http("GET", path, headers={"accept": AGGREGATED + ",application/json"})
    assert answer.header("content-type") == AGGREGATED
    found = answer.json
    assert (found["kind"], found["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    names = [item["metadata"].get("name", "") for item in found["items"]]
    assert ("" in names) == (path == "/api")
    if path == "/api":
        resources = {r["resource"]: r for r in found["items"][0]["versions"][0]["resources"]}
        assert resources["nodes"] == {
            "resource": "nodes", "responseKind": {"group": "", "version": "", "kind": "Node"}, "scope": "Cluster",
            "singularResource": "node", "shortNames": ["no"],
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "subresources": [{
                "subresource": "status", "verbs": ["get", "patch", "update"],
                "responseKind": {"group": "", "version": "", "kind": "Node"},
            }],
        }  # fmt: skip


async def test_a_new_kind_is_discovered_at_once_and_removed_with_its_crd(http: Asgi) -> None:
    before = await http("GET", "/apis", headers={"accept": AGGREGATED})
    same = await http("GET", "/apis", headers={"accept": AGGREGATED, "if-none-match": before.header("etag") or ""})
    assert (same.status, same.body) == (304, b"")
    await http("POST", CRDS, definition("v1"))
    after = await http("GET", "/apis", headers={"accept": AGGREGATED, "if-none-match": before.header("etag") or ""})
    assert "example.com" in {item["metadata"]["name"] for item in after.json["items"]}
    await http("DELETE", f"{CRDS}/toys.example.com")
    assert (await http("GET", "/apis", headers={"accept": AGGREGATED})).json == before.json


async def test_openapi_documents_are_found_through_the_index_and_change_with_their_kinds(http: Asgi) -> None:
    await http("POST", CRDS, definition("v1"))
    index = (await http("GET", "/openapi/v3")).json["paths"]
    assert {"api/v1", "apis/coordination.k8s.io/v1", "apis/example.com/v1"} <= set(index)
    document = (await http("GET", "/openapi/v3/apis/example.com/v1")).json
    assert document["openapi"].startswith("3.")
    assert "/apis/example.com/v1/namespaces/{namespace}/toys" in document["paths"]
    changed = (await http("GET", f"{CRDS}/toys.example.com")).json
    schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] = {"size": {"type": "integer"}}
    assert (await http("PUT", f"{CRDS}/toys.example.com", changed)).status == 200
    again = (await http("GET", "/openapi/v3")).json["paths"]
    assert again["apis/example.com/v1"] != index["apis/example.com/v1"]
    assert again["api/v1"] == index["api/v1"]


@pytest.mark.parametrize(
    "path", ["/openapi/v3/apis/nowhere/v1", "/openapi/v3/api/v7", "/apis/nowhere", "/api/v7", "/healthz/x"]
)
async def test_unserved_groups_and_versions_are_not_found(http: Asgi, path: str) -> None:
    assert (await http("GET", path)).status == 404


async def test_the_root_lists_the_paths(http: Asgi) -> None:
    assert {"/api/v1", "/apis/metrics.k8s.io/v1beta1", "/version"} <= set((await http("GET", "/")).json["paths"])
