"""Strategic merge patch: lists joined by key or value, directives, order, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.errors import ApiError
from shoal.kube.patching import strategic_merge
from shoal.kube.schema import Schema

TEXT = Schema(type="string")
PART = Schema(type="object", fields={"name": TEXT, "value": TEXT, "other": TEXT})
MERGED = frozenset({"merge"})
SHAPE = Schema(
    type="object",
    fields={
        "parts": Schema(type="array", items=PART, patch_strategy=MERGED, patch_key="name"),
        "tags": Schema(type="array", items=TEXT, patch_strategy=MERGED),
        "words": Schema(type="array", items=TEXT),
        "labels": Schema(type="object", values=TEXT),
        "way": Schema(type="object", fields={"a": TEXT, "b": TEXT}, patch_strategy=frozenset({"retainKeys"})),
        "unkeyed": Schema(type="array", items=PART, patch_strategy=MERGED),
    },
)


def parts(*names: str, **more: str) -> list[dict[str, str]]:
    return [{"name": name, **more} for name in names]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "an item is joined by its key": (
        {"parts": [{"name": "a", "value": "1", "other": "x"}, {"name": "b"}]},
        {"parts": [{"name": "a", "value": "2"}]},
        {"parts": [{"name": "a", "value": "2", "other": "x"}, {"name": "b"}]},
    ),
    "a new item comes before those the patch does not name": (
        {"parts": parts("a")},
        {"parts": parts("b")},
        {"parts": parts("b", "a")},
    ),
    "an item is deleted": (
        {"parts": parts("a", "b")},
        {"parts": [{"$patch": "delete", "name": "a"}]},
        {"parts": parts("b")},
    ),
    "a list is replaced": (
        {"parts": parts("a", "b")},
        {"parts": [{"$patch": "replace"}, {"name": "c"}]},
        {"parts": parts("c")},
    ),
    "a field of an item is removed": (
        {"parts": [{"name": "a", "value": "1"}]},
        {"parts": [{"name": "a", "value": None}]},
        {"parts": parts("a")},
    ),
    "plain values are joined once": ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, {"tags": ["a", "b", "c"]}),
    "plain values are deleted": ({"tags": ["a", "b"]}, {"$deleteFromPrimitiveList/tags": ["a"]}, {"tags": ["b"]}),
    "deleting from nothing does nothing": ({}, {"$deleteFromPrimitiveList/tags": ["a"]}, {}),
    "other lists are replaced": ({"words": ["a"]}, {"words": ["b"]}, {"words": ["b"]}),
    "maps are joined": (
        {"labels": {"a": "1", "b": "2"}},
        {"labels": {"a": None, "c": "3"}},
        {"labels": {"b": "2", "c": "3"}},
    ),
    "a map is replaced": ({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}),
    "a map is emptied": ({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}),
    "a field is removed": ({"labels": {"a": "1"}}, {"labels": None}, {}),
    "null for what is absent does nothing": ({}, {"labels": None, "way": {"a": None}}, {"way": {}}),
    "only some keys are retained": (
        {"way": {"a": "1"}},
        {"way": {"$retainKeys": ["b"], "b": "2"}},
        {"way": {"b": "2"}},
    ),
    "items are put in order": (
        {"parts": parts("a", "b", "c")},
        {"$setElementOrder/parts": parts("c", "a", "b")},
        {"parts": parts("c", "a", "b")},
    ),
    "items nobody ordered stay near their neighbours": (
        {"parts": parts("x", "a", "y", "b", "z")},
        {"$setElementOrder/parts": parts("b", "a")},
        {"parts": parts("x", "y", "b", "a", "z")},
    ),
    "items are changed and ordered at once": (
        {"parts": parts("a", "b")},
        {"$setElementOrder/parts": parts("c", "a"), "parts": [{"name": "c"}, {"$patch": "delete", "name": "b"}]},
        {"parts": parts("c", "a")},
    ),
    "values are put in order": (
        {"tags": ["a", "b"]},
        {"$setElementOrder/tags": ["c", "b", "a"], "tags": ["c"]},
        {"tags": ["c", "b", "a"]},
    ),
    "an ordered list may be new": (
        {},
        {"$setElementOrder/parts": parts("a"), "parts": parts("a")},
        {"parts": parts("a")},
    ),
    "directives in new values leave no trace": (
        {},
        {"parts": [{"name": "a", "value": None}, {"$patch": "delete", "name": "b"}], "labels": {"$patch": "delete"}},
        {"parts": parts("a")},
    ),
    "items with a doubled key keep their number": (
        {"parts": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]},
        {"parts": [{"name": "a", "other": "x"}]},
        {"parts": [{"name": "a", "value": "1", "other": "x"}, {"name": "a", "value": "2"}]},
    ),
    "a value of another type is replaced": ({"labels": "x"}, {"labels": {"a": "1"}}, {"labels": {"a": "1"}}),
}


@pytest.mark.parametrize(("obj", "patch", "expected"), CASES.values(), ids=CASES)
def test_each_directive_of_a_patch_is_applied(obj: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((obj, patch))
    assert strategic_merge(SHAPE, obj, patch) == expected
    assert (obj, patch) == before


REFUSED: dict[str, tuple[dict[str, Any], Any, int, str]] = {
    "no object": (
        {},
        [],
        400,
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
    ),
    "no merge key": (
        {"parts": parts("a")},
        {"parts": [{"value": "1"}]},
        422,
        "map: map[value:1] does not contain declared merge key: name",
    ),
    "unknown directive": (
        {"labels": {}},
        {"labels": {"$patch": "mend"}},
        422,
        "unknown patch type: mend in map: map[$patch:mend]",
    ),
    "retained keys no list": ({}, {"$retainKeys": "a"}, 400, "invalid patch format of retainKeys"),
    "a key set but not retained": (
        {"way": {}},
        {"way": {"$retainKeys": ["a"], "b": "1"}},
        400,
        "invalid patch format of retainKeys",
    ),
    "deletions no list": (
        {"tags": []},
        {"$deleteFromPrimitiveList/tags": "a"},
        400,
        "invalid patch format of primitive list",
    ),
    "deletions of nothing": ({}, {"$deleteFromPrimitiveList": ["a"]}, 400, "invalid patch format of primitive list"),
    "order no list": ({}, {"$setElementOrder/parts": "a"}, 400, "invalid patch format of setElementOrder list"),
    "order without the item": (
        {"parts": parts("a")},
        {"$setElementOrder/parts": parts("a"), "parts": parts("b")},
        422,
        "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
    ),
    "mixed items": (
        {"parts": parts("a")},
        {"parts": ["b"]},
        422,
        "list element types are not identical: [[map[name:a]] [b]]",
    ),
    "lists of lists": ({"tags": [["a"]]}, {"tags": [["b"]]}, 422, "lists of lists are not supported"),
    "no key known": (
        {"unkeyed": parts("a")},
        {"unkeyed": parts("b")},
        422,
        "cannot merge lists without merge key for array",
    ),
}


@pytest.mark.parametrize(("obj", "patch", "code", "why"), REFUSED.values(), ids=REFUSED)
def test_a_patch_that_cannot_be_meant_is_refused(obj: Any, patch: Any, code: int, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        strategic_merge(SHAPE, obj, patch)
    assert (refused.value.code, refused.value.message) == (code, why)


names = st.sampled_from("abcd")
part = st.fixed_dictionaries({"name": names}, optional={"value": st.sampled_from("12"), "other": st.sampled_from("xy")})
shapes = st.fixed_dictionaries(
    {},
    optional={
        "parts": st.lists(part, max_size=4, unique_by=lambda p: p["name"]),
        "tags": st.lists(names, max_size=4, unique=True),
        "words": st.lists(names, max_size=3),
        "labels": st.dictionaries(names, st.sampled_from("12")),
        "way": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
    },
)


def difference(source: Any, target: Any) -> dict[str, Any]:
    """The patch a client would send: changed items, deletions and the order."""
    patch: dict[str, Any] = {name: None for name in source if name not in target}
    for name, value in target.items():
        before = source.get(name)
        if before is None or name == "words":
            patch[name] = value
        elif name in ("labels", "way"):
            patch[name] = {**value, **{key: None for key in before if key not in value}}
            if name == "way":
                patch[name]["$retainKeys"] = sorted(value)
        elif name == "tags":
            patch[name] = [tag for tag in value if tag not in before]
            patch["$deleteFromPrimitiveList/tags"] = [tag for tag in before if tag not in value]
            patch["$setElementOrder/tags"] = value
        else:
            patch |= part_difference(before, value)
    return patch


def part_difference(before: list[Any], after: list[Any]) -> dict[str, Any]:
    old = {item["name"]: item for item in before}
    kept = {item["name"] for item in after}
    changed = [{**dict.fromkeys(old.get(item["name"], {})), **item} for item in after]
    gone = [{"$patch": "delete", "name": name} for name in old if name not in kept]
    return {"parts": changed + gone, "$setElementOrder/parts": [{"name": item["name"]} for item in after]}


@given(shapes, shapes)
def test_a_patch_made_from_two_objects_turns_the_first_into_the_second(source: Any, target: Any) -> None:
    patch = difference(source, target)
    before = copy.deepcopy((source, patch))
    assert strategic_merge(SHAPE, source, patch) == target
    assert (source, patch) == before


anything = st.recursive(
    st.none() | st.sampled_from(["a", "delete", "replace", 1, True]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "value", "$patch", "$retainKeys", "parts", "tags"]), below, max_size=3
        )
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    [
        "parts",
        "tags",
        "words",
        "labels",
        "way",
        "$setElementOrder/parts",
        "$deleteFromPrimitiveList/tags",
        "$retainKeys",
        "$patch",
    ]
)


@given(shapes, st.dictionaries(fields, anything, max_size=4))
def test_no_patch_breaks_the_reader(obj: Any, patch: Any) -> None:
    before = copy.deepcopy((obj, patch))
    try:
        strategic_merge(SHAPE, obj, patch)
    except ApiError as refused:
        assert refused.code in (400, 422)  # noqa: PT017 - either answer is right, any other is not
    assert (obj, patch) == before
