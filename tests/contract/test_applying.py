"""Server-side apply: who owns what, who may change it, and what goes when its owner lets go."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import cause, config_map, conflict, container, failure, invalid, pod, required, service
from kit.raw_api import APPLY_PATCH, Obj, Space


def apply(space: Space, manager: str, data: dict[str, str], **more: Any) -> Obj:
    return space.apply("configmaps/a", config_map("a", data), manager=manager, **more).ok()


def owners(obj: Obj) -> dict[tuple[str, str], Obj]:
    """What each manager owns, by its name and operation."""
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in obj["metadata"].get("managedFields", [])}


def test_the_first_apply_creates(space: Space) -> None:
    answer = space.apply("configmaps/a", config_map("a", {"x": "1"}), manager="one")
    assert (answer.status, answer.json["data"]) == (201, {"x": "1"})
    (entry,) = answer.json["metadata"]["managedFields"]
    assert entry.pop("time")
    assert entry == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:x": {}}},
    }


def test_applying_the_same_again_changes_nothing(space: Space) -> None:
    first = apply(space, "one", {"x": "1"})
    answer = space.apply("configmaps/a", config_map("a", {"x": "1"}), manager="one")
    assert (answer.status, answer.json) == (200, first)


def test_what_is_no_longer_applied_goes(space: Space) -> None:
    apply(space, "one", {"x": "1", "y": "1"})
    assert apply(space, "one", {"y": "1"})["data"] == {"y": "1"}


def test_two_managers_own_their_own_keys(space: Space) -> None:
    apply(space, "one", {"x": "1"})
    both = apply(space, "two", {"y": "1"})
    assert both["data"] == {"x": "1", "y": "1"}
    assert owners(both) == {
        ("one", "Apply"): {"f:data": {"f:x": {}}},
        ("two", "Apply"): {"f:data": {"f:y": {}}},
    }


def test_changing_what_another_owns_is_a_conflict(space: Space) -> None:
    apply(space, "one", {"x": "1"})
    refused = space.apply("configmaps/a", config_map("a", {"x": "2"}), manager="two").failure()
    message = 'Apply failed with 1 conflict: conflict with "one": .data.x'
    causes = [cause(".data.x", 'conflict with "one"', "FieldManagerConflict")]
    assert refused == failure(409, "Conflict", message, causes=causes)
    assert space.get("configmaps/a").ok()["data"] == {"x": "1"}


def test_every_conflict_is_listed(space: Space) -> None:
    apply(space, "one", {"x": "1", "y": "1"})
    refused = space.apply("configmaps/a", config_map("a", {"x": "2", "y": "2"}), manager="two").failure()
    message = 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.x\n- .data.y'
    causes = [cause(f".data.{key}", 'conflict with "one"', "FieldManagerConflict") for key in "xy"]
    assert refused == failure(409, "Conflict", message, causes=causes)


def test_a_conflict_with_an_ordinary_writer_names_its_version(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"}), fieldManager="editor").ok()
    refused = space.apply("configmaps/a", config_map("a", {"x": "2"}), manager="one").failure()
    message = 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.x'
    causes = [cause(".data.x", 'conflict with "editor" using v1', "FieldManagerConflict")]
    assert refused == failure(409, "Conflict", message, causes=causes)


def test_force_takes_what_another_owns(space: Space) -> None:
    apply(space, "one", {"x": "1", "y": "1"})
    taken = apply(space, "two", {"x": "2"}, force=True)
    assert taken["data"] == {"x": "2", "y": "1"}
    assert owners(taken) == {
        ("one", "Apply"): {"f:data": {"f:y": {}}},
        ("two", "Apply"): {"f:data": {"f:x": {}}},
    }


def test_the_same_value_can_have_two_owners(space: Space) -> None:
    apply(space, "one", {"x": "1"})
    apply(space, "two", {"x": "1", "y": "1"})
    assert apply(space, "one", {})["data"] == {"x": "1", "y": "1"}
    assert apply(space, "two", {"y": "1"})["data"] == {"y": "1"}


def test_an_ordinary_write_takes_ownership_without_asking(space: Space) -> None:
    apply(space, "one", {"x": "1", "y": "1"})
    changed = space.patch("configmaps/a", {"data": {"x": "2"}}, fieldManager="editor").ok()
    assert owners(changed) == {
        ("one", "Apply"): {"f:data": {"f:y": {}}},
        ("editor", "Update"): {"f:data": {"f:x": {}}},
    }


def test_containers_are_owned_by_name(space: Space) -> None:
    body = pod("a", containers=[container("main", env=[{"name": "A", "value": "1"}])])
    made = space.apply("pods/a", body, manager="one").ok()
    main = {
        ".": {},
        "f:name": {},
        "f:image": {},
        "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
    }
    assert owners(made) == {
        ("one", "Apply"): {
            "f:spec": {"f:automountServiceAccountToken": {}, "f:containers": {'k:{"name":"main"}': main}}
        }
    }


def test_a_conflict_in_a_list_names_the_entry(space: Space) -> None:
    space.apply("pods/a", pod("a"), manager="one").ok()
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "image": "tool:2"}]},
    }
    refused = space.apply("pods/a", body, manager="two").failure()
    message = 'Apply failed with 1 conflict: conflict with "one": .spec.containers[name="main"].image'
    assert refused["message"] == message


def ports(space: Space, manager: str, *numbers: int) -> list[int]:
    wanted = [{"name": f"p{number}", "port": number, "protocol": "TCP"} for number in numbers]
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": wanted}}
    return [each["port"] for each in space.apply("services/a", body, manager=manager).ok()["spec"]["ports"]]


def test_entries_of_two_managers_live_in_one_list(space: Space) -> None:
    assert ports(space, "one", 80) == [80]
    assert ports(space, "two", 81) == [80, 81]
    assert ports(space, "one", 82) == [81, 82]


def test_a_set_holds_the_values_of_all_managers(space: Space) -> None:
    space.apply("configmaps/a", config_map("a", finalizers=["example.com/a"]), manager="one").ok()
    both = space.apply("configmaps/a", config_map("a", finalizers=["example.com/b"]), manager="two").ok()
    assert both["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    left = space.apply("configmaps/a", config_map("a"), manager="one").ok()
    assert left["metadata"]["finalizers"] == ["example.com/b"]
    assert owners(left) == {("two", "Apply"): {"f:metadata": {"f:finalizers": {'v:"example.com/b"': {}}}}}


def test_an_atomic_field_is_owned_as_a_whole(space: Space) -> None:
    space.apply("services/a", service("a"), manager="one").ok()
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"selector": {"other": "1"}}}
    refused = space.apply("services/a", body, manager="two").failure()
    assert refused["message"] == 'Apply failed with 1 conflict: conflict with "one": .spec.selector'


def test_status_is_owned_apart(space: Space) -> None:
    space.apply("pods/a", pod("a"), manager="one").ok()
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "status": {"conditions": [{"type": "Own", "status": "True"}]},
    }
    changed = space.apply("pods/a/status", body, manager="one").ok()
    found = {each.get("subresource", ""): each["fieldsV1"] for each in changed["metadata"]["managedFields"]}
    assert set(found) == {"", "status"}
    assert found["status"] == {
        "f:status": {"f:conditions": {'k:{"type":"Own"}': {".": {}, "f:status": {}, "f:type": {}}}}
    }


def test_yaml_is_as_good_as_json(space: Space) -> None:
    body = b'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: "1"\n'
    assert space.apply("configmaps/a", body).ok()["data"] == {"x": "1"}


def test_yaml_that_does_not_parse_is_refused(space: Space) -> None:
    refused = space.apply("configmaps/a", b"a: [").failure()
    assert (refused["code"], refused["reason"]) == (400, "BadRequest")
    # What follows is the parser's own sentence.
    assert refused["message"].startswith("error decoding YAML: ")


NOT_APPLICABLE: dict[str, tuple[Obj, str]] = {
    "no name": (
        {"apiVersion": "v1", "kind": "ConfigMap"},
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    ),
    "no version": ({"kind": "ConfigMap"}, "invalid object type: /, Kind=ConfigMap"),
    "another kind": (
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
        "invalid object type: /v1, Kind=Secret",
    ),
    "another name": (config_map("b"), "the name of the object (b) does not match the name on the URL (a)"),
    "managed fields": (config_map("a", managedFields=[{"manager": "x"}]), "metadata.managedFields must be nil"),
}


@pytest.mark.parametrize(("body", "message"), NOT_APPLICABLE.values(), ids=NOT_APPLICABLE.keys())
def test_what_cannot_be_applied_is_refused(space: Space, body: Obj, message: str) -> None:
    assert space.apply("configmaps/a", body).failure() == failure(400, "BadRequest", message)
    assert space.get("configmaps/a").status == 404


def test_an_apply_of_an_older_version_is_a_conflict(space: Space) -> None:
    apply(space, "one", {"x": "1"})
    body = config_map("a", {"x": "1"}, resourceVersion="1")
    assert space.apply("configmaps/a", body, manager="one").failure() == conflict("configmaps", "a")


WRONG_SHAPES: dict[str, tuple[Obj, str]] = {
    "type": (config_map("a", {"x": 7}), ".data.x: expected string, got &value.valueUnstructured{Value:7}"),  # type: ignore[dict-item]
    "unknown field": (config_map("a") | {"nope": 1}, ".nope: field not declared in schema"),
}


@pytest.mark.parametrize(("body", "message"), WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys())
def test_what_does_not_fit_the_schema_is_refused(space: Space, body: Obj, message: str) -> None:
    refused = space.apply("configmaps/a", body).failure()
    # A real server calls this its own mistake (500); the promise is the refusal and the sentence.
    assert refused["message"] == f"failed to create typed patch object (/a; /v1, Kind=ConfigMap): {message}"


def test_an_entry_twice_in_a_list_is_refused(space: Space) -> None:
    body = service("a", ports=[{"name": "x", "port": 80}, {"name": "y", "port": 80}])
    refused = space.apply("services/a", body).failure()
    assert refused["message"].endswith('.spec.ports: duplicate entries for key [port=80,protocol="TCP"]')


BAD_OPTIONS: dict[str, tuple[Any, str, dict[str, Any], Obj]] = {
    "no manager": (config_map("a"), APPLY_PATCH, {}, required("fieldManager", "is required for apply patch")),
    "force without apply": (
        {},
        "application/merge-patch+json",
        {"force": True},
        cause("force", "Forbidden: may not be specified for non-apply patch", "FieldValueForbidden"),
    ),
    "long manager": (
        config_map("a"),
        APPLY_PATCH,
        {"fieldManager": "x" * 129},
        cause("fieldManager", "Too long: may not be more than 128 bytes", "FieldValueTooLong"),
    ),
}


@pytest.mark.parametrize(("body", "kind", "query", "wrong"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
def test_options_of_a_patch_are_checked(space: Space, body: Any, kind: str, query: Any, wrong: Obj) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.patch("configmaps/a", body, kind, **query).failure()
    assert refused == invalid("PatchOptions", "", wrong, group="meta.k8s.io")
