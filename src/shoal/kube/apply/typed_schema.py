"""The schema for field ownership: each value is owned whole, or field by field, or item by item.

A `SchemaNode` is compiled from a `Schema` on first use and kept, because every write of every object walks them.
Children are compiled on first use too: a schema may contain itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from shoal.kube.schema import Schema


class MergeType(IntEnum):
    """How the value at a place is owned."""

    ATOMIC = 0  # a plain value, or a list or map declared atomic
    GRANULAR = 1  # an object, field by field
    ASSOCIATIVE = 2  # a list of objects known by their keys
    SET = 3  # a list of plain values, each known by itself
    DEDUCED = 4  # nothing is declared: objects are owned field by field, everything else whole


# Fields that are there, though empty, in every object of a built-in kind as an API server sees it: filling them
# does not count as adding them.
_ALWAYS_AT_ROOT = frozenset({"metadata", "spec", "status", "source"})
_ALWAYS_BELOW = {"io.k8s.api.core.v1.PersistentVolumeClaimSpec": frozenset({"resources"})}
_NOTHING: frozenset[str] = frozenset()
# Plain types by the names messages have for them; amounts and the like may be written as more than one.
_PLAIN_NAMES = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
_PLAIN: Mapping[str, tuple[type, ...]] = {"string": (str,), "numeric": (int, float), "boolean": (bool,)}
_OF_SEVERAL_TYPES = ("quantity", "int-or-string")
_SET = MergeType.SET


class SchemaNode:
    """One place in objects of a kind."""

    __slots__ = (
        "_depth", "_fields", "_item", "_schema", "_values", "accepts_anything", "always_present", "keys", "merge_type",
        "plain",
    )  # fmt: skip

    def __init__(self, schema: Schema, depth: int) -> None:
        self._schema = schema
        self._depth = depth
        self._fields: dict[str, tuple[str, SchemaNode]] = {}
        self._values: SchemaNode | None = None
        self._item: SchemaNode | None = None
        self.merge_type = _merge_type(schema)
        self.plain = _PLAIN_NAMES.get(schema.type, "") if schema.format not in _OF_SEVERAL_TYPES else ""
        self.accepts_anything = self.merge_type is MergeType.DEDUCED or schema.preserve_unknown
        self.always_present = _always_present(schema, depth)
        # Each key with the default of an item that lacks it.
        keys = schema.list_keys or ((schema.patch_key,) if schema.patch_key else ())
        item_fields = schema.items.fields if schema.items is not None else {}
        self.keys = tuple(sorted((key, item_fields[key].default if key in item_fields else None) for key in keys))

    def accepts(self, value: Any) -> bool:
        """Whether a plain value may stand here."""
        return not self.plain or value is None or type(value) in _PLAIN[self.plain]

    def field(self, name: str) -> tuple[str, SchemaNode] | None:
        """The step and the place of a declared field."""
        known = self._fields.get(name)
        if known is None:
            child = self._schema.fields.get(name)
            if child is None:
                return None
            known = self._fields[name] = (f"f:{name}", SchemaNode(child, self._depth + 1))
        return known

    def child_of(self, name: str) -> tuple[str, SchemaNode]:
        """The step and the place of any field: declared, an entry of a map, or unknown."""
        return self._fields.get(name) or self.field(name) or (f"f:{name}", self.values())

    def values(self) -> SchemaNode:
        if self._values is None:
            self._values = _DEDUCED if self._schema.values is None else SchemaNode(self._schema.values, self._depth + 1)
        return self._values

    def declares_values(self) -> bool:
        return self._schema.values is not None or self.accepts_anything

    def item(self) -> SchemaNode:
        if self._item is None:
            self._item = SchemaNode(self._schema.items or _ANYTHING, self._depth + 1)
        return self._item

    def step(self, item: Any) -> str | None:
        """The step to an item of this list; None where the item has no identity (it lacks every key)."""
        if self.merge_type is _SET:
            if isinstance(item, dict | list) or item is None:
                return None
            return f"v:{_text(item)}"
        if not isinstance(item, dict):
            return None
        encoded = ""
        for key, default in self.keys:
            value = item.get(key, default)
            if value is not None:
                encoded += f',"{key}":{_text(value)}'
        return f"k:{{{encoded[1:]}}}" if encoded else None

    def steps(self, items: list[Any]) -> dict[str, Any] | None:
        """The items by their steps, doubled ones as a `Duplicates`; None where one has no identity."""
        by_step: dict[str, Any] = {}
        doubled: dict[str, list[Any]] = {}
        for item in items:
            step = self.step(item)
            if step is None:
                return None
            if step in by_step:
                doubled.setdefault(step, [by_step[step]]).append(item)
            else:
                by_step[step] = item
        # Doubled keys are invalid in an applied configuration but may be stored: old objects have them.
        for step, alike in doubled.items():
            by_step[step] = Duplicates(alike)
        return by_step


class Duplicates(tuple[Any, ...]):
    """Items that share one identity. They cannot be addressed one by one, so they are owned together."""

    __slots__ = ()


def _text(value: Any) -> str:
    return encode_basestring(value) if type(value) is str else json.dumps(value, ensure_ascii=False)


def _merge_type(schema: Schema) -> MergeType:
    if schema.type == "array":
        merges_by_key = "merge" in schema.patch_strategy and bool(schema.patch_key)
        if schema.list_type == "map" or (schema.list_type == "atomic" and merges_by_key):
            return MergeType.ASSOCIATIVE
        return MergeType.SET if schema.list_type == "set" else MergeType.ATOMIC
    if schema.type == "object":
        if schema.map_type == "atomic":
            return MergeType.ATOMIC
        return MergeType.GRANULAR if schema.fields or schema.values is not None else MergeType.DEDUCED
    return MergeType.DEDUCED if schema.type == "any" and schema.format != "int-or-string" else MergeType.ATOMIC


def _always_present(schema: Schema, depth: int) -> frozenset[str]:
    if schema.custom or depth > 1:
        return _NOTHING
    names = _ALWAYS_AT_ROOT
    if depth == 1:
        names = _ALWAYS_BELOW.get(schema.component, _NOTHING) | frozenset(schema.required)
    children = {name: schema.fields[name] for name in names if name in schema.fields}
    return frozenset(name for name, child in children.items() if child.type == "array" or child.fields)


_ANYTHING = Schema()
_DEDUCED = SchemaNode(_ANYTHING, 99)


@lru_cache(maxsize=512)
def schema_node(schema: Schema) -> SchemaNode:
    """The root place of a kind."""
    return SchemaNode(schema, 0)
