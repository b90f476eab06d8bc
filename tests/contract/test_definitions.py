"""CustomResourceDefinitions: from the first apply to the last object, and the many that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import boat, cause, crd, invalid, names, required, serve, settled, version
from kit.raw_api import Api, Obj, Space

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = "spec.validation.openAPIV3Schema"


def test_an_accepted_crd_has_its_conditions(server: Api, group: str) -> None:
    made = serve(server, crd(group))
    conditions = {
        each["type"]: (each["status"], each["reason"], each["message"]) for each in made["status"]["conditions"]
    }
    assert conditions == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert made["status"]["acceptedNames"] == made["spec"]["names"]
    assert made["status"]["storedVersions"] == ["v1"]


def test_a_definition_gets_its_defaults(server: Api, group: str) -> None:
    body = crd(group, names={"plural": "boats", "kind": "Boat"})
    made = server.post(DEFINITIONS, body, dryRun="All").ok()
    assert made["spec"] == body["spec"] | {
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
        "conversion": {"strategy": "None"},
    }


def test_a_new_kind_is_discovered_and_served(server: Api, space: Space, group: str) -> None:
    serve(server, crd(group, names={"plural": "boats", "kind": "Boat", "shortNames": ["bt"], "categories": ["all"]}))
    found = server.get(f"/apis/{group}/v1").ok()
    (resource,) = found["resources"]
    resource.pop("storageVersionHash", None)  # a digest that means something only to its server
    resource["verbs"].sort()
    assert found["groupVersion"] == f"{group}/v1"
    assert resource == {
        "name": "boats",
        "singularName": "boat",
        "namespaced": True,
        "kind": "Boat",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["bt"],
        "categories": ["all"],
    }
    made = space.post("boats", boat(group, "a", anything={"goes": [1]}), group=f"{group}/v1").ok()
    assert made["anything"] == {"goes": [1]}


def test_a_kind_without_namespaces_lives_outside_them(server: Api, group: str) -> None:
    serve(server, crd(group, scope="Cluster"))
    made = server.post(f"/apis/{group}/v1/boats", boat(group, "a")).ok()
    assert settled(made) == boat(group, "a", metadata={"generation": 1})
    assert server.get(f"/apis/{group}/v1/namespaces/default/boats").status == 404


def test_a_version_that_is_not_served_has_no_path(server: Api, group: str) -> None:
    serve(server, crd(group, versions=[version("v1"), version("v2", storage=False, served=False)]))
    assert server.get(f"/apis/{group}/v2/boats").status == 404


def test_a_changed_schema_counts_from_then_on(server: Api, space: Space, group: str) -> None:
    def schema(limit: int) -> Obj:
        return {"type": "object", "properties": {"size": {"type": "integer", "maximum": limit}}}

    serve(server, crd(group, schema(1)))
    assert space.post("boats", boat(group, "a", size=5), group=f"{group}/v1").status == 422
    patch = {"spec": {"versions": [version("v1", schema(9))]}}
    changed = server.patch(f"{DEFINITIONS}/boats.{group}", patch).ok()
    assert changed["metadata"]["generation"] == 2
    # Nothing tells when a real server has taken the new schema up, so it is asked until it has.
    tries = (space.post("boats", boat(group, "a", size=5), group=f"{group}/v1").status for _ in range(2000))
    assert next(status for status in tries if status != 422) == 201


def test_a_deleted_definition_takes_its_objects_along(server: Api, space: Space, group: str) -> None:
    made = serve(server, crd(group))
    space.post("boats", boat(group, "a"), group=f"{group}/v1").ok()
    server.delete(f"{DEFINITIONS}/boats.{group}").ok()
    query = {"fieldSelector": f"metadata.name=boats.{group}", "resourceVersion": made["metadata"]["resourceVersion"]}
    with server.watch(DEFINITIONS, **query) as watch:
        watch.until(lambda event: event["type"] == "DELETED")
    serve(server, crd(group))
    assert names(space.get("boats", group=f"{group}/v1").ok()) == []


def field(**schema: Any) -> Obj:
    return {"type": "object", "properties": {"a": schema}}


BAD_SCHEMAS: dict[str, tuple[Obj, list[Obj]]] = {
    "no types": (
        {"properties": {"a": {}}},
        [
            required(f"{SCHEMA}.properties[a].type", "must not be empty for specified object fields"),
            required(f"{SCHEMA}.type", "must not be empty at the root"),
        ],
    ),
    "reference": (
        field(**{"$ref": "#/x"}),
        [cause(f"{SCHEMA}.properties[a].$ref", "Forbidden: $ref is not supported", "FieldValueForbidden")],
    ),
    "unique items": (
        field(type="array", uniqueItems=True, items={"type": "string"}),
        [
            cause(
                f"{SCHEMA}.properties[a].uniqueItems",
                "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
                "FieldValueForbidden",
            )
        ],
    ),
    "map and object": (
        field(type="object", properties={"b": {"type": "string"}}, additionalProperties={"type": "string"}),
        [
            cause(
                f"{SCHEMA}.properties[a].additionalProperties",
                "Forbidden: additionalProperties and properties are mutual exclusive",
                "FieldValueForbidden",
            )
        ],
    ),
    "list of nothing": (field(type="array"), [required(f"{SCHEMA}.properties[a].items", "must be specified")]),
    "unknown type": (
        field(type="strin"),
        [
            cause(
                f"{SCHEMA}.properties[a].type",
                'Unsupported value: "strin": supported values: "array", "boolean", "integer", "number", "object", '
                '"string"',
                "FieldValueNotSupported",
            )
        ],
    ),
    "default of another type": (
        field(type="integer", default="x"),
        [
            cause(
                f"{SCHEMA}.properties[a].default",
                'Invalid value: "string":  in body must be of type integer: "string"',
                "FieldValueTypeInvalid",
            )
        ],
    ),
    "list map without keys": (
        field(
            type="array",
            items={"type": "object", "properties": {"n": {"type": "string"}}},
            **{"x-kubernetes-list-type": "map"},
        ),
        [
            required(
                f"{SCHEMA}.properties[a].x-kubernetes-list-map-keys",
                "must not be empty if x-kubernetes-list-type is map",
            )
        ],
    ),
}


@pytest.mark.parametrize(("schema", "causes"), BAD_SCHEMAS.values(), ids=BAD_SCHEMAS.keys())
def test_a_schema_that_is_not_structural_is_refused(server: Api, group: str, schema: Obj, causes: list[Obj]) -> None:
    refused = server.post(DEFINITIONS, crd(group, schema)).failure()
    name = f"boats.{group}"
    assert refused == invalid("CustomResourceDefinition", name, *causes, group="apiextensions.k8s.io")


def test_a_pattern_that_does_not_parse_is_refused(server: Api, group: str) -> None:
    refused = server.post(DEFINITIONS, crd(group, field(type="string", pattern="("))).failure()
    (found,) = refused["details"]["causes"]
    assert found["field"] == f"{SCHEMA}.properties[a].pattern"
    # What follows is the parser's own sentence about it.
    assert found["message"].startswith('Invalid value: "(": must be a valid regular expression, but isn\'t: ')


BAD_DEFINITIONS: dict[str, tuple[Obj, list[tuple[str, str]]]] = {
    "no storage version": (
        {"versions": [version("v1", storage=False)]},
        [("spec.versions", "must have exactly one version marked as storage version")],
    ),
    "two storage versions": (
        {"versions": [version("v1"), version("v2")]},
        [("spec.versions", "must have exactly one version marked as storage version")],
    ),
    "a version twice": (
        {"versions": [version("v1"), version("v1", storage=False)]},
        [("spec.versions", "must contain unique version names")],
    ),
    "no schema": (
        {"versions": [{"name": "v1", "served": True, "storage": True}]},
        [("spec.versions[0].schema.openAPIV3Schema", "Required value")],
    ),
    "scope": ({"scope": "Universe"}, [("spec.scope", 'supported values: "Cluster", "Namespaced"')]),
    "column": (
        {"versions": [version("v1", additionalPrinterColumns=[{"name": "A", "type": "odd", "jsonPath": "x"}])]},
        [
            ("spec.additionalPrinterColumns[0].type", "must be one of boolean,date,integer,number,string"),
            ("spec.additionalPrinterColumns[0].JSONPath", "must be a simple json path starting with ."),
        ],
    ),
    "scale": (
        {"versions": [version("v1", subresources={"scale": {"specReplicasPath": "x", "statusReplicasPath": ".x"}})]},
        [
            ("spec.subresources.scale.specReplicasPath", "must be a simple json path starting with ."),
            ("spec.subresources.scale.statusReplicasPath", "should be a json path under .status"),
        ],
    ),
}


@pytest.mark.parametrize(("spec", "wrong"), BAD_DEFINITIONS.values(), ids=BAD_DEFINITIONS.keys())
def test_a_definition_that_makes_no_sense_is_refused(
    server: Api, group: str, spec: Obj, wrong: list[tuple[str, str]]
) -> None:
    refused = server.post(DEFINITIONS, crd(group, **spec)).failure()
    # The value quoted in the middle is the server's own way of writing its structures down.
    found = [
        (each["field"], each["message"].rsplit("]: ")[-1].rsplit('": ')[-1].rsplit("null: ")[-1])
        for each in refused["details"]["causes"]
        if not each["field"].startswith("status.")  # what follows from it where no client can write
    ]
    assert (refused["code"], found) == (422, wrong)


def test_the_name_of_a_definition_is_its_plural_and_its_group(server: Api, group: str) -> None:
    refused = server.post(DEFINITIONS, crd(group) | {"metadata": {"name": "x"}}).failure()
    wrong = cause("metadata.name", 'Invalid value: "x": must be spec.names.plural+"."+spec.group')
    assert refused == invalid("CustomResourceDefinition", "x", wrong, group="apiextensions.k8s.io")


def test_a_taken_kind_is_not_accepted(server: Api, group: str) -> None:
    serve(server, crd(group))
    second = crd(group, names={"plural": "ships", "kind": "Boat"}) | {"metadata": {"name": f"ships.{group}"}}
    made = server.post(DEFINITIONS, second).ok()
    query = {"fieldSelector": f"metadata.name=ships.{group}"}

    def judged(event: Obj) -> bool:
        return bool((event["object"].get("status") or {}).get("conditions"))

    with server.watch(DEFINITIONS, **query) as watch:
        message = watch.until(judged)[-1]["object"]["status"]["conditions"]
    accepted = next(each for each in message if each["type"] == "NamesAccepted")
    assert (made["metadata"]["name"], accepted["status"], accepted["message"]) == (
        f"ships.{group}",
        "False",
        '"BoatList" is already in use',
    )
