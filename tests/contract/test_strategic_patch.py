"""Strategic merge patch: lists of built-in kinds are merged by their keys, with directives for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import cause, config_map, container, failure, invalid, pod, service
from kit.raw_api import STRATEGIC_PATCH, Answer, Obj, Space


def patched(space: Space, resource: str, patch: Any) -> Answer:
    return space.patch(resource, patch, STRATEGIC_PATCH)


def test_a_container_is_found_by_its_name(space: Space) -> None:
    space.post("pods", pod("a", containers=[container("x"), container("y")])).ok()
    changed = patched(space, "pods/a", {"spec": {"containers": [{"name": "y", "image": "tool:2"}]}}).ok()
    assert [(each["name"], each["image"]) for each in changed["spec"]["containers"]] == [
        ("x", "tool:1"),
        ("y", "tool:2"),
    ]


PORTS = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]

PORT_PATCHES: dict[str, tuple[Obj, list[tuple[str | None, int, int]]]] = {
    "merges by port": ({"ports": [{"port": 80, "targetPort": 8080}]}, [("a", 80, 8080), ("b", 81, 81)]),
    "puts new ones first": ({"ports": [{"port": 82, "name": "c"}]}, [("c", 82, 82), ("a", 80, 80), ("b", 81, 81)]),
    "keeps a given order": (
        {
            "ports": [{"port": 82, "name": "c"}],
            "$setElementOrder/ports": [{"port": 81}, {"port": 82}, {"port": 80}],
        },
        [("b", 81, 81), ("c", 82, 82), ("a", 80, 80)],
    ),
    "deletes one": ({"ports": [{"port": 81, "$patch": "delete"}]}, [("a", 80, 80)]),
    "replaces all": ({"ports": [{"$patch": "replace"}, {"port": 90}]}, [(None, 90, 90)]),
}


@pytest.mark.parametrize(("patch", "expected"), PORT_PATCHES.values(), ids=PORT_PATCHES.keys())
def test_a_list_with_a_merge_key(space: Space, patch: Obj, expected: list[Any]) -> None:
    space.post("services", service("a", ports=PORTS)).ok()
    changed = patched(space, "services/a", {"spec": patch}).ok()
    assert [(each.get("name"), each["port"], each["targetPort"]) for each in changed["spec"]["ports"]] == expected


def test_maps_are_merged_and_null_removes(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1", "y": "2"})).ok()
    assert patched(space, "configmaps/a", {"data": {"x": None, "z": "3"}}).ok()["data"] == {"y": "2", "z": "3"}


def test_a_map_can_be_replaced_as_a_whole(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"})).ok()
    assert patched(space, "configmaps/a", {"data": {"$patch": "replace", "z": "3"}}).ok()["data"] == {"z": "3"}


def test_a_map_can_be_deleted(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"})).ok()
    assert "data" not in patched(space, "configmaps/a", {"data": {"$patch": "delete"}}).ok()


def test_a_list_of_plain_values_is_a_set(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/a"])).ok()
    patch = {"metadata": {"finalizers": ["example.com/b", "example.com/a"]}}
    changed = patched(space, "configmaps/a", patch).ok()
    assert sorted(changed["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]


def test_plain_values_can_be_taken_from_a_list(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/a", "example.com/b"])).ok()
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    assert patched(space, "configmaps/a", patch).ok()["metadata"]["finalizers"] == ["example.com/b"]


def test_a_list_without_a_merge_key_is_replaced(space: Space) -> None:
    start = [{"key": "x", "operator": "Exists"}]
    space.post("pods", pod("a", tolerations=start)).ok()
    # Tolerations may only be added; a patch that names just the new one would take the old one away.
    refused = patched(space, "pods/a", {"spec": {"tolerations": [{"key": "y", "operator": "Exists"}]}}).failure()
    assert (refused["code"], refused["reason"]) == (422, "Invalid")


def test_conditions_are_merged_by_type(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    for kind, status in [("Ready", "False"), ("Own", "True"), ("Ready", "True")]:
        patch = {"status": {"conditions": [{"type": kind, "status": status}]}}
        changed = patched(space, "pods/a/status", patch).ok()
    assert {each["type"]: each["status"] for each in changed["status"]["conditions"]} == {
        "Ready": "True",
        "Own": "True",
    }


def test_times_without_a_value_are_null_in_conditions(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    changed = patched(space, "pods/a/status", patch).ok()
    assert changed["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    ]


def test_an_entry_without_its_merge_key_is_refused(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    refused = patched(space, "pods/a", {"spec": {"containers": [{"image": "tool:2"}]}}).failure()
    # A real server calls this its own mistake (500); the promise is the refusal and the sentence.
    assert refused["message"] == "map: map[image:tool:2] does not contain declared merge key: name"
    assert space.get("pods/a").ok() == made


def test_an_unknown_directive_is_refused(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    refused = patched(space, "pods/a", {"spec": {"containers": [{"name": "main", "$patch": "bogus"}]}}).failure()
    assert refused["message"] == "unknown patch type: bogus in map: map[$patch:bogus name:main]"


WRONG_TYPES: dict[str, Obj] = {
    "text for list": {"spec": {"containers": "x"}},
    "text for number": {"spec": {"activeDeadlineSeconds": "x"}},
    "list for map": {"metadata": {"labels": ["x"]}},
}


@pytest.mark.parametrize("patch", WRONG_TYPES.values(), ids=WRONG_TYPES.keys())
def test_a_result_of_the_wrong_type_is_refused(space: Space, patch: Obj) -> None:
    made = space.post("pods", pod("a")).ok()
    refused = patched(space, "pods/a", patch).failure()
    (found,) = refused["details"]["causes"]
    assert (refused["code"], refused["reason"], found["field"]) == (422, "Invalid", "patch")
    assert space.get("pods/a").ok() == made


MALFORMED: dict[str, tuple[bytes, str]] = {
    "a list": (b"[]", "must be an object, not a list"),
    "half a document": (
        b"{",
        "invalid JSON: line 1 column 2: expecting property name enclosed in double quotes, "
        "found the end of the document",
    ),
}


@pytest.mark.parametrize(("body", "embedded"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_object_is_refused(space: Space, body: bytes, embedded: str) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = patched(space, "configmaps/a", body).failure()
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=f"error decoding patch: {embedded}"))


def test_containers_of_a_pod_cannot_be_added_or_removed(space: Space) -> None:
    space.post("pods", pod("a", containers=[container("x"), container("y")])).ok()
    refused = patched(space, "pods/a", {"spec": {"containers": [{"name": "y", "$patch": "delete"}]}}).failure()
    message = "Forbidden: pod updates may not add or remove containers"
    assert refused == invalid("Pod", "a", cause("spec.containers", message, "FieldValueForbidden"))
