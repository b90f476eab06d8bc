"""Objects of a definition: its schema is enforced, filled in and pruned; status and scale stand apart."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import boat, cause, conflict, failure, invalid, names, not_found, required, settled
from kit.raw_api import APPLY_PATCH, STRATEGIC_PATCH, TABLE, Answer, Obj, Space


def create(space: Space, fleet: str, name: str = "a", spec: Obj | None = None, **more: Any) -> Answer:
    return space.post("boats", boat(fleet, name, spec=spec or {"size": 1}), group=f"{fleet}/v1", **more)


def test_a_custom_object_comes_back_with_its_defaults(space: Space, fleet: str) -> None:
    spec = {"size": 1, "crew": [{"name": "a"}, {"name": "b", "role": "mate"}], "flag": None, "either": "5%"}
    answer = create(space, fleet, spec=spec)
    crew = [{"name": "a", "role": "hand"}, {"name": "b", "role": "mate"}]
    expected = boat(
        fleet,
        "a",
        metadata={"namespace": space.name, "generation": 1},
        spec={"size": 1, "mode": "sail", "crew": crew, "flag": None, "either": "5%"},
    )
    assert (answer.status, settled(answer.json)) == (201, expected)


def test_unknown_fields_are_pruned_with_a_warning(space: Space, fleet: str) -> None:
    body = boat(fleet, "a", spec={"size": 1, "sails": {"n": 3}}, extra=1)
    answer = space.post("boats", body, group=f"{fleet}/v1")
    assert answer.ok()["spec"] == {"size": 1, "mode": "sail"}
    assert "extra" not in answer.json
    assert sorted(answer.warnings) == ['299 - "unknown field \\"extra\\""', '299 - "unknown field \\"spec.sails\\""']


def test_unknown_fields_are_refused_where_checking_is_strict(space: Space, fleet: str) -> None:
    body = boat(fleet, "a", spec={"size": 1}, extra=1)
    refused = space.post("boats", body, group=f"{fleet}/v1", fieldValidation="Strict").failure()
    message = 'Boat in version "v1" cannot be handled as a Boat: strict decoding error: unknown field "extra"'
    assert refused == failure(400, "BadRequest", message)


def test_fields_are_kept_where_the_schema_preserves_them(space: Space, fleet: str) -> None:
    free = {"any": [1, {"b": None}], "n": 1.5}
    answer = create(space, fleet, spec={"size": 1, "free": free})
    assert (answer.ok()["spec"]["free"], answer.warnings) == (free, [])


BAD_SPECS: dict[str, tuple[Obj, list[Obj]]] = {
    "too small": (
        {"size": 0},
        [cause("spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1")],
    ),
    "too large": (
        {"size": 11},
        [cause("spec.size", "Invalid value: 11: spec.size in body should be less than or equal to 10")],
    ),
    "missing": ({"mode": "row"}, [required("spec.size")]),
    "null": ({"size": None}, [required("spec.size")]),
    "enum": (
        {"size": 1, "mode": "fly"},
        [cause("spec.mode", 'Unsupported value: "fly": supported values: "sail", "row"', "FieldValueNotSupported")],
    ),
    "pattern": (
        {"size": 1, "flag": "y"},
        [cause("spec.flag", "Invalid value: \"y\": spec.flag in body should match '^x+$'")],
    ),
    "length": (
        {"size": 1, "flag": "xxxx"},
        [cause("spec.flag", "Too long: may not be more than 3 bytes", "FieldValueTooLong")],
    ),
    "type": (
        {"size": 1, "crew": "all"},
        [
            cause(
                "spec.crew",
                'Invalid value: "string": spec.crew in body must be of type array: "string"',
                "FieldValueTypeInvalid",
            )
        ],
    ),
    "type of a value": (
        {"size": 1, "tags": {"a": 1}},
        [
            cause(
                "spec.tags.a",
                'Invalid value: "integer": spec.tags.a in body must be of type string: "integer"',
                "FieldValueTypeInvalid",
            )
        ],
    ),
    "neither number nor text": (
        {"size": 1, "either": True},
        [
            cause(
                "spec.either",
                'Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"',
                "FieldValueTypeInvalid",
            )
        ],
    ),
    "key missing": ({"size": 1, "crew": [{"role": "mate"}]}, [required("spec.crew[0].name")]),
    "key twice": (
        {"size": 1, "crew": [{"name": "a"}, {"name": "a"}]},
        [cause("spec.crew[1]", 'Duplicate value: {"name":"a"}', "FieldValueDuplicate")],
    ),
    "entry of a set twice": (
        {"size": 1, "ports": ["a", "a"]},
        [cause("spec.ports[1]", 'Duplicate value: "a"', "FieldValueDuplicate")],
    ),
}


@pytest.mark.parametrize(("spec", "causes"), BAD_SPECS.values(), ids=BAD_SPECS.keys())
def test_the_schema_is_enforced(space: Space, fleet: str, spec: Obj, causes: list[Obj]) -> None:
    assert create(space, fleet, spec=spec).failure() == invalid("Boat", "a", *causes, group=fleet)
    assert names(space.get("boats", group=f"{fleet}/v1").ok()) == []


def test_every_cause_is_listed_at_once(space: Space, fleet: str) -> None:
    refused = create(space, fleet, spec={"size": 11, "mode": "fly"}).failure()
    found = {each["field"] for each in refused["details"]["causes"]}  # in an order that differs from time to time
    assert (refused["code"], found) == (422, {"spec.size", "spec.mode"})


def test_a_bad_name_is_refused(space: Space, fleet: str) -> None:
    refused = create(space, fleet, "A!").failure()
    assert [each["field"] for each in refused["details"]["causes"]] == ["metadata.name"]


def test_status_is_dropped_from_a_new_object(space: Space, fleet: str) -> None:
    body = boat(fleet, "a", spec={"size": 1}, status={"phase": "afloat"})
    assert "status" not in space.post("boats", body, group=f"{fleet}/v1").ok()


def test_a_custom_object_is_never_replaced_without_its_version(space: Space, fleet: str) -> None:
    create(space, fleet).ok()
    refused = space.put("boats/a", boat(fleet, "a", spec={"size": 2}), group=f"{fleet}/v1").failure()
    wrong = cause("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
    expected = invalid("Boat", "a", wrong, group=fleet)
    # Named by its resource here and not by its kind, as the check comes before the kind is looked at.
    expected["message"] = expected["message"].replace("Boat.", "boats.")
    expected["details"]["kind"] = "boats"
    assert refused == expected


def test_a_stale_update_is_a_conflict(space: Space, fleet: str) -> None:
    made = create(space, fleet).ok()
    space.patch("boats/a", {"spec": {"size": 2}}, group=f"{fleet}/v1").ok()
    refused = space.put("boats/a", made | {"spec": {"size": 3}}, group=f"{fleet}/v1").failure()
    assert refused == conflict("boats", "a", group=fleet)


def test_only_a_change_of_spec_raises_the_generation(space: Space, fleet: str) -> None:
    group = f"{fleet}/v1"
    answers = [
        create(space, fleet),
        space.patch("boats/a", {"metadata": {"labels": {"x": "1"}}}, group=group),
        space.patch("boats/a/status", {"status": {"phase": "afloat"}}, group=group),
        space.patch("boats/a", {"spec": {"size": 2}}, group=group),
        space.patch("boats/a", {"spec": {"size": 2}}, group=group),
    ]
    assert [each.ok()["metadata"]["generation"] for each in answers] == [1, 1, 1, 2, 2]


def test_an_ordinary_write_leaves_status_alone(space: Space, fleet: str) -> None:
    create(space, fleet).ok()
    changed = space.patch("boats/a", {"spec": {"size": 2}, "status": {"phase": "sunk"}}, group=f"{fleet}/v1").ok()
    assert (changed["spec"]["size"], "status" in changed) == (2, False)


def test_a_status_write_leaves_everything_else_alone(space: Space, fleet: str) -> None:
    made = create(space, fleet).ok()
    body = made | {
        "metadata": made["metadata"] | {"labels": {"x": "1"}},
        "spec": {"size": 9},
        "status": {"phase": "afloat"},
    }
    changed = space.put("boats/a/status", body, group=f"{fleet}/v1").ok()
    assert settled(changed) == settled(made) | {"status": {"phase": "afloat"}}


def test_the_schema_is_enforced_on_status(space: Space, fleet: str) -> None:
    create(space, fleet).ok()
    refused = space.patch("boats/a/status", {"status": {"phase": 7}}, group=f"{fleet}/v1").failure()
    assert [(each["field"], each["reason"]) for each in refused["details"]["causes"]] == [
        ("status.phase", "FieldValueTypeInvalid")
    ]


def test_another_version_of_a_definition_shows_the_same_object(space: Space, fleet: str) -> None:
    made = create(space, fleet).ok()
    other = space.get("boats/a", group=f"{fleet}/v2").ok()
    assert other == made | {"apiVersion": f"{fleet}/v2"}
    space.patch("boats/a", {"spec": {"size": 5}}, group=f"{fleet}/v2").ok()
    assert space.get("boats/a", group=f"{fleet}/v1").ok()["spec"]["size"] == 5


def test_a_version_without_a_status_subresource_has_no_such_path(space: Space, fleet: str) -> None:
    create(space, fleet).ok()
    assert space.get("boats/a/status", group=f"{fleet}/v2").status == 404


def test_fields_a_version_declares_can_be_selected_by(space: Space, fleet: str) -> None:
    create(space, fleet, "a").ok()
    create(space, fleet, "b", {"size": 1, "mode": "row"}).ok()
    assert names(space.get("boats", group=f"{fleet}/v2", fieldSelector="spec.mode=row").ok()) == ["b"]
    refused = space.get("boats", group=f"{fleet}/v1", fieldSelector="spec.mode=row").failure()
    assert refused == failure(400, "BadRequest", "field label not supported: spec.mode")


def scale(made: Obj, wanted: int, **status: Any) -> Obj:
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: made["metadata"][key] for key in kept},
        "spec": {"replicas": wanted},
        "status": {"replicas": 0} | status,
    }


def test_the_scale_shows_what_its_paths_name(space: Space, fleet: str) -> None:
    create(space, fleet, spec={"size": 3}).ok()
    status = {"status": {"replicas": 2, "selector": "x=1"}}
    made = space.patch("boats/a/status", status, group=f"{fleet}/v1").ok()
    shown = space.get("boats/a/scale", group=f"{fleet}/v1").ok()
    assert shown == scale(made, 3, replicas=2, selector="x=1")


def test_scaling_by_patch_changes_the_object(space: Space, fleet: str) -> None:
    create(space, fleet, spec={"size": 3}).ok()
    shown = space.patch("boats/a/scale", {"spec": {"replicas": 4}}, group=f"{fleet}/v1").ok()
    changed = space.get("boats/a", group=f"{fleet}/v1").ok()
    assert (shown, changed["spec"]["size"]) == (scale(changed, 4), 4)
    assert changed["metadata"]["generation"] == 2


def test_scaling_by_update_changes_the_object(space: Space, fleet: str) -> None:
    create(space, fleet, spec={"size": 3}).ok()
    shown = space.get("boats/a/scale", group=f"{fleet}/v1").ok()
    shown["spec"]["replicas"] = 5
    space.put("boats/a/scale", shown, group=f"{fleet}/v1").ok()
    assert space.get("boats/a", group=f"{fleet}/v1").ok()["spec"]["size"] == 5


def test_a_stale_scale_is_a_conflict(space: Space, fleet: str) -> None:
    create(space, fleet, spec={"size": 3}).ok()
    shown = space.get("boats/a/scale", group=f"{fleet}/v1").ok()
    space.patch("boats/a", {"spec": {"size": 4}}, group=f"{fleet}/v1").ok()
    shown["spec"]["replicas"] = 5
    assert space.put("boats/a/scale", shown, group=f"{fleet}/v1").status == 409


def test_a_scale_outside_the_schema_is_refused(space: Space, fleet: str) -> None:
    create(space, fleet).ok()
    refused = space.patch("boats/a/scale", {"spec": {"replicas": 11}}, group=f"{fleet}/v1").failure()
    wrong = cause("spec.size", "Invalid value: 11: spec.size in body should be less than or equal to 10")
    assert refused == invalid("Boat", "a", wrong, group=fleet)


def test_the_scale_of_a_missing_object_is_not_found(space: Space, fleet: str) -> None:
    refused = space.get("boats/none/scale", group=f"{fleet}/v1").failure()
    assert refused == not_found("boats", "none", fleet)


def test_strategic_patches_are_for_built_in_kinds(space: Space, fleet: str) -> None:
    create(space, fleet).ok()
    refused = space.patch("boats/a", {"spec": {"size": 2}}, STRATEGIC_PATCH, group=f"{fleet}/v1").failure()
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert refused == failure(415, "UnsupportedMediaType", message)


def test_kind_and_version_are_required(space: Space, fleet: str) -> None:
    refused = space.post("boats", {"metadata": {"name": "a"}, "spec": {"size": 1}}, group=f"{fleet}/v1").failure()
    assert (refused["code"], refused["reason"]) == (400, "BadRequest")
    assert refused["message"].startswith(
        "the object provided is unrecognized (must be of type Boat): Object 'Kind' is missing in "
    )


def test_another_kind_is_refused(space: Space, fleet: str) -> None:
    body = boat(fleet, "a", spec={"size": 1}) | {"kind": "Ship"}
    refused = space.post("boats", body, group=f"{fleet}/v1").failure()
    wrong = cause("kind", 'Invalid value: "Ship": must be Boat')
    assert refused == invalid("Ship", "a", wrong, group=fleet)


def test_another_version_than_that_of_the_path_is_refused(space: Space, fleet: str) -> None:
    body = boat(fleet, "a", version="v9", spec={"size": 1})
    refused = space.post("boats", body, group=f"{fleet}/v1").failure()
    message = f"the API version in the data ({fleet}/v9) does not match the expected API version ({fleet}/v1)"
    assert refused == failure(400, "BadRequest", message)


def test_items_of_a_custom_list_have_their_kind(space: Space, fleet: str) -> None:
    made = create(space, fleet).ok()
    listed = space.get("boats", group=f"{fleet}/v1").ok()
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("BoatList", f"{fleet}/v1", [made])


def test_custom_objects_are_watched_like_others(space: Space, fleet: str) -> None:
    version = space.get("boats", group=f"{fleet}/v1").ok()["metadata"]["resourceVersion"]
    made = create(space, fleet).ok()
    with space.watch("boats", group=f"{fleet}/v1", resourceVersion=version) as watch:
        assert watch.take(1) == [{"type": "ADDED", "object": made}]
    with space.watch("boats", group=f"{fleet}/v2", resourceVersion=version) as watch:
        assert watch.take(1) == [{"type": "ADDED", "object": made | {"apiVersion": f"{fleet}/v2"}}]


def test_a_table_shows_the_columns_of_the_definition(space: Space, fleet: str) -> None:
    create(space, fleet, spec={"size": 3}).ok()
    space.patch("boats/a/status", {"status": {"phase": "afloat"}}, group=f"{fleet}/v1").ok()
    create(space, fleet, "b").ok()
    table = space.get("boats", group=f"{fleet}/v1", accept=TABLE).ok()
    columns = [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Phase", "string", 0),
        ("Mode", "string", 1),
    ]
    assert [row["cells"] for row in table["rows"]] == [["a", 3, "afloat", "sail"], ["b", 1, None, "sail"]]
    assert table["columnDefinitions"][2]["description"] == "What it does now"


def test_custom_objects_are_applied_by_list_keys(space: Space, fleet: str) -> None:
    def apply(manager: str, *crew: str) -> Obj:
        body = boat(fleet, "a", spec={"size": 1, "crew": [{"name": name} for name in crew]})
        answer = space.patch("boats/a", body, APPLY_PATCH, group=f"{fleet}/v1", fieldManager=manager)
        return answer.ok()

    apply("one", "x", "y")
    both = apply("two", "z")
    assert [each["name"] for each in both["spec"]["crew"]] == ["x", "y", "z"]
    assert [each["name"] for each in apply("one", "y")["spec"]["crew"]] == ["y", "z"]
