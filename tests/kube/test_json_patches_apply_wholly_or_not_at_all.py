"""JSON patch: the examples of RFC 6902, what API servers add to them, and generated patches."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.errors import ApiError
from shoal.kube.patching import json_patch
from shoal.kube.patching.json_values import json_equal

Case = tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]

APPLIES: dict[str, Case] = {
    "A.1 add a member": ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    "A.2 add an element": (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    "A.3 remove a member": ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    "A.4 remove an element": ({"foo": ["a", "b", "c"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["a", "c"]}),
    "A.5 replace": ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    "A.6 move a value": (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    "A.7 move an element": (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    "A.8 test": (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    "A.10 add a nested object": (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    "A.11 unknown members": ({}, [{"op": "add", "path": "/baz", "value": "q", "xyz": 123}], {"baz": "q"}),
    "A.14 escapes": ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    "A.16 add an array": (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
    "copy": ({"a": {"b": [1]}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": [1]}, "c": {"b": [1]}}),
    "negative index": ({"a": [1, 2]}, [{"op": "replace", "path": "/a/-1", "value": 3}], {"a": [1, 3]}),
    "append by negative index": ({"a": [1]}, [{"op": "add", "path": "/a/-1", "value": 2}], {"a": [1, 2]}),
    "replace what is absent": ({}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
    "absent equals null": ({}, [{"op": "test", "path": "/a", "value": None}], {}),
    "no value is null": ({}, [{"op": "add", "path": "/a"}], {"a": None}),
    "replace all": ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
}


@pytest.mark.parametrize(("obj", "patch", "expected"), APPLIES.values(), ids=APPLIES)
def test_each_operation_is_applied(obj: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((obj, patch))
    assert json_equal(json_patch(obj, patch), expected)
    assert (obj, patch) == before


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "A.9 test fails": (
        {"baz": "qux"},
        {"op": "test", "path": "/baz", "value": "bar"},
        "testing value /baz failed: test failed",
    ),
    "A.12 no such target": (
        {"foo": "bar"},
        {"op": "add", "path": "/baz/bat", "value": "qux"},
        'add operation does not apply: doc is missing path: "/baz/bat": missing value',
    ),
    "A.15 strings are not numbers": (
        {"~1": 10},
        {"op": "test", "path": "/~01", "value": "10"},
        "testing value /~01 failed: test failed",
    ),
    "true is not one": ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "testing value /a failed: test failed"),
    "remove what is absent": (
        {},
        {"op": "remove", "path": "/a"},
        "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value",
    ),
    "index too large": (
        {"a": [1]},
        {"op": "add", "path": "/a/2", "value": 0},
        "error in add for path: '/a/2': Unable to access invalid index: 2: invalid index referenced",
    ),
    "index no number": (
        {"a": [1]},
        {"op": "add", "path": "/a/x", "value": 0},
        "error in add for path: '/a/x': value was not a proper array index: 'x'",
    ),
    "replace beyond the end": (
        {"a": []},
        {"op": "replace", "path": "/a/0", "value": 0},
        "replace operation does not apply: doc is missing key: /a/0: missing value",
    ),
    "move from nowhere": (
        {},
        {"op": "move", "from": "/a/b", "path": "/c"},
        "move operation does not apply: doc is missing from path: /a/b: missing value",
    ),
    "move into itself": (
        {"a": {"b": 1}},
        {"op": "move", "from": "/a", "path": "/a/b"},
        "move operation does not apply: doc is missing destination path: /a/b: missing value",
    ),
    "no path": ({}, {"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
    "no slash": (
        {"a": 1},
        {"op": "remove", "path": "a"},
        'remove operation does not apply: doc is missing path: "a": missing value',
    ),
    "no such operation": ({}, {"op": "spam", "path": "/a"}, "Unexpected kind: spam"),
    "not an object any more": (
        {},
        {"op": "replace", "path": "", "value": []},
        "the patch leaves an array where the object was",
    ),
}


@pytest.mark.parametrize(("obj", "operation", "why"), REFUSED.values(), ids=REFUSED)
def test_an_operation_that_does_not_apply_refuses_the_patch(obj: Any, operation: Any, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch(obj, [{"op": "add", "path": "/other", "value": 1}, operation])
    assert "other" not in obj
    assert (refused.value.code, refused.value.reason, refused.value.message, refused.value.causes[0].message) == (
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        why,
    )


MALFORMED: dict[str, tuple[Any, str]] = {
    "object": ({}, "object into Go value of type []handlers.jsonPatchOp"),
    "text": ("x", "string into Go value of type []handlers.jsonPatchOp"),
    "null": (None, "null into Go value of type []handlers.jsonPatchOp"),
    "number inside": ([1], "number into Go value of type handlers.jsonPatchOp"),
    "path": ([{"op": "add", "path": 1}], "number into Go struct field jsonPatchOp.path of type string"),
}


@pytest.mark.parametrize(("patch", "what"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_list_of_operations_is_a_bad_request(patch: Any, what: str) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({}, patch)
    assert (refused.value.code, refused.value.message) == (400, f"error decoding patch: json: cannot unmarshal {what}")


def test_too_many_operations_are_refused() -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({}, [{"op": "test", "path": "/a", "value": None}] * 10_001)
    assert refused.value.code == 413
    assert refused.value.message.endswith("The allowed maximum operations in a JSON patch is 10000, got 10001")


def test_copying_cannot_double_an_object_without_end() -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({"a": {"text": "x" * 1000}}, [{"op": "copy", "from": "/a", "path": "/a/again"}] * 100)
    assert refused.value.code == 422
    assert refused.value.causes[0].message.endswith("exceeding the limit 3145728")


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("a~/1", max_size=3),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text("ab~/0-", max_size=3), below, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text("ab~/0-", max_size=3), values, max_size=4)


def difference(source: Any, target: Any, path: str = "") -> list[dict[str, Any]]:
    """Operations that turn one value into the other, step by step where both are containers of one kind."""
    if isinstance(source, dict) and isinstance(target, dict):
        found = [{"op": "remove", "path": f"{path}/{step(k)}"} for k in source.keys() - target.keys()]
        for key, value in target.items():
            below = f"{path}/{step(key)}"
            found += (
                difference(source[key], value, below)
                if key in source
                else [{"op": "add", "path": below, "value": value}]
            )
        return found
    if isinstance(source, list) and isinstance(target, list):
        common = min(len(source), len(target))
        found = [{"op": "remove", "path": f"{path}/{common}"}] * (len(source) - common)
        found += [op for i in range(common) for op in difference(source[i], target[i], f"{path}/{i}")]
        return found + [{"op": "add", "path": f"{path}/-", "value": value} for value in target[common:]]
    return [] if json_equal(source, target) else [{"op": "replace", "path": path, "value": target}]


def step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@given(objects, objects)
def test_a_patch_made_from_two_objects_turns_the_first_into_the_second(source: Any, target: Any) -> None:
    patch = difference(source, target)
    before = copy.deepcopy((source, patch))
    assert json_equal(json_patch(source, patch), target)
    assert (source, patch) == before


paths = st.text("/ab~01-", max_size=6)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "other"])},
    optional={"path": paths, "from": paths, "value": values},
)


@given(objects, st.lists(operations, max_size=4))
def test_no_patch_breaks_the_reader(obj: Any, patch: Any) -> None:
    before = copy.deepcopy((obj, patch))
    with contextlib.suppress(ApiError):
        json_patch(obj, patch)
    assert (obj, patch) == before
