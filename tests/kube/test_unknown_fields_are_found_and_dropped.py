from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from kit import crd_builders
from kit.crd_builders import custom, fields, items
from shoal.kube.kinds import CONFIG_MAP, POD, SERVICE
from shoal.kube.objects import Obj
from shoal.kube.schema import drop_unknown, is_clean, type_problem, unknown_fields
from shoal.kube.schemas import schema_of
from shoal.kube.structural_schema import schema_from


def pod(**spec: object) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [], **spec}}


def test_paths_are_those_of_strict_decoding_in_the_order_written() -> None:
    obj = pod(foo=1, containers=[{"name": "c", "bar": 1, "resources": {"limits": {"cpu": "1"}, "q": 1}}])
    obj["top"] = {"nested": 1}
    assert unknown_fields(schema_of(POD), obj) == [
        "spec.containers[0].bar",
        "spec.containers[0].resources.q",
        "spec.foo",
        "top",
    ]


def test_dropping_leaves_the_known_part_and_the_input_alone() -> None:
    obj = pod(foo=1, containers=[{"name": "c", "bar": {"a": 1}}], nodeSelector={"any": "thing"})
    before = copy.deepcopy(obj)
    assert drop_unknown(schema_of(POD), obj) == pod(containers=[{"name": "c"}], nodeSelector={"any": "thing"})
    assert obj == before


def test_nothing_to_drop_gives_the_object_itself() -> None:
    obj = pod(containers=[{"name": "c"}])
    assert drop_unknown(schema_of(POD), obj) is obj


def test_nulls_decode_to_nothing_or_to_the_zero_value() -> None:
    obj = pod(hostname=None, containers=[None, {"name": "c", "args": [None], "resources": {"limits": {"cpu": None}}}])
    assert drop_unknown(schema_of(POD), obj) == pod(
        containers=[{}, {"name": "c", "args": [""], "resources": {"limits": {"cpu": "0"}}}]
    )


def test_a_custom_schema_decides_what_is_known() -> None:
    schema = custom(
        closed=fields(a=crd_builders.TEXT),
        kept={
            "type": "object",
            "properties": {"k": fields(z=crd_builders.TEXT)},
            "x-kubernetes-preserve-unknown-fields": True,
        },
        listed=items(fields(n=crd_builders.TEXT)),
        mapped={"type": "object", "additionalProperties": True},
        embedded={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": crd_builders.TEXT}},
    )
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "odd": 1},
        "spec": {
            "closed": {"a": "x", "b": 1},
            "kept": {"u": {"v": 1}, "k": {"z": "x", "w": 1}},
            "listed": [{"n": "a", "x": 1}],
            "mapped": {"a": 1, "b": {"c": 1}, "d": [{"e": 1}]},
            "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "b": 1},
        },
    }
    assert unknown_fields(schema, obj) == [
        "metadata.odd",
        "spec.closed.b",
        "spec.embedded.b",
        "spec.kept.k.w",
        "spec.listed[0].x",
        "spec.mapped.b.c",
        "spec.mapped.d[0].e",
    ]
    assert drop_unknown(schema, obj)["spec"] == {
        "closed": {"a": "x"},
        "kept": {"u": {"v": 1}, "k": {"z": "x"}},
        "listed": [{"n": "a"}],
        "mapped": {"a": 1, "b": {}, "d": [{}]},
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    }


POD_WORDS = st.sampled_from(["metadata", "spec", "containers", "name", "labels", "volumes", "env", "value", "odd"])
podlike = st.dictionaries(
    POD_WORDS,
    st.recursive(
        crd_builders.scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(POD_WORDS, inner, max_size=3)
    ),
)


@given(st.sampled_from([POD, SERVICE, CONFIG_MAP]), podlike)
def test_what_was_dropped_from_has_no_unknown_fields(kind, obj) -> None:
    schema = schema_of(kind)
    kept = drop_unknown(schema, obj)
    assert unknown_fields(schema, kept) == []
    assert drop_unknown(schema, kept) == kept
    assert type_problem(schema, kept) == type_problem(schema, obj)


@given(st.sampled_from([POD, SERVICE, CONFIG_MAP]), podlike)
def test_a_clean_object_has_no_type_problem_and_no_unknown_field(kind, obj) -> None:
    schema = schema_of(kind)
    if is_clean(schema, obj):
        assert type_problem(schema, obj) is None
        assert unknown_fields(schema, obj) == []
        assert drop_unknown(schema, obj) is obj


@given(crd_builders.resource_schemas, crd_builders.objects)
def test_a_custom_object_has_no_unknown_fields_once_pruned(openapi, obj) -> None:
    schema = schema_from(openapi)
    kept = drop_unknown(schema, obj)
    assert unknown_fields(schema, kept) == []
    assert drop_unknown(schema, kept) == kept
