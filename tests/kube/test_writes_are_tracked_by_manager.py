"""Ordinary writes: what a write changed belongs to its writer, and to nobody else any more."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.kube import kinds
from shoal.kube.apply import apply, track
from shoal.kube.apply.fieldsets import difference, intersection, is_field_set, paths, union
from shoal.kube.objects import Obj
from shoal.kube.schema import Schema
from shoal.kube.schemas import schema_of

POD = schema_of(kinds.POD)
CONFIG_MAP = schema_of(kinds.CONFIG_MAP)
T0, T1 = "2026-11-16T04:00:00Z", "2026-11-16T05:00:00Z"
LEAF: Obj = {}
HERE: Obj = {".": {}}


def settings(data: Obj | None = None, **meta: Any) -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "d", **meta}}
    return obj if data is None else {**obj, "data": data}


def write(live: Obj | None, new: Obj, by: str, now: str = T0, **how: Any) -> Obj:
    return track(how.pop("schema", CONFIG_MAP), live, new, manager=by, now=now, **how)


def entry(manager: str, fields: Obj, time: str = T0, **more: str) -> Obj:
    return {
        "manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
        "fieldsV1": fields, **more,
    }  # fmt: skip


def entries(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("managedFields", [])


def test_a_create_belongs_to_its_creator_but_for_what_the_system_writes() -> None:
    system = {"uid": "u", "creationTimestamp": T0, "generation": 1, "resourceVersion": "1"}
    result = write(None, settings({"a": "1"}, labels={"x": "1"}, generateName="c-", **system), "one")
    fields = {
        "f:data": {**HERE, "f:a": LEAF},
        "f:metadata": {"f:labels": {**HERE, "f:x": LEAF}, "f:generateName": LEAF},
    }
    assert entries(result) == [entry("one", fields)]


def test_a_created_pod_is_owned_item_by_item() -> None:
    spec = {
        "containers": [
            {"name": "m", "image": "i", "env": [{"name": "A", "value": "1"}], "args": ["x"], "resources": {}}
        ],
        "securityContext": {},
        "nodeSelector": {"a": "b"},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    # spec and containers are there in every pod; to fill them is not to add them.
    assert entries(write(None, pod, "one", schema=POD)) == [
        entry(
            "one",
            {
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"m"}': {
                            **HERE,
                            "f:name": LEAF,
                            "f:image": LEAF,
                            "f:args": LEAF,
                            "f:resources": LEAF,
                            "f:env": {**HERE, 'k:{"name":"A"}': {**HERE, "f:name": LEAF, "f:value": LEAF}},
                        }
                    },
                    "f:securityContext": LEAF,
                    "f:nodeSelector": LEAF,
                }
            },
        )
    ]


def test_a_custom_kind_owns_the_spec_it_added() -> None:
    shape = Schema(type="object", custom=True, fields={"spec": Schema(type="object", preserve_unknown=True)})
    made = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": [1]}}
    assert entries(write(None, made, "one", schema=shape)) == [entry("one", {"f:spec": {**HERE, "f:a": LEAF}})]


def test_a_changed_value_changes_hands() -> None:
    live = write(None, settings({"a": "1", "b": "1"}), "one")
    new = {**live, "data": {"a": "2", "b": "1", "c": "1"}}
    assert entries(write(live, new, "two", T1)) == [
        entry("one", {"f:data": {**HERE, "f:b": LEAF}}),
        entry("two", {"f:data": {"f:a": LEAF, "f:c": LEAF}}, T1),
    ]


def test_a_removed_value_has_no_owner_and_changes_no_timestamp() -> None:
    live = write(None, settings({"a": "1", "b": "1"}), "one")
    assert entries(write(live, {**live, "data": {"a": "1"}}, "two", T1)) == [
        entry("one", {"f:data": {**HERE, "f:a": LEAF}})
    ]


def test_a_write_that_changes_nothing_keeps_everything() -> None:
    live = write(None, settings({"a": "1"}), "one")
    assert write(live, copy.deepcopy(live), "two", T1) == live


def test_a_write_without_managed_fields_keeps_them() -> None:
    live = write(None, settings({"a": "1"}), "one")
    assert write(live, settings({"a": "1"}), "two", T1) == live


def test_entries_that_make_no_sense_are_ignored() -> None:
    live = write(None, settings({"a": "1"}), "one")
    for nonsense in ([1], [{"operation": "Guess"}], [entry("x", {"f:a": 5})], [entry("x", {"k:{": {}})]):
        assert write(live, settings({"a": "1"}, managedFields=nonsense), "two", T1) == live


def test_a_write_of_managed_fields_can_give_a_field_away() -> None:
    live = write(None, settings({"a": "1"}), "one")
    given = [entry("heir", {"f:data": {**HERE, "f:a": LEAF}})]
    assert entries(write(live, settings({"a": "1"}, managedFields=given), "two", T1)) == given


def test_an_object_with_its_entries_emptied_is_not_tracked_until_it_is_applied_to() -> None:
    live = write(None, settings({"a": "1"}), "one")
    emptied = write(live, settings({"a": "1"}, managedFields=[{}]), "one")
    assert emptied == settings({"a": "1"})
    assert write(emptied, settings({"a": "2"}), "two") == settings({"a": "2"})
    again = apply(CONFIG_MAP, emptied, settings({"b": "1"}), manager="three", force=False, now=T1)
    assert [(e["manager"], e["operation"]) for e in entries(again)] == [
        ("three", "Apply"),
        ("before-first-apply", "Update"),
    ]


def test_a_subresource_has_its_own_entry() -> None:
    live = write(
        None,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"hostname": "h"}},
        "one",
        schema=POD,
    )
    result = write(live, {**live, "status": {"phase": "Running"}}, "one", T1, schema=POD, subresource="status")
    assert entries(result) == [
        entry("one", {"f:spec": {"f:hostname": LEAF}}),
        entry("one", {"f:status": {"f:phase": LEAF}}, T1, subresource="status"),
    ]


def test_many_updaters_are_remembered_together() -> None:
    live = write(None, settings({}), "m00", "2026-11-16T00:00:00Z")
    for n in range(1, 13):
        live = write(live, {**live, "data": {**live["data"], f"k{n}": "1"}}, f"m{n:02}", f"2026-11-16T00:00:{n:02}Z")
    found = entries(live)
    assert [e["manager"] for e in found] == ["ancient-changes", *(f"m{n:02}" for n in range(4, 13))]
    owned = {path for e in found for path in paths(e["fieldsV1"])}
    assert owned == {".data", *(f".data.k{n}" for n in range(1, 13))}


steps = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
nodes = st.recursive(st.just({}), lambda below: st.dictionaries(st.one_of(steps), below, max_size=3), max_leaves=8)


def with_members(node: Any, draw: Any) -> Any:
    below = {step: with_members(inner, draw) for step, inner in node.items()}
    return {".": {}, **below} if below and draw(st.booleans()) else below


field_sets = st.composite(
    lambda draw: {s: with_members(n, draw) for s, n in draw(st.dictionaries(steps, nodes, max_size=3)).items()}
)()


@given(field_sets, field_sets)
def test_operations_on_field_sets_are_those_on_sets_of_paths(left: Any, right: Any) -> None:
    before = copy.deepcopy((left, right))
    ours, theirs = set(paths(left)), set(paths(right))
    assert set(paths(union(left, right))) == ours | theirs
    assert set(paths(difference(left, right))) == ours - theirs
    assert set(paths(intersection(left, right))) == ours & theirs
    assert all(
        is_field_set(found) for found in (union(left, right), difference(left, right), intersection(left, right))
    )
    assert (left, right) == before


values = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
writers = st.sampled_from(["one", "two", "three"])


@given(st.lists(st.tuples(writers, values), min_size=1, max_size=8))
def test_every_value_has_exactly_one_owner_and_it_is_the_last_to_change_it(
    writes: list[tuple[str, dict[str, str]]],
) -> None:
    live: Obj | None = None
    last: dict[str, str] = {}
    before: dict[str, str] = {}
    for writer, data in writes:
        live = write(live, settings(data), writer)
        last = {k: last[k] if before.get(k) == v else writer for k, v in data.items()}
        before = data
        found = [
            (path, e["manager"]) for e in entries(live) for path in paths(e["fieldsV1"]) if path.startswith(".data.")
        ]
        assert sorted(found) == sorted((f".data.{key}", owner) for key, owner in last.items())
