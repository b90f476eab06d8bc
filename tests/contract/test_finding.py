"""What a client finds before it asks: discovery, OpenAPI, version, health; wrong paths and methods; tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kit.api_objects import failure
from kit.raw_api import Api, Obj, Space

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def test_the_core_group_has_one_version(server: Api) -> None:
    found = server.get("/api").ok()
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])


def resources(server: Api, path: str) -> dict[str, Obj]:
    listed = server.get(path).ok()
    assert listed["kind"] == "APIResourceList"
    # The hash is a digest that means something only to its server.
    return {each["name"]: {k: v for k, v in each.items() if k != "storageVersionHash"} for each in listed["resources"]}


RESOURCES: dict[str, Obj] = {
    "pods": {"singularName": "pod", "namespaced": True, "kind": "Pod", "shortNames": ["po"], "categories": ["all"]},
    "services": {
        "singularName": "service",
        "namespaced": True,
        "kind": "Service",
        "shortNames": ["svc"],
        "categories": ["all"],
    },
    "configmaps": {"singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "shortNames": ["cm"]},
    "secrets": {"singularName": "secret", "namespaced": True, "kind": "Secret"},
    "nodes": {"singularName": "node", "namespaced": False, "kind": "Node", "shortNames": ["no"]},
    "endpoints": {"singularName": "endpoints", "namespaced": True, "kind": "Endpoints", "shortNames": ["ep"]},
    "events": {"singularName": "event", "namespaced": True, "kind": "Event", "shortNames": ["ev"]},
    "serviceaccounts": {
        "singularName": "serviceaccount",
        "namespaced": True,
        "kind": "ServiceAccount",
        "shortNames": ["sa"],
    },
    "persistentvolumes": {
        "singularName": "persistentvolume",
        "namespaced": False,
        "kind": "PersistentVolume",
        "shortNames": ["pv"],
    },
    "persistentvolumeclaims": {
        "singularName": "persistentvolumeclaim",
        "namespaced": True,
        "kind": "PersistentVolumeClaim",
        "shortNames": ["pvc"],
    },
}


@pytest.mark.parametrize("name", RESOURCES)
def test_a_core_resource_is_described(server: Api, name: str) -> None:
    assert resources(server, "/api/v1")[name] == {"name": name, "verbs": VERBS} | RESOURCES[name]


SUBRESOURCES: dict[str, Obj] = {
    "pods/status": {"namespaced": True, "kind": "Pod", "verbs": ["get", "patch", "update"]},
    "pods/log": {"namespaced": True, "kind": "Pod", "verbs": ["get"]},
    "pods/binding": {"namespaced": True, "kind": "Binding", "verbs": ["create"]},
    "pods/eviction": {"namespaced": True, "kind": "Eviction", "group": "policy", "version": "v1", "verbs": ["create"]},
    "pods/exec": {"namespaced": True, "kind": "PodExecOptions", "verbs": ["create", "get"]},
    "nodes/status": {"namespaced": False, "kind": "Node", "verbs": ["get", "patch", "update"]},
    "namespaces/status": {"namespaced": False, "kind": "Namespace", "verbs": ["get", "patch", "update"]},
    "namespaces/finalize": {"namespaced": False, "kind": "Namespace", "verbs": ["update"]},
}


@pytest.mark.parametrize("name", SUBRESOURCES)
def test_a_subresource_is_described(server: Api, name: str) -> None:
    assert resources(server, "/api/v1")[name] == {"name": name, "singularName": ""} | SUBRESOURCES[name]


def test_namespaces_cannot_be_deleted_as_a_collection(server: Api) -> None:
    assert server.delete("/api/v1/namespaces", labelSelector="none=none").status == 405
    verbs = resources(server, "/api/v1")["namespaces"]["verbs"]
    assert verbs == [verb for verb in VERBS if verb != "deletecollection"]


GROUPS = ["apiextensions.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "scheduling.k8s.io"]


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_is_listed_and_described(server: Api, name: str) -> None:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    expected = {"name": name, "versions": [version], "preferredVersion": version}
    listed = {each["name"]: each for each in server.get("/apis").ok()["groups"]}
    assert listed[name] == expected
    assert server.get(f"/apis/{name}").ok() == expected | {"kind": "APIGroup", "apiVersion": "v1"}


def test_the_resources_of_a_group_are_described(server: Api) -> None:
    assert resources(server, "/apis/coordination.k8s.io/v1")["leases"] == {
        "name": "leases",
        "singularName": "lease",
        "namespaced": True,
        "kind": "Lease",
        "verbs": VERBS,
    }


def test_all_groups_are_described_at_once(server: Api) -> None:
    answer = server.get("/apis", accept=AGGREGATED)
    found = answer.ok()
    assert (answer.content_type, found["kind"], found["apiVersion"]) == (
        AGGREGATED,
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )
    (group,) = [each for each in found["items"] if each["metadata"]["name"] == "discovery.k8s.io"]
    resource = {
        "resource": "endpointslices",
        "responseKind": {"group": "", "version": "", "kind": "EndpointSlice"},
        "scope": "Namespaced",
        "singularResource": "endpointslice",
        "verbs": VERBS,
    }
    assert group == {
        "metadata": {"name": "discovery.k8s.io"},
        "versions": [{"version": "v1", "resources": [resource], "freshness": "Current"}],
    }


def test_the_core_group_is_described_at_once(server: Api) -> None:
    answer = server.get("/api", accept=f"{AGGREGATED},application/json")
    (core,) = answer.ok()["items"]
    (version,) = core["versions"]
    pods = next(each for each in version["resources"] if each["resource"] == "pods")
    subresources = {each["subresource"]: each for each in pods.pop("subresources")}
    assert (answer.content_type, version["version"]) == (AGGREGATED, "v1")
    assert pods == {
        "resource": "pods",
        "responseKind": {"group": "", "version": "", "kind": "Pod"},
        "scope": "Namespaced",
        "singularResource": "pod",
        "verbs": VERBS,
        "shortNames": ["po"],
        "categories": ["all"],
    }
    assert subresources["status"] == {
        "subresource": "status",
        "responseKind": {"group": "", "version": "", "kind": "Pod"},
        "verbs": ["get", "patch", "update"],
    }


def test_the_version_is_served(server: Api) -> None:
    found = server.get("/version").ok()
    assert re.fullmatch(r"v\d+\.\d+\.\d+.*", found["gitVersion"])
    assert {"major", "minor", "gitVersion", "gitCommit", "buildDate", "goVersion", "platform"} <= set(found)


def test_the_index_of_schemas_leads_to_each_group(server: Api) -> None:
    paths = server.get("/openapi/v3").ok()["paths"]
    assert {"api/v1", "apis/coordination.k8s.io/v1"} <= set(paths)
    url = paths["api/v1"]["serverRelativeURL"]
    assert re.fullmatch(r"/openapi/v3/api/v1\?hash=[0-9A-Fa-f]+", url)
    assert server.get(url).ok()["openapi"].startswith("3.0")


def schema(server: Api, name: str) -> Obj:
    found: Obj = server.get("/openapi/v3/api/v1").ok()["components"]["schemas"][name]
    return found


def test_a_schema_names_its_kind(server: Api) -> None:
    found = schema(server, "io.k8s.api.core.v1.Pod")
    assert found["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert {"apiVersion", "kind", "metadata", "spec", "status"} <= set(found["properties"])


def test_a_schema_declares_how_lists_merge(server: Api) -> None:
    containers = schema(server, "io.k8s.api.core.v1.PodSpec")["properties"]["containers"]
    marks = {key: value for key, value in containers.items() if key.startswith("x-kubernetes-") or key == "type"}
    assert marks == {
        "type": "array",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }


def test_a_schema_declares_required_fields(server: Api) -> None:
    assert schema(server, "io.k8s.api.core.v1.PodSpec")["required"] == ["containers"]
    assert schema(server, "io.k8s.api.core.v1.Container")["required"] == ["name"]


NOWHERE = ["/api/v1/bogus", "/api/v2", "/api/v1/namespaces/default/nodes"]


@pytest.mark.parametrize("path", NOWHERE)
def test_a_path_inside_a_group_that_is_not_there(server: Api, path: str) -> None:
    refused = server.get(path).failure()
    assert refused == failure(404, "NotFound", "the server could not find the requested resource", about={})


@pytest.mark.parametrize("path", ["/bogus", "/apis/none.example.com/v1", "/apis/none.example.com/v1/things"])
def test_a_path_that_is_not_there(server: Api, path: str) -> None:
    assert server.get(path).status == 404


WRONG_METHODS = [("PUT", "/api/v1/pods"), ("PATCH", "configmaps"), ("PUT", "configmaps"), ("POST", "/version")]


@pytest.mark.parametrize(("method", "path"), WRONG_METHODS, ids=[" ".join(each) for each in WRONG_METHODS])
def test_a_method_that_is_not_allowed(space: Space, method: str, path: str) -> None:
    full = path if path.startswith("/") else space.path(path)
    refused = space.api.call(method, full, {}).failure()
    message = "the server does not allow this method on the requested resource"
    assert refused == failure(405, "MethodNotAllowed", message, about={})


UNAUTHORIZED = failure(401, "Unauthorized", "Unauthorized")
STRANGERS: dict[str, dict[str, Any]] = {
    "nobody": {"Authorization": None},
    "a wrong token": {"Authorization": "Bearer wrong"},
    "another scheme": {"Authorization": "Basic YTpi"},
}


@pytest.mark.parametrize("headers", STRANGERS.values(), ids=STRANGERS.keys())
@pytest.mark.parametrize("path", ["/api/v1/pods", "/api", "/openapi/v3", "/bogus"])
def test_unauthenticated_users_may_read_nothing(server: Api, headers: dict[str, Any], path: str) -> None:
    assert server.get(path, headers=headers).failure() == UNAUTHORIZED


def test_unauthenticated_users_may_change_nothing(space: Space) -> None:
    refused = space.delete("configmaps", headers={"Authorization": "Bearer wrong"}).failure()
    assert refused == UNAUTHORIZED


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_is_served_to_unauthenticated_users(server: Api, path: str) -> None:
    answer = server.get(path, headers={"Authorization": None})
    assert (answer.status, answer.body) == (200, b"ok")


def test_the_version_is_served_to_unauthenticated_users(server: Api) -> None:
    assert server.get("/version", headers={"Authorization": None}).ok()["gitVersion"]


def test_the_token_may_do_everything(space: Space) -> None:
    asked = {"verb": "create", "resource": "pods", "namespace": space.name}
    body = {"spec": {"resourceAttributes": asked}}
    answer = space.api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert (answer.status, answer.json["spec"], answer.json["status"]["allowed"]) == (201, body["spec"], True)


def test_the_token_has_a_user_name(server: Api) -> None:
    answer = server.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert (answer.status, answer.json["kind"]) == (201, "SelfSubjectReview")
    assert answer.json["status"]["userInfo"]["username"]
    assert "system:authenticated" in answer.json["status"]["userInfo"]["groups"]
