"""JSON merge patch: the table of RFC 7386 and its laws."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.errors import ApiError
from shoal.kube.patching import merge_patch
from shoal.kube.patching.json_values import json_equal, without_nulls
from shoal.kube.patching.merge_patch import merged

TABLE: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), TABLE, ids=[f"{t}+{p}" for t, p, _ in TABLE])
def test_the_table_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert json_equal(merged(target, patch), result)


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (None, "Invalid JSON Patch"),
        ([1], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ],
    ids=["null", "array", "text"],
)
def test_a_patch_that_is_no_object_is_a_bad_request(patch: Any, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        merge_patch({}, patch)
    assert (refused.value.code, refused.value.message) == (400, why)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abcd"), below, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(objects, objects)
def test_laying_a_patch_over_twice_is_laying_it_over_once(obj: Any, patch: Any) -> None:
    before = copy.deepcopy((obj, patch))
    once = merge_patch(obj, patch)
    assert json_equal(merge_patch(once, patch), once)
    assert (obj, patch) == before


@given(objects, objects)
def test_the_result_shares_nothing_with_the_patch_and_all_it_leaves_alone_with_the_object(obj: Any, patch: Any) -> None:
    before = copy.deepcopy(patch)
    result = merge_patch(obj, patch)
    assert all(result[key] is value for key, value in obj.items() if key not in patch)
    scribble(result)
    assert patch == before


def scribble(value: Any) -> None:
    if isinstance(value, dict):
        for below in value.values():
            scribble(below)
        value["scribble"] = 1
    if isinstance(value, list):
        for below in value:
            scribble(below)
        value.append("scribble")


def difference(source: Any, target: Any) -> Any:
    if not isinstance(source, dict) or not isinstance(target, dict):
        return target
    changed = {
        k: difference(source.get(k), v) for k, v in target.items() if k not in source or not json_equal(source[k], v)
    }
    return {**changed, **{k: None for k in source if k not in target}}


@given(objects.map(without_nulls), objects.map(without_nulls))
def test_a_patch_made_from_two_objects_turns_the_first_into_the_second(source: Any, target: Any) -> None:
    assert json_equal(merge_patch(source, difference(source, target)), target)
