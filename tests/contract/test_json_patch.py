"""JSON Patch (RFC 6902): every operation, and what a bad one is told."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import config_map, conflict, failure, not_found
from kit.raw_api import JSON_PATCH, Space

START = {"x": "1", "y": "2"}

OPERATIONS: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "add": ([{"op": "add", "path": "/data/z", "value": "3"}], {"x": "1", "y": "2", "z": "3"}),
    "add over": ([{"op": "add", "path": "/data/x", "value": "3"}], {"x": "3", "y": "2"}),
    "remove": ([{"op": "remove", "path": "/data/x"}], {"y": "2"}),
    "replace": ([{"op": "replace", "path": "/data/x", "value": "3"}], {"x": "3", "y": "2"}),
    "replace a whole map": ([{"op": "replace", "path": "/data", "value": {"n": "1"}}], {"n": "1"}),
    "replace what is not there": (
        [{"op": "replace", "path": "/data/z", "value": "3"}],
        {"x": "1", "y": "2", "z": "3"},
    ),
    "move": ([{"op": "move", "from": "/data/x", "path": "/data/z"}], {"y": "2", "z": "1"}),
    "copy": ([{"op": "copy", "from": "/data/x", "path": "/data/z"}], {"x": "1", "y": "2", "z": "1"}),
    "test then remove": (
        [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "remove", "path": "/data/x"}],
        {"y": "2"},
    ),
    "nothing": ([], START),
}


@pytest.mark.parametrize(("patch", "data"), OPERATIONS.values(), ids=OPERATIONS.keys())
def test_an_operation_changes_what_its_path_names(space: Space, patch: list[Any], data: dict[str, str]) -> None:
    space.post("configmaps", config_map("a", START)).ok()
    answer = space.patch("configmaps/a", patch, JSON_PATCH)
    assert (answer.status, answer.json["data"], space.get("configmaps/a").json["data"]) == (200, data, data)


def test_a_path_may_name_keys_with_slashes(space: Space) -> None:
    space.post("configmaps", config_map("a", annotations={"x/y": "1"})).ok()
    patch = [{"op": "replace", "path": "/metadata/annotations/x~1y", "value": "2"}]
    assert space.patch("configmaps/a", patch, JSON_PATCH).ok()["metadata"]["annotations"] == {"x/y": "2"}


def test_a_list_can_be_appended_to(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/a"])).ok()
    patch = [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"}]
    changed = space.patch("configmaps/a", patch, JSON_PATCH).ok()
    assert changed["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]


NOT_POSSIBLE: dict[str, list[dict[str, Any]]] = {
    "test fails": [{"op": "test", "path": "/data/x", "value": "9"}],
    "removes nothing": [{"op": "remove", "path": "/data/none"}],
    "adds below nothing": [{"op": "add", "path": "/metadata/annotations/x", "value": "1"}],
    "unknown operation": [{"op": "bogus", "path": "/data/x"}],
    "moves nothing": [{"op": "move", "from": "/data/none", "path": "/data/x"}],
    "half possible": [{"op": "remove", "path": "/data/x"}, {"op": "remove", "path": "/data/none"}],
}


@pytest.mark.parametrize("patch", NOT_POSSIBLE.values(), ids=NOT_POSSIBLE.keys())
def test_an_operation_that_is_not_possible_changes_nothing(space: Space, patch: list[Any]) -> None:
    made = space.post("configmaps", config_map("a", START)).ok()
    refused = space.patch("configmaps/a", patch, JSON_PATCH).failure()
    message = "the server rejected our request due to an error in our request"
    # A server may say in the details which operation it was; a real one does not.
    assert refused | {"details": {}} == failure(422, "Invalid", message, about={})
    assert space.get("configmaps/a").ok() == made


MALFORMED: dict[str, tuple[bytes, str]] = {
    "an object": (b"{}", "must be a list of operations, not an object"),
    "half a document": (
        b"[{",
        "invalid JSON: line 1 column 3: expecting property name enclosed in double quotes, "
        "found the end of the document",
    ),
}


@pytest.mark.parametrize(("body", "embedded"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_list_of_operations_is_refused(space: Space, body: bytes, embedded: str) -> None:
    space.post("configmaps", config_map("a", START)).ok()
    refused = space.patch("configmaps/a", body, JSON_PATCH).failure()
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=f"error decoding patch: {embedded}"))
    assert refused["message"].startswith("error decoding patch: ")


def test_a_result_of_the_wrong_type_is_refused(space: Space) -> None:
    space.post("configmaps", config_map("a", START)).ok()
    patch = [{"op": "add", "path": "/data/z", "value": 7}]
    refused = space.patch("configmaps/a", patch, JSON_PATCH).failure()
    (found,) = refused["details"]["causes"]
    assert (refused["code"], refused["reason"], found["field"]) == (422, "Invalid", "patch")
    # The message quotes the whole object with all its bookkeeping; the reason stands at its end.
    assert found["message"].endswith("json: cannot unmarshal number into Go struct field ConfigMap.data of type string")


def test_a_patch_of_an_older_version_is_a_conflict(space: Space) -> None:
    space.post("configmaps", config_map("a", START)).ok()
    patch = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]
    assert space.patch("configmaps/a", patch, JSON_PATCH).failure() == conflict("configmaps", "a")


def test_a_patch_cannot_rename(space: Space) -> None:
    space.post("configmaps", config_map("a", START)).ok()
    patch = [{"op": "replace", "path": "/metadata/name", "value": "b"}]
    message = "the name of the object (b) does not match the name on the URL (a)"
    assert space.patch("configmaps/a", patch, JSON_PATCH).failure() == failure(400, "BadRequest", message)


def test_a_patch_of_a_missing_object_is_not_found(space: Space) -> None:
    assert space.patch("configmaps/none", [], JSON_PATCH).failure() == not_found("configmaps", "none")
