"""The fast path of validation: one walk that returns "surely valid" or "validate in full".

Most writes are valid, and most of those by programs that write one status after the other. `fits` never builds a
message and returns at the first rule it does not support; `validate` validates in full whatever `fits` does not pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from shoal.kube import fast_validation
from shoal.kube.schema import Schema
from shoal.kube.structural_schema.string_formats import reads_as

_RANGES = {"int32": range(-(2**31), 2**31)}
_INT64 = range(-(2**63), 2**63)
_PLAIN = frozenset({"types"})
_NUMBER = frozenset({"types", "minimum", "maximum"})
_cached = lru_cache(maxsize=4096)(reads_as)
_WORTH_REMEMBERING = 256  # characters; longer texts are rare, and many of them would fill the memory


def fits(schema: Schema, obj: Any, old: Any) -> bool:
    """Whether `obj` is surely valid; values that are unchanged from `old` need no check."""
    if obj.__class__ is not dict or not _PLAIN.issuperset(schema.rules) or not _is_complete(schema, obj):
        return False
    before_value = old if isinstance(old, dict) else {}
    for name, child in obj.items():
        below = schema.fields.get(name)
        if below is None or (
            name in before_value and child.__class__ is before_value[name].__class__ and child == before_value[name]
        ):
            continue
        if not below.custom:
            before = before_value.get(name)
            # A definition may only restrict names, and these were validated when the object was created.
            if "restricts" in below.rules and not (
                isinstance(child, dict)
                and isinstance(before, dict)
                and all(child.get(part) == before.get(part) for part in ("name", "generateName"))
            ):
                return False
        elif not (fast_validation.schema_validator(below).accepts(child) or _fits(below, child)):
            return False
    return True


def _fits(schema: Schema, value: Any) -> bool:
    if value is None:
        return schema.nullable and not schema.enum
    expected, rules = schema.type, schema.rules
    if expected == "integer":
        if value.__class__ is not int or schema.enum or not _NUMBER.issuperset(rules):
            return False
        low, high = rules.get("minimum"), rules.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            return False
        return value in _RANGES.get(schema.format, _INT64)
    if not _PLAIN.issuperset(rules):
        return False
    if expected == "object":
        if value.__class__ is not dict or not _is_complete(schema, value):
            return False
        fields, inner = schema.fields, schema.values
        for name, child in value.items():
            below = fields.get(name) or inner
            if below is not None and not _fits(below, child):
                return False
        return True
    if expected == "array":
        if value.__class__ is not list or (schema.list_type != "atomic" and len(value) > 1):
            return False
        return schema.items is None or all(_fits(schema.items, child) for child in value)
    if expected == "string":
        if value.__class__ is not str:
            return False
        if schema.enum:
            return value in schema.enum
        check = _cached if len(value) < _WORTH_REMEMBERING else reads_as
        return not schema.format or check(value, schema.format)
    return expected == "boolean" and value.__class__ is bool and not schema.enum


def _is_complete(schema: Schema, obj: Mapping[str, Any]) -> bool:
    return not schema.embedded_resource and all(name in obj for name in schema.required)
