"""What a custom schema says of values. The causes are those of a Kubernetes 1.36 API server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from kit import crd_builders
from kit.crd_builders import TEXT, custom, fields, items
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.structural_schema import apply_defaults, prune, schema_from, validate
from shoal.kube.structural_schema.schema_validation import go_float


def text(**more: Any) -> Obj:
    return {"type": "string", **more}


def number(kind: str = "integer", **more: Any) -> Obj:
    return {"type": kind, **more}


def result(place: Obj, value: Any) -> list[str]:
    return [str(cause) for cause in validate(custom(a=place), {"spec": {"a": value}})]


def wrong(value: str, message: str, path: str = "spec.a") -> str:
    return f"{path}: Invalid value: {value}: {path} in body {message}"


def nowhere(message: str) -> str:
    return f'<nil>: Invalid value: "": {message}'


def condition(name: str, *parts: Obj) -> Obj:
    return {**fields(x=TEXT, y=TEXT), name: list(parts)}


NEEDS_X, NEEDS_Y = {"required": ["x"]}, {"required": ["y"]}
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
TWICE_KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"]}
ENTRY = {**fields(n=TEXT, p=number()), "required": ["n"]}
EITHER = {"x-kubernetes-int-or-string": True}
NOT_AN_INTEGER = "must be of type integer: "

CASES: list[tuple[str, Obj, Any, list[str]]] = [
    ("text for a number", number(), "a", [wrong('"string"', NOT_AN_INTEGER + '"string"')]),
    ("list for a number", number(), [], [wrong('"array"', NOT_AN_INTEGER + '"array"')]),
    ("null for a number", number(), None, [wrong('"null"', NOT_AN_INTEGER + '"null"')]),
    ("null where allowed", text(nullable=True), None, []),
    ("whole float", number(), 2.0, []),
    (
        "fraction",
        number(),
        1.5,
        [
            wrong('"number"', NOT_AN_INTEGER + '"number"'),
            nowhere("Checked value must be of type integer (default format) in spec.a"),
        ],
    ),
    ("boolean for int32", number(format="int32"), True, [wrong('""', 'must be of type int32: ""')]),
    (
        "too large for int32",
        number(format="int32"),
        3000000000,
        [nowhere("Checked value must be of type integer with format int32 in spec.a")],
    ),
    (
        "too large for any",
        number(maximum=3),
        2**63,
        [
            wrong('"number"', NOT_AN_INTEGER + '"number"'),
            nowhere("Checked value must be of type integer (default format) in spec.a"),
            wrong("9.223372036854776e+18", "should be less than or equal to 3"),
        ],
    ),
    ("above", number(maximum=3), 5, [wrong("5", "should be less than or equal to 3")]),
    (
        "above a million",
        number(maximum=1000000),
        1000001,
        [wrong("1000001", "should be less than or equal to 1000000")],
    ),
    (
        "float above a million",
        number("number", maximum=1000000),
        1000000.5,
        [wrong("1.0000005e+06", "should be less than or equal to 1e+06")],
    ),
    ("at an exclusive limit", number(maximum=3, exclusiveMaximum=True), 3, [wrong("3", "should be less than 3")]),
    ("below", number(minimum=1), 0, [wrong("0", "should be greater than or equal to 1")]),
    ("no multiple", number(multipleOf=5), 7, [wrong("7", "should be a multiple of 5")]),
    (
        "not among the values",
        text(enum=["a", "b"]),
        "x",
        ['spec.a: Unsupported value: "x": supported values: "a", "b"'],
    ),
    ("not among the numbers", number(enum=[1, 2]), 3, ['spec.a: Unsupported value: 3: supported values: "1", "2"']),
    ("too short", text(minLength=2), "a", [wrong('"a"', "should be at least 2 chars long")]),
    ("too long", text(maxLength=4), "abcde", ["spec.a: Too long: may not be more than 4 bytes"]),
    ("no match", text(pattern="^[a-z]+$"), "A1", [wrong('"A1"', "should match '^[a-z]+$'")]),
    ("line break at the end", text(pattern="^[a-z]+$"), "ab\n", [wrong('"ab\\n"', "should match '^[a-z]+$'")]),
    ("no time", text(format="date-time"), "foo", [wrong('"foo"', 'must be of type date-time: "foo"')]),
    ("unknown format", text(format="poem"), "foo", []),
    ("too few items", items(TEXT, minItems=1), [], [wrong("0", "should have at least 1 items")]),
    ("too many items", items(TEXT, maxItems=2), ["a", "b", "c"], ["spec.a: Too many: 3: must have at most 2 items"]),
    ("wrong item", items(TEXT), [1], [wrong('"integer"', 'must be of type string: "integer"', "spec.a[0]")]),
    (
        "twice in a set",
        items(TEXT, **{"x-kubernetes-list-type": "set"}),
        ["a", "b", "a", "a"],
        ['spec.a[2]: Duplicate value: "a"'],
    ),
    (
        "twice the same key",
        items(ENTRY, **KEYED),
        [{"n": "a"}, {"n": "b"}, {"n": "a"}],
        ['spec.a[2]: Duplicate value: {"n":"a"}'],
    ),
    (
        "twice the same keys",
        items(ENTRY, **TWICE_KEYED),
        [{"n": "a", "p": 1}, {"n": "a", "p": 2}, {"n": "a", "p": 1}],
        ['spec.a[2]: Duplicate value: {"n":"a","p":1}'],
    ),
    ("key missing", items(ENTRY, **KEYED), [{}], ["spec.a[0].n: Required value"]),
    (
        "too few entries",
        {"type": "object", "additionalProperties": number(), "minProperties": 1},
        {},
        [wrong("0", "should have at least 1 properties")],
    ),
    (
        "too many entries",
        {"type": "object", "additionalProperties": number(), "maxProperties": 1},
        {"x": 1, "y": 2},
        ["spec.a: Too many: 2: must have at most 1 item"],
    ),
    (
        "wrong entry",
        {"type": "object", "additionalProperties": number()},
        {"x": "1"},
        [wrong('"string"', NOT_AN_INTEGER + '"string"', "spec.a.x")],
    ),
    (
        "closed",
        {"type": "object", "additionalProperties": False},
        {"x": 1},
        ['spec.a: Invalid value: "x": spec.a.x in body is a forbidden property'],
    ),
    ("integer where either will do", EITHER, 5, []),
    ("text where either will do", EITHER, "5%", []),
    ("neither", EITHER, True, [wrong('"boolean"', 'must be of type integer,string: "boolean"')]),
    (
        "none of one",
        condition("oneOf", NEEDS_X, NEEDS_Y),
        {},
        [
            nowhere('"spec.a" must validate one and only one schema (oneOf). Found none valid'),
            "spec.a.x: Required value",
        ],
    ),
    (
        "two of one",
        condition("oneOf", NEEDS_X, NEEDS_Y),
        {"x": "", "y": ""},
        [nowhere('"spec.a" must validate one and only one schema (oneOf). Found 2 valid alternatives')],
    ),
    (
        "none of any",
        condition("anyOf", NEEDS_X, NEEDS_Y),
        {},
        [nowhere('"spec.a" must validate at least one schema (anyOf)'), "spec.a.x: Required value"],
    ),
    (
        "some of all",
        condition("allOf", NEEDS_X, NEEDS_Y),
        {"x": ""},
        ["spec.a.y: Required value", nowhere('"spec.a" must validate all the schemas (allOf)')],
    ),
    (
        "none of all",
        condition("allOf", NEEDS_X, NEEDS_Y),
        {},
        [
            "spec.a.x: Required value",
            "spec.a.y: Required value",
            nowhere('"spec.a" must validate all the schemas (allOf). None validated'),
        ],
    ),
    (
        "not not",
        {**fields(x=TEXT), "not": NEEDS_X},
        {"x": ""},
        [nowhere('"spec.a" must not validate the schema (not)')],
    ),
    (
        "embedded without a kind",
        {"type": "object", "x-kubernetes-embedded-resource": True},
        {},
        ["spec.a.apiVersion: Required value", "spec.a.kind: Required value"],
    ),
]


@pytest.mark.parametrize(("place", "value", "causes"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_value_is_validated(place: Obj, value: Any, causes: list[str]) -> None:
    assert result(place, value) == causes


def test_a_wrong_type_has_a_reason_of_its_own() -> None:
    (cause,) = validate(custom(size=number()), {"spec": {"size": "x"}})
    assert cause == Cause(
        "FieldValueTypeInvalid",
        'Invalid value: "string": spec.size in body must be of type integer: "string"',
        "spec.size",
    )


def test_a_definition_may_restrict_names() -> None:
    schema = schema_from(fields(metadata=fields(name=text(maxLength=3))))
    assert [str(c) for c in validate(schema, {"metadata": {"name": "long"}})] == [
        "metadata.name: Too long: may not be more than 3 bytes"
    ]


def test_what_did_not_change_is_not_validated_again() -> None:
    schema = custom(a=number(maximum=3), b=number(maximum=3), c=items(TEXT, **{"x-kubernetes-list-type": "set"}))
    old = {"spec": {"a": 5, "b": 1, "c": ["x", "x"]}}
    assert validate(schema, {"spec": {"a": 5, "b": 2, "c": ["x", "x"]}}, old) == []
    assert [c.field for c in validate(schema, {"spec": {"a": 6, "b": 1, "c": ["y", "y"]}}, old)] == [
        "spec.a",
        "spec.c[1]",
    ]


FORMATS = [
    ("ipv4", "1.2.3.4", "1.2.3"),
    ("ipv6", "::1", "1.2.3.4"),
    ("cidr", "10.0.0.0/8", "10.0.0.0"),
    ("byte", "YQ==", "!!"),
    ("uuid", "6F9619FF-8B86-D011-B42D-00C04FC964FF", "x"),
    ("uri", "http://x/y", "not a uri"),
    ("hostname", "a.b-c.d", "a_b"),
    ("date", "2024-02-29", "2023-02-29"),
    ("email", "a@b.c", "x"),
    ("mac", "01:23:45:67:89:ab", "zz"),
    ("duration", "1h30m", "5x"),
    ("duration", "5 minutes", "minutes"),
    ("k8s-short-name", "a-b", "A.b"),
]


@pytest.mark.parametrize(("form", "good", "bad"), FORMATS, ids=[f"{case[0]} {case[1]}" for case in FORMATS])
def test_formats_are_enforced(form: str, good: str, bad: str) -> None:
    assert result(text(format=form), good) == []
    assert result(text(format=form), bad) == [wrong(f'"{bad}"', f'must be of type {form}: "{bad}"')]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5, "0.5"), (3.0, "3"), (1e6, "1e+06"), (123456789.5, "1.234567895e+08"), (0.00001, "1e-05"), (-2e7, "-2e+07")],
)
def test_numbers_are_printed_as_go_prints_them(value: float, shown: str) -> None:
    assert go_float(value) == shown


# --- defaults ------------------------------------------------------------------------------------------------------


def test_defaults_fill_what_is_missing_and_what_may_not_be_null() -> None:
    schema = custom(
        a=text(default="x"),
        b=text(default="x", nullable=True),
        c=text(),
        nested={**fields(d=number(default=5)), "default": {}},
        absent=fields(d=number(default=5)),
        listed=items({**fields(d=number(default=5)), "default": {}}),
        mapped={"type": "object", "additionalProperties": fields(d=number(default=5))},
    )
    obj = {"spec": {"a": None, "b": None, "c": None, "listed": [{}, None], "mapped": {"k": {}}}}
    apply_defaults(schema, obj)
    assert obj == {
        "spec": {
            "a": "x",
            "b": None,
            "nested": {"d": 5},
            "listed": [{"d": 5}, {"d": 5}],
            "mapped": {"k": {"d": 5}},
        }
    }


def test_two_objects_do_not_share_a_default() -> None:
    schema = custom(a={**items(TEXT), "default": []})
    first: Obj = {"spec": {}}
    second: Obj = {"spec": {}}
    for obj in (first, second):
        apply_defaults(schema, obj)
    first["spec"]["a"].append("x")
    assert second == {"spec": {"a": []}}


@given(crd_builders.resource_schemas, crd_builders.objects)
def test_pruning_and_filling_twice_changes_nothing_more(openapi: Obj, obj: Obj) -> None:
    schema = schema_from(openapi)
    once = copy.deepcopy(prune(schema, obj))
    apply_defaults(schema, once)
    twice = copy.deepcopy(prune(schema, once))
    apply_defaults(schema, twice)
    assert twice == once
    assert validate(schema, twice) == validate(schema, once)
    assert validate(schema, once, once) == []
