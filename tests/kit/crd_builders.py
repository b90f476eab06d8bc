"""Definitions of custom resources, and ways to make schemas and JSON by chance."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from shoal.kube.objects import Obj
from shoal.kube.schema import Schema
from shoal.kube.structural_schema import schema_from

TEXT: Obj = {"type": "string"}


def fields(**below: Obj) -> Obj:
    return {"type": "object", "properties": below}


def items(of: Obj, **more: Any) -> Obj:
    return {"type": "array", "items": of, **more}


def spec_schema(spec: Obj) -> Obj:
    return fields(spec=spec)


def custom(**below: Obj) -> Schema:
    """The schema of a custom resource whose spec has these fields."""
    return schema_from(spec_schema(fields(**below)))


def version(schema: Obj | None = None, name: str = "v1", **more: Any) -> Obj:
    made: Obj = {"name": name, "served": True, "storage": True}
    shown = {"schema": {"openAPIV3Schema": schema if schema is not None else spec_schema(fields(size=TEXT))}}
    return {**made, **shown, **more}


def definition(*versions: Obj, name: str = "widgets.example.com", **spec: Any) -> Obj:
    """A sound CustomResourceDefinition with its defaults set, except for what the test says."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "conversion": {"strategy": "None"},
            "versions": list(versions) or [version()],
            **spec,
        },
    }


# --- by chance -----------------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "spec", "metadata", "kind", "size", "x-y"])
scalars = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 2.0, 2**31, 2**70]) | st.text(max_size=3)
)
json = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4))
objects = st.dictionaries(names, json, max_size=5)

_texts = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={"default": st.text(max_size=2), "maxLength": st.integers(0, 3), "nullable": st.booleans()},
)
_numbers = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={"minimum": st.integers(-3, 3), "default": st.integers(0, 2), "multipleOf": st.integers(1, 3)},
)
_free = st.sampled_from(
    [
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object"},
        {"type": "boolean", "default": True},
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    ]
)


def _deeper(inner: st.SearchStrategy[Obj]) -> st.SearchStrategy[Obj]:
    with_fields = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(names, inner, max_size=4)},
        optional={"default": st.just({}), "x-kubernetes-preserve-unknown-fields": st.just(True)},
    )
    maps = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner | st.booleans()})
    return with_fields | maps | st.builds(items, inner)


schemas = st.recursive(_texts | _numbers | _free, _deeper, max_leaves=8)
resource_schemas = st.builds(
    lambda below: {"type": "object", "properties": below},
    st.dictionaries(st.sampled_from(["a", "b", "spec", "size"]), schemas, max_size=4),
)
