"""Getting and listing: shapes, scopes, and what is not there."""

from __future__ import annotations

from kit.api_objects import config_map, failure, names, not_found, pod
from kit.raw_api import Api, Space


def test_a_missing_object_is_named(space: Space) -> None:
    assert space.get("configmaps/none").failure() == not_found("configmaps", "none")


def test_a_missing_object_of_a_group_is_named_with_its_group(space: Space) -> None:
    refused = space.get("leases/none", group="coordination.k8s.io/v1").failure()
    assert refused == not_found("leases", "none", "coordination.k8s.io")


def test_reading_in_a_missing_namespace_finds_no_object(server: Api, unique_name: str) -> None:
    refused = server.get(f"/api/v1/namespaces/{unique_name}/configmaps/a").failure()
    assert refused == not_found("configmaps", "a")


def test_listing_a_missing_namespace_is_an_empty_list(server: Api, unique_name: str) -> None:
    assert server.get(f"/api/v1/namespaces/{unique_name}/configmaps").ok()["items"] == []


def test_an_empty_list_has_a_kind_a_version_and_no_items(space: Space) -> None:
    listed = space.get("configmaps").ok()
    version = listed["metadata"].pop("resourceVersion")
    assert int(version) > 0
    assert listed == {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []}


def test_items_of_a_built_in_list_do_not_repeat_kind_and_version(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"k": "v"})).ok()
    del made["kind"], made["apiVersion"]
    assert space.get("configmaps").ok()["items"] == [made]


def test_lists_are_in_order_of_names(space: Space) -> None:
    for name in ("b", "c", "a", "a.b", "a-b"):
        space.post("configmaps", config_map(name)).ok()
    assert names(space.get("configmaps").ok()) == ["a", "a-b", "a.b", "b", "c"]


def test_a_list_without_a_namespace_spans_all_of_them(space: Space, server: Api, unique_name: str) -> None:
    server.post("/api/v1/namespaces", {"metadata": {"name": unique_name}}).ok()
    space.post("configmaps", config_map(unique_name)).ok()
    server.post(f"/api/v1/namespaces/{unique_name}/configmaps", config_map(unique_name)).ok()
    listed = server.get("/api/v1/configmaps", fieldSelector=f"metadata.name={unique_name}").ok()
    assert sorted(item["metadata"]["namespace"] for item in listed["items"]) == sorted([space.name, unique_name])


def test_a_namespaced_object_cannot_be_made_without_a_namespace(server: Api) -> None:
    refused = server.post("/api/v1/configmaps", config_map("a"))
    assert refused.status == 405


def test_the_version_of_a_list_is_at_least_that_of_its_items(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    listed = space.get("configmaps").ok()
    assert int(listed["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])


def test_get_at_a_version_not_older_than_asked_gives_the_object(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    assert space.get("configmaps/a", resourceVersion=made["metadata"]["resourceVersion"]).ok() == made


def test_get_at_version_0_gives_the_object(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    with space.watch("pods", resourceVersion="0") as watch:  # version 0 may lag; this waits for it
        watch.take(1)
    assert space.get("pods/a", resourceVersion="0").ok() == made


def test_a_version_that_is_no_number_is_refused(space: Space) -> None:
    refused = space.get("configmaps", resourceVersion="abc").failure()
    embedded = 'invalid resource version: resourceVersion: Invalid value: "abc": must be an integer from 0 to 2^64-1'
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=embedded))
    assert refused["message"].startswith('invalid resource version: resourceVersion: Invalid value: "abc": ')


def test_a_namespace_reads_like_any_object(space: Space, server: Api) -> None:
    read = server.get(f"/api/v1/namespaces/{space.name}").ok()
    assert (read["kind"], read["metadata"]["name"], read["status"]) == ("Namespace", space.name, {"phase": "Active"})


def test_status_can_be_read_by_itself(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    assert space.get("pods/a/status").ok() == made


def test_a_subresource_the_kind_has_not_is_no_path(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.get("configmaps/a/status").failure()
    message = "the server could not find the requested resource"
    assert refused == failure(404, "NotFound", message, about={})
