"""Merge patch (RFC 7386): maps are merged, null removes, everything else replaces."""

from __future__ import annotations

import pytest

from kit.api_objects import cause, config_map, conflict, container, failure, invalid, not_found, pod, told_once
from kit.raw_api import Obj, Space


def test_keys_are_merged_and_null_removes(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1", "y": "2"})).ok()
    answer = space.patch("configmaps/a", {"data": {"x": None, "y": "3", "z": "4"}})
    assert (answer.status, answer.json["data"]) == (200, {"y": "3", "z": "4"})


def test_lists_are_replaced_as_a_whole(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/a", "example.com/b"])).ok()
    changed = space.patch("configmaps/a", {"metadata": {"finalizers": ["example.com/c"]}}).ok()
    assert changed["metadata"]["finalizers"] == ["example.com/c"]


def test_an_empty_patch_changes_nothing(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    assert space.patch("configmaps/a", {}).ok() == made


def test_a_patch_needs_no_version_and_survives_other_writers(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    space.put("configmaps/a", made | {"data": {"x": "2"}}).ok()
    assert space.patch("configmaps/a", {"data": {"y": "1"}}).ok()["data"] == {"x": "2", "y": "1"}


def test_a_patch_that_carries_an_older_version_is_a_conflict(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    space.patch("configmaps/a", {"data": {"x": "2"}}).ok()
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"x": "3"}}
    assert space.patch("configmaps/a", patch).failure() == conflict("configmaps", "a")


def test_a_patch_that_carries_the_current_version_is_taken(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"x": "3"}}
    assert space.patch("configmaps/a", patch).ok()["data"] == {"x": "3"}


def test_a_patch_that_carries_another_uid_is_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.patch("configmaps/a", {"metadata": {"uid": "1"}}).failure()
    assert told_once(refused) == invalid(
        "ConfigMap", "a", cause("metadata.uid", 'Invalid value: "1": field is immutable')
    )


MALFORMED: dict[str, tuple[bytes, str]] = {
    "a list": (b"[]", "must be an object, not a list"),
    "a text": (b'"x"', "must be an object, not a string"),
    "half a document": (
        b"{",
        "invalid JSON: line 1 column 2: expecting property name enclosed in double quotes, "
        "found the end of the document",
    ),
}


@pytest.mark.parametrize(("body", "embedded"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_object_is_refused(space: Space, body: bytes, embedded: str) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.patch("configmaps/a", body).failure()
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=f"error decoding patch: {embedded}"))
    assert refused["message"].startswith("error decoding patch: ")


WRONG_TYPES: dict[str, tuple[Obj, str]] = {
    "number for text": ({"data": {"x": 7}}, "number into Go struct field ConfigMap.data of type string"),
    "text for map": ({"data": "x"}, "string into Go struct field ConfigMap.data of type map[string]string"),
}


@pytest.mark.parametrize(("patch", "message"), WRONG_TYPES.values(), ids=WRONG_TYPES.keys())
def test_a_result_of_the_wrong_type_is_refused(space: Space, patch: Obj, message: str) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    refused = space.patch("configmaps/a", patch).failure()
    (found,) = refused["details"]["causes"]
    assert (refused["code"], refused["reason"], found["field"]) == (422, "Invalid", "patch")
    assert found["message"].endswith(f"json: cannot unmarshal {message}")  # before that: the object, quoted whole
    assert space.get("configmaps/a").ok() == made


def test_a_patch_cannot_rename(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    message = "the name of the object (b) does not match the name on the URL (a)"
    refused = space.patch("configmaps/a", {"metadata": {"name": "b"}}).failure()
    assert refused == failure(400, "BadRequest", message)


def test_a_patch_cannot_move_to_another_namespace(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    message = "the namespace of the provided object does not match the namespace sent on the request"
    refused = space.patch("configmaps/a", {"metadata": {"namespace": "b"}}).failure()
    assert refused == failure(400, "BadRequest", message)


def test_a_patch_of_a_missing_object_is_not_found(space: Space) -> None:
    assert space.patch("configmaps/none", {}).failure() == not_found("configmaps", "none")


def test_a_patch_of_status_leaves_spec_alone(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    patch = {"spec": {"activeDeadlineSeconds": 5}, "status": {"phase": "Running", "reason": "Because"}}
    changed = space.patch("pods/a/status", patch).ok()
    assert (changed["spec"], changed["status"]) == (
        made["spec"],
        {"phase": "Running", "reason": "Because", "qosClass": "BestEffort"},
    )


def test_an_ordinary_patch_leaves_status_alone(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    changed = space.patch("pods/a", {"status": {"phase": "Running"}}).ok()
    assert changed == made


def test_the_result_of_a_patch_is_validated(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    refused = space.patch("pods/a", {"spec": {"containers": [container("other")]}}).failure()
    assert (refused["code"], refused["reason"]) == (422, "Invalid")


def test_the_result_of_a_patch_gets_its_defaults(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    changed = space.patch("pods/a", {"spec": {"terminationGracePeriodSeconds": None}}).ok()
    assert changed["spec"]["terminationGracePeriodSeconds"] == 30
