"""The built-in kinds are declared completely and consistently."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from shoal.kube.kinds import BUILT_IN, POD, Kind
from shoal.kube.schema import Schema
from shoal.kube.schemas import groups, named, package, schema_of
from shoal.kube.schemas.schema_dsl import Package


def places(schema: Schema, seen: set[int]) -> Iterator[Schema]:
    """Every place of a tree that may refer back to itself."""
    if id(schema.fields) in seen and schema.fields:
        return
    seen.add(id(schema.fields))
    yield schema
    for below in (*schema.fields.values(), schema.items, schema.values):
        if below is not None:
            yield from places(below, seen)


@pytest.mark.parametrize("kind", BUILT_IN, ids=str)
def test_a_kind_is_an_object_with_kind_version_and_metadata(kind: Kind) -> None:
    schema = schema_of(kind)
    metadata = schema.fields["metadata"]
    assert (schema.type, metadata.component) == ("object", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    assert {"apiVersion", "kind"} < set(schema.fields)


@pytest.mark.parametrize("kind", BUILT_IN, ids=str)
def test_every_field_is_described(kind: Kind) -> None:
    found = [
        f"{schema.component}.{name}"
        for schema in places(schema_of(kind), set())
        for name, below in schema.fields.items()
        if not below.description
    ]
    assert found == []


@pytest.mark.parametrize("group", groups())
def test_every_type_a_declaration_names_exists(group: str) -> None:
    declared = package(group)
    assert [declared.schema(name).type for name in declared.names()]


def test_the_same_schema_is_given_each_time() -> None:
    assert schema_of(POD) is schema_of(POD)


def test_a_schema_of_schemas_refers_back_to_itself() -> None:
    schema = named("JSONSchemaProps", "apiextensions.k8s.io")
    below = schema.fields["properties"].values
    assert below is not None
    assert below.fields is schema.fields


def test_importing_builds_nothing() -> None:
    program = "import sys, shoal.kube.schemas; print(*(name for name in sys.modules if 'schemas.' in name))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["shoal.kube.schemas.schema_dsl"]


def test_the_schema_dsl_declares_every_attribute() -> None:
    types = Package(
        "io.example",
        "v1",
        texts=[
            """
Outer (atomic): The outer.
  name!   string                             Its name,
      in two lines.
  parts   []Part @map(key) +merge(key)       Its parts.
  sizes   [string]int32 @atomic              Sizes by name.
  mode    Mode =On                           Its mode.
  ...Shared

Part: A part.
  key     string                             Its key.
  outer   Outer                              The outer again.

Shared: What others take in.
  both    either(Part|bool)                  A part or nothing.

Mode = string of On Off ""
"""
        ],
    )
    outer = types.schema("Outer")
    name, parts, sizes, mode, both = outer.fields.values()
    assert (outer.required, outer.map_type, outer.go_type) == (("name",), "atomic", "v1.Outer")
    assert name.description == "Its name, in two lines."
    assert (parts.list_keys, parts.patch_key, parts.go_type) == (("key",), "key", "[]v1.Part")
    assert (sizes.map_type, sizes.go_type) == ("atomic", "map[string]int32")
    assert (mode.enum, mode.default, mode.go_type) == (("On", "Off", ""), "On", "v1.Mode")
    assert (both.type, both.format, both.go_inside) == ("any", "object-or-boolean", "Shared")
    assert parts.items is not None
    assert parts.items.fields["outer"].fields is outer.fields


@pytest.mark.parametrize("text", ["T t t", "T: t.\n  a  string @odd  A field."], ids=["header", "mark"])
def test_a_declaration_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a declaration|no such mark"):
        Package("p", "v1", texts=[text]).schema("T")
