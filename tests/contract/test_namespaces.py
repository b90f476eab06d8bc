"""Namespaces: how they begin, what ends with them, and which cannot end."""

from __future__ import annotations

import pytest

from kit.api_objects import cause, config_map, failure, invalid, settled
from kit.raw_api import Api, Obj, Space


def test_a_new_namespace_is_active_and_labelled_with_its_name(server: Api, unique_name: str) -> None:
    made = server.post("/api/v1/namespaces", {"metadata": {"name": unique_name}}).ok()
    assert settled(made) == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": unique_name, "labels": {"kubernetes.io/metadata.name": unique_name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_the_usual_namespaces_are_there_from_the_start(server: Api, name: str) -> None:
    assert server.get(f"/api/v1/namespaces/{name}").ok()["status"] == {"phase": "Active"}


LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
BAD_NAMES = {
    "dots": ("a.b", "must not contain dots"),
    "upper case": ("Ab", LABEL),
}


@pytest.mark.parametrize(("name", "why"), BAD_NAMES.values(), ids=BAD_NAMES.keys())
def test_the_name_of_a_namespace_is_a_dns_label(server: Api, name: str, why: str) -> None:
    refused = server.post("/api/v1/namespaces", {"metadata": {"name": name}}).failure()
    assert refused == invalid("Namespace", name, cause("metadata.name", f'Invalid value: "{name}": {why}'))


def test_a_namespace_under_deletion_takes_nothing_new(space: Space, server: Api) -> None:
    space.post("configmaps", config_map("held", finalizers=["example.com/hold"])).ok()
    ending = server.delete(f"/api/v1/namespaces/{space.name}").ok()
    assert (ending["kind"], ending["status"]["phase"]) == ("Namespace", "Terminating")
    refused = space.post("configmaps", config_map("late")).failure()
    message = (
        f'configmaps "late" is forbidden: unable to create new content in namespace {space.name} '
        "because it is being terminated"
    )
    why = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {space.name} is being terminated",
        "field": "metadata.namespace",
    }
    assert refused == failure(403, "Forbidden", message, about={"name": "late", "kind": "configmaps"}, causes=[why])


def test_a_namespace_ends_with_all_that_is_in_it_and_not_before(space: Space, server: Api) -> None:
    held = space.post("configmaps", config_map("held", finalizers=["example.com/hold"])).ok()
    space.post("secrets", {"metadata": {"name": "s"}}).ok()
    server.delete(f"/api/v1/namespaces/{space.name}").ok()
    with space.watch("configmaps", resourceVersion=held["metadata"]["resourceVersion"]) as watch:
        watch.until(lambda event: "deletionTimestamp" in event["object"]["metadata"])
    assert server.get(f"/api/v1/namespaces/{space.name}").ok()["status"]["phase"] == "Terminating"
    version = server.get("/api/v1/namespaces").ok()["metadata"]["resourceVersion"]
    space.patch("configmaps/held", {"metadata": {"finalizers": None}}).ok()
    mine = f"metadata.name={space.name}"
    with server.watch("/api/v1/namespaces", fieldSelector=mine, resourceVersion=version) as watch:
        watch.until(lambda event: event["type"] == "DELETED")
    assert space.get("secrets").ok()["items"] == []


def test_the_default_namespace_stays(server: Api) -> None:
    refused = server.delete("/api/v1/namespaces/default").failure()
    message = 'namespaces "default" is forbidden: this namespace may not be deleted'
    assert refused == failure(403, "Forbidden", message, about={"name": "default", "kind": "namespaces"})


def test_a_namespace_is_labelled_like_any_object(space: Space, server: Api) -> None:
    patch: Obj = {"metadata": {"labels": {"x": "1"}}}
    changed = server.patch(f"/api/v1/namespaces/{space.name}", patch).ok()
    assert changed["metadata"]["labels"] == {"kubernetes.io/metadata.name": space.name, "x": "1"}


def test_finalizers_of_a_namespace_are_written_through_their_own_path(space: Space, server: Api) -> None:
    path = f"/api/v1/namespaces/{space.name}"
    read = server.get(path).ok()
    wanted = {"spec": {"finalizers": ["kubernetes", "example.com/own"]}}
    unchanged = server.put(path, read | wanted).ok()
    assert unchanged["spec"] == {"finalizers": ["kubernetes"]}
    assert server.put(f"{path}/finalize", unchanged | wanted).ok()["spec"] == wanted["spec"]
