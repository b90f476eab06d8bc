"""Which CustomResourceDefinitions are sound. The causes are those of a Kubernetes 1.36 API server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import crd_builders
from kit.crd_builders import TEXT, definition, fields, items, spec_schema, version
from shoal.kube.errors import Cause
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from shoal.kube.objects import Obj
from shoal.kube.schema import drop_unknown, type_problem
from shoal.kube.schemas import schema_of
from shoal.kube.structural_schema import (
    accepted,
    apply_defaults,
    crd_problems,
    kinds_of,
    prune,
    validate,
)

ROOT = "spec.validation.openAPIV3Schema"
AT_A = f"{ROOT}.properties[spec].properties[a]"
LIST, KEYS, MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
KEEP, EMBED, EITHER = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def required(path: str, message: str = "") -> str:
    return f"{path}: Required value" + (f": {message}" if message else "")


def forbidden(path: str, message: str) -> str:
    return f"{path}: Forbidden: {message}"


def invalid(path: str, value: str, message: str) -> str:
    return f"{path}: Invalid value: {value}: {message}"


def result(crd: Obj, old: Obj | None = None) -> list[str]:
    return [str(cause) for cause in crd_problems(crd, old)]


NOT_A_PATH = "must be a simple json path starting with ."
AROUND = [
    (
        "name",
        definition(name="x.example.com"),
        [invalid("metadata.name", '"x.example.com"', 'must be spec.names.plural+"."+spec.group')],
    ),
    ("no schema", definition(version({})), [required("spec.versions[0].schema.openAPIV3Schema")]),
    (
        "group without a dot",
        definition(name="widgets.x", group="x"),
        [invalid("spec.group", '"x"', "should be a domain with at least one dot")],
    ),
    ("no scope", definition(scope=""), [required("spec.scope")]),
    (
        "odd scope",
        definition(scope="x"),
        ['spec.scope: Unsupported value: "x": supported values: "Cluster", "Namespaced"'],
    ),
    (
        "version name",
        definition(version(name="V1")),
        [invalid("spec.versions[0].name", '"V1"', LABEL), invalid("spec.version", '"V1"', LABEL)],
    ),
    (
        "deprecation",
        definition(version(deprecationWarning="x")),
        [invalid("spec.versions[0].deprecationWarning", '"x"', "can only be set for deprecated versions")],
    ),
    (
        "preserving all",
        definition(preserveUnknownFields=True),
        [
            invalid(
                "spec.preserveUnknownFields",
                "true",
                "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                "spec.versions[*].schema instead",
            )
        ],
    ),
    (
        "no webhook",
        definition(conversion={"strategy": "Webhook"}),
        [
            required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook"),
            required("spec.conversion.conversionReviewVersions"),
        ],
    ),
    (
        "odd conversion",
        definition(conversion={"strategy": "X"}),
        ['spec.conversion.strategy: Unsupported value: "X": supported values: "None", "Webhook"'],
    ),
    (
        "scale paths",
        definition(version(subresources={"scale": {"specReplicasPath": ".foo", "statusReplicasPath": "status.x"}})),
        [
            invalid("spec.subresources.scale.specReplicasPath", '".foo"', "should be a json path under .spec"),
            invalid("spec.subresources.scale.statusReplicasPath", '"status.x"', NOT_A_PATH),
        ],
    ),
    (
        "no scale paths",
        definition(version(subresources={"scale": {}})),
        [required("spec.subresources.scale.specReplicasPath"), required("spec.subresources.scale.statusReplicasPath")],
    ),
    (
        "column",
        definition(version(additionalPrinterColumns=[{"name": "", "type": "x", "jsonPath": "a"}])),
        [
            required("spec.additionalPrinterColumns[0].name"),
            invalid(
                "spec.additionalPrinterColumns[0].type", '"x"', "must be one of boolean,date,integer,number,string"
            ),
            invalid("spec.additionalPrinterColumns[0].JSONPath", '"a"', NOT_A_PATH),
        ],
    ),
    (
        "selectable fields",
        definition(
            version(selectableFields=[{"jsonPath": ".spec.b"}, {"jsonPath": ".spec"}, {"jsonPath": ".spec.size"}])
        ),
        [
            invalid(
                "spec.selectableFields[0].jsonPath", '".spec.b"', "is an invalid path: does not refer to a valid field"
            ),
            invalid(
                "spec.selectableFields[1].jsonPath",
                '".spec"',
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed.",
            ),
        ],
    ),
]


@pytest.mark.parametrize(("crd", "causes"), [case[1:] for case in AROUND], ids=[case[0] for case in AROUND])
def test_what_stands_around_the_schema(crd: Obj, causes: list[str]) -> None:
    assert result(crd) == causes


def text(**more: Any) -> Obj:
    return {"type": "string", **more}


PLACES: list[tuple[str, Obj, list[str]]] = [
    ("no type", {}, [required(f"{AT_A}.type", "must not be empty for specified object fields")]),
    (
        "odd type",
        text(type="text"),
        [
            f'{AT_A}.type: Unsupported value: "text": '
            'supported values: "array", "boolean", "integer", "number", "object", "string"'
        ],
    ),
    ("list of nothing", {"type": "array"}, [required(f"{AT_A}.items", "must be specified")]),
    (
        "items without a type",
        items({}),
        [required(f"{AT_A}.items.type", "must not be empty for specified array items")],
    ),
    ("reference", text(**{"$ref": "x"}), [forbidden(f"{AT_A}.$ref", "$ref is not supported")]),
    (
        "unique items",
        items(TEXT, uniqueItems=True),
        [
            forbidden(
                f"{AT_A}.uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            )
        ],
    ),
    (
        "fields and values",
        {**fields(b=TEXT), "additionalProperties": TEXT},
        [forbidden(f"{AT_A}.additionalProperties", "additionalProperties and properties are mutual exclusive")],
    ),
    (
        "map list without keys",
        items(TEXT, **{LIST: "map"}),
        [
            required(f"{AT_A}.{KEYS}", "must not be empty if x-kubernetes-list-type is map"),
            invalid(f"{AT_A}.items.type", '"string"', "must be object if parent array's x-kubernetes-list-type is map"),
        ],
    ),
    (
        "key that may be missing",
        items(fields(n=TEXT), **{LIST: "map", KEYS: ["n"]}),
        [
            required(
                f"{AT_A}.items.properties[n].default",
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            )
        ],
    ),
    (
        "key that is no field",
        items({**fields(n=TEXT), "required": ["n"]}, **{LIST: "map", KEYS: ["m"]}),
        [invalid(f"{AT_A}.{KEYS}", '["m"]', "entries must all be names of item properties")],
    ),
    (
        "keys of no map list",
        items(TEXT, **{KEYS: ["m"]}),
        [required(f"{AT_A}.{LIST}", "must be map if x-kubernetes-list-map-keys is non-empty")],
    ),
    (
        "set of objects",
        items(fields(n=TEXT), **{LIST: "set"}),
        [invalid(f"{AT_A}.items.{MAP}", "null", "must be atomic as item of a list with x-kubernetes-list-type=set")],
    ),
    (
        "odd list type",
        items(TEXT, **{LIST: "foo"}),
        [f'{AT_A}.{LIST}: Unsupported value: "foo": supported values: "atomic", "set", "map"'],
    ),
    (
        "map type of a text",
        text(**{MAP: "atomic"}),
        [invalid(f"{AT_A}.type", '"string"', "must be object if x-kubernetes-map-type is specified")],
    ),
    (
        "preserving nothing",
        {"type": "object", KEEP: False},
        [invalid(f"{AT_A}.{KEEP}", "false", "must be true or undefined")],
    ),
    (
        "either and preserving",
        {EITHER: True, KEEP: True},
        [invalid(f"{AT_A}.{KEEP}", "true", "must be false if x-kubernetes-int-or-string is true")],
    ),
    (
        "embedded without fields",
        {"type": "object", EMBED: True},
        [
            required(
                f"{AT_A}.properties",
                "must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields",
            )
        ],
    ),
    (
        "embedded text",
        text(**{EMBED: True, KEEP: True}),
        [invalid(f"{AT_A}.type", '"string"', "must be object if x-kubernetes-embedded-resource is true")],
    ),
    (
        "type in a condition",
        {"type": "integer", "anyOf": [{"type": "integer"}]},
        [forbidden(f"{AT_A}.anyOf[0].type", "must be empty to be structural")],
    ),
    (
        "words in a condition",
        {"type": "integer", "not": {"description": "x"}},
        [forbidden(f"{AT_A}.not.description", "must be empty to be structural")],
    ),
    (
        "look-ahead",
        text(pattern="(?=a)"),
        [
            invalid(
                f"{AT_A}.pattern",
                '"(?=a)"',
                "must be a valid regular expression, but isn't: error parsing regexp: "
                "invalid or unsupported Perl syntax: `(?=`",
            )
        ],
    ),
    (
        "open group",
        text(pattern="a("),
        [
            invalid(
                f"{AT_A}.pattern",
                '"a("',
                "must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `a(`",
            )
        ],
    ),
    (
        "default of another type",
        text(default=5),
        [f'{AT_A}.default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ),
    (
        "default with unknown fields",
        {**fields(b=TEXT), "default": {"c": 1}},
        [invalid(f"{AT_A}.default", '{"c":1}', "must not have unknown fields")],
    ),
    ("integer or text", {EITHER: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, []),
    ("closed object", {"type": "object", "additionalProperties": False}, []),
    ("sound map list", items({**fields(n=TEXT), "required": ["n"]}, **{LIST: "map", KEYS: ["n"]}), []),
]


@pytest.mark.parametrize(("place", "causes"), [case[1:] for case in PLACES], ids=[case[0] for case in PLACES])
def test_one_place_of_the_schema(place: Obj, causes: list[str]) -> None:
    assert result(definition(version(spec_schema(fields(a=place))))) == causes


ROOTS: list[tuple[str, Obj, list[str]]] = [
    ("no type", {"properties": {}}, [required(f"{ROOT}.type", "must not be empty at the root")]),
    ("text", TEXT, [invalid(f"{ROOT}.type", '"string"', "must be object at the root")]),
    (
        "a map",
        {"type": "object", "additionalProperties": TEXT},
        [forbidden(f"{ROOT}.additionalProperties", "must not be used at the root")],
    ),
    (
        "null",
        {"type": "object", "nullable": True},
        [forbidden(f"{ROOT}.nullable", "nullable cannot be true at the root")],
    ),
    (
        "labels",
        fields(metadata=fields(labels={"type": "object"})),
        [
            forbidden(
                f"{ROOT}.properties[metadata]",
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            )
        ],
    ),
    ("a name", fields(metadata=fields(name=text(maxLength=3))), []),
    (
        "a default kind",
        fields(kind=text(default="x")),
        [forbidden(f"{ROOT}.properties[kind].default", "must not be set in top-level kind")],
    ),
    (
        "a condition on what is not there",
        {**fields(), "allOf": [fields(b={"pattern": "x"}) | {"type": ""}]},
        [required(f"{ROOT}.properties[b]", f"because it is defined in {ROOT}.allOf[0].properties[b]")],
    ),
]


@pytest.mark.parametrize(("schema", "causes"), [case[1:] for case in ROOTS], ids=[case[0] for case in ROOTS])
def test_the_root_of_the_schema(schema: Obj, causes: list[str]) -> None:
    assert result(definition(version(schema))) == causes


def test_versions_that_differ_are_named_one_by_one() -> None:
    crd = definition(version(spec_schema({})), version(name="v2", storage=False))
    assert result(crd) == [
        required(
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].type",
            "must not be empty for specified object fields",
        )
    ]


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ([version(), version(name="v2")], "must have exactly one version marked as storage version"),
        ([version(storage=False)], "must have exactly one version marked as storage version"),
        ([version(), version(storage=False)], "must contain unique version names"),
    ],
    ids=["two stored", "none stored", "same name"],
)
def test_versions_among_each_other(versions: list[Obj], message: str) -> None:
    (cause,) = crd_problems(definition(*versions))
    assert (cause.reason, cause.field) == ("FieldValueInvalid", "spec.versions")
    assert cause.message.endswith(f": {message}")


def test_a_condition_at_the_root_would_be_lost_next_to_a_status() -> None:
    schema = {**spec_schema(fields()), "oneOf": [{"required": ["spec"]}]}
    (cause,) = crd_problems(definition(version(schema, subresources={"status": {}})))
    assert cause.field == ROOT
    assert "fields are allowed at the root of the schema if the status subresource is enabled" in cause.message


def test_names_and_scope_stay_once_established() -> None:
    old = definition()
    old["status"] = accepted(old, now="2026-01-01T00:00:00Z")
    new = definition(scope="Cluster", names={**old["spec"]["names"], "kind": "Other"})
    assert crd_problems(new, old) == [
        Cause("FieldValueInvalid", 'Invalid value: "Cluster": field is immutable', "spec.scope"),
        Cause("FieldValueInvalid", 'Invalid value: "Other": field is immutable', "spec.names.kind"),
    ]


WORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "additionalProperties",
        "allOf",
        "anyOf",
        "not",
        "default",
        "enum",
        "pattern",
        "required",
        "format",
        LIST,
        KEYS,
        MAP,
        KEEP,
        EMBED,
        EITHER,
        "a",
        "metadata",
        "x-kubernetes-validations",
    ]
)
VALUES = st.recursive(
    crd_builders.scalars | st.sampled_from(["object", "array", "string", "map", "set", "(", "[[:alpha:]]"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=4),
)


@given(st.dictionaries(WORDS, VALUES, max_size=5), crd_builders.objects)
def test_no_schema_however_odd_breaks_anything(openapi: Obj, obj: Obj) -> None:
    crd = definition(version(openapi))
    declared = schema_of(CUSTOM_RESOURCE_DEFINITION)
    if type_problem(declared, crd) is None:
        crd = drop_unknown(declared, crd)
        if crd_problems(crd) == []:
            (kind,) = kinds_of(crd)
            kept = copy.deepcopy(prune(schema_of(kind), obj))
            apply_defaults(schema_of(kind), kept)
            assert validate(schema_of(kind), kept, kept) == []
            validate(schema_of(kind), kept)
