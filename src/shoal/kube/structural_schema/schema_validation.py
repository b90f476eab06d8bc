"""Whether an object of a custom kind is valid by its schema: every error, with the messages of Kubernetes.

The order of the checks at one place is that of the API server: type, conditions (allOf, anyOf, oneOf, not), text,
number, list, enum, fields. On an update, what did not change is not validated again, so that an object written under an
older schema can still be changed elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec

from shoal.kube import fast_validation
from shoal.kube.errors import Cause, bounded
from shoal.kube.re2 import BadPattern, compiled
from shoal.kube.schema import Schema
from shoal.kube.structural_schema.string_formats import reads_as
from shoal.kube.validation.errors import (
    duplicate,
    invalid,
    not_supported,
    quote,
    required,
    too_long,
    too_many,
)

_MISSING: Any = object()
_PLAIN = frozenset({"types"})
_LARGEST_EXACT = 2**53 - 1  # a float up to here may stand for an integer
_NUMBER_FORMATS = ("int32", "int64", "float", "double")
_RANGES = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
NO_FIELD = "<nil>"  # the path of an error that belongs to no one field


def validate(schema: Schema, obj: Any, old: Any = None) -> list[Cause]:
    """Every error in `obj`; with `old`, only those in fields that have changed."""
    if _is_surely_valid(schema, obj, old):
        return []
    before = _MISSING if old is None else old
    return bounded(chain(_check(schema, obj, "", before), _check_lists(schema, obj, "", before)))


def _is_surely_valid(schema: Schema, obj: Any, old: Any) -> bool:
    """Most writes are valid, and most change the status alone: its compiled types answer without a walk."""
    if type(obj) is not dict or schema.embedded_resource or not _PLAIN.issuperset(schema.rules):
        return False
    if not all(name in obj for name in schema.required):
        return False
    before = old if isinstance(old, dict) else {}
    for name, child in obj.items():
        below = schema.fields.get(name)
        if below is None or (name in before and _unchanged(child, before[name])):
            continue
        if below.custom:
            if not fast_validation.schema_validator(below).accepts(child):
                return False
        # A definition may only restrict names, and these were validated when the object was created.
        elif "restricts" in below.rules:
            was = before.get(name)
            if not isinstance(child, dict) or not isinstance(was, dict):
                return False
            if any(child.get(part) != was.get(part) for part in ("name", "generateName")):
                return False
    return True


def _unchanged(value: Any, before: Any) -> bool:
    return before is not _MISSING and type(value) is type(before) and bool(value == before)


def _check(schema: Schema, value: Any, path: str, before: Any) -> Iterator[Cause]:
    if _unchanged(value, before):
        return
    rules = schema.rules
    if not schema.custom:
        # Metadata is validated like that of every kind; a definition may only restrict names further.
        if "restricts" in rules:
            yield from _check(rules["restricts"], value, path, _MISSING)
        return
    if isinstance(value, int) and value not in _RANGES["int64"]:
        try:
            value = float(value)  # a number too large for an integer is read as a float
        except OverflowError:
            value = sys.float_info.max if value > 0 else -sys.float_info.max
    yield from _check_type(schema, value, path)
    # The checks run in the order in which the API server reports their errors.
    if value is not None:
        if "allOf" in rules or "anyOf" in rules or "oneOf" in rules or "not" in rules:
            yield from _check_conditions(schema, value, path)
        if isinstance(value, str):
            yield from _check_text(schema, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _check_number(schema, value, path)
        elif isinstance(value, list):
            if schema.items is not None:
                for index, child in enumerate(value):
                    yield from _check(schema.items, child, f"{path}[{index}]", _MISSING)
            if "minItems" in rules and len(value) < rules["minItems"]:
                yield invalid(path, len(value), f"{path} in body should have at least {rules['minItems']} items")
            if "maxItems" in rules and len(value) > rules["maxItems"]:
                yield too_many(path, len(value), rules["maxItems"])
    # In Python true equals 1, in JSON it does not.
    if schema.enum and not any(
        value == choice and isinstance(value, bool) is isinstance(choice, bool) for choice in schema.enum
    ):
        choices = [c if isinstance(c, str) else msgspec.json.encode(c).decode() for c in schema.enum]
        yield not_supported(path, value, choices)
    if isinstance(value, dict):
        yield from _check_fields(schema, value, path, before)


# --- types ---------------------------------------------------------------------------------------------------------


def json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _check_type(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    types = schema.rules.get("types")
    if not types or (value is None and schema.nullable):
        return
    found = json_type(value)
    whole = found == "number" and "integer" in types and value.is_integer() and abs(value) <= _LARGEST_EXACT
    if found in types or whole or (found == "integer" and "number" in types):
        return
    wanted = ",".join(types)
    # The message of the API server's validator names the format, and every JSON number a float64.
    if schema.format in _NUMBER_FORMATS and found in ("boolean", "object", "number"):
        wanted, found = schema.format, "float64" if found == "number" else ""
    yield _type_invalid(path, found, f"must be of type {wanted}: {quote(found)}")


def _type_invalid(path: str, value: str, detail: str) -> Cause:
    return Cause("FieldValueTypeInvalid", f"Invalid value: {quote(value)}: {path} in body {detail}", path)


# --- texts and numbers ---------------------------------------------------------------------------------------------


def _check_text(schema: Schema, text: str, path: str) -> Iterator[Cause]:
    rules = schema.rules
    if "maxLength" in rules and len(text) > rules["maxLength"]:
        yield too_long(path, rules["maxLength"])
    elif "minLength" in rules and len(text) < rules["minLength"]:
        yield invalid(path, text, f"{path} in body should be at least {rules['minLength']} chars long")
    elif "pattern" in rules:
        try:
            matches = compiled(rules["pattern"]).matches(text)
        except BadPattern:
            matches = False
        if not matches:
            yield invalid(path, text, f"{path} in body should match '{rules['pattern']}'")
    if schema.format and schema.format != "int-or-string" and not reads_as(text, schema.format):
        yield _type_invalid(path, text, f"must be of type {schema.format}: {quote(text)}")


def _check_number(schema: Schema, number: int | float, path: str) -> Iterator[Cause]:
    rules = schema.rules
    if schema.type == "integer":
        form = schema.format if schema.format in _RANGES else "int64"
        if not float(number).is_integer() or int(number) not in _RANGES[form]:
            detail = f"with format {schema.format}" if schema.format in _RANGES else "(default format)"
            yield invalid(NO_FIELD, "", f"Checked value must be of type integer {detail} in {path}")
    factor, low, high = rules.get("multipleOf"), rules.get("minimum"), rules.get("maximum")
    if isinstance(number, int):  # the API server compares integers as integers, so a limit of 1.5 counts as 1
        low, high = low if low is None else int(low), high if high is None else int(high)
    if factor and number % factor != 0:
        yield _out_of(path, number, "a multiple of", factor)
    below, above = rules.get("exclusiveMinimum"), rules.get("exclusiveMaximum")
    if low is not None and (number <= low if below else number < low):
        yield _out_of(path, number, "greater than" if below else "greater than or equal to", low)
    if high is not None and (number >= high if above else number > high):
        yield _out_of(path, number, "less than" if above else "less than or equal to", high)


def _out_of(path: str, number: int | float, relation: str, limit: int | float) -> Cause:
    shown = str(int(limit)) if isinstance(number, int) else go_float(float(limit))
    value = number if isinstance(number, int) else go_float(number)
    detail = f"{path} in body should be {relation} {shown}"
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {detail}", path)


def go_float(number: float) -> str:
    """A number as Go prints it: the fewest digits that identify it, with an exponent from a million on."""
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    places = len(digits) + exponent - 1
    if -4 <= places < 6:
        return repr(number).removesuffix(".0")
    tail = "".join(str(digit) for digit in digits[1:])
    mantissa = f"{digits[0]}.{tail}" if tail else str(digits[0])
    return f"{'-' if sign else ''}{mantissa}e{'-' if places < 0 else '+'}{abs(places):02d}"


# --- fields and conditions -----------------------------------------------------------------------------------------


def _check_fields(schema: Schema, obj: dict[str, Any], path: str, before: Any) -> Iterator[Cause]:
    rules = schema.rules
    if "minProperties" in rules and len(obj) < rules["minProperties"]:
        yield invalid(path, len(obj), f"{path} in body should have at least {rules['minProperties']} properties")
    if "maxProperties" in rules and len(obj) > rules["maxProperties"]:
        yield too_many(path, len(obj), rules["maxProperties"])
    was = before if isinstance(before, dict) else {}
    for name, child in obj.items():
        here = f"{path}.{name}" if path else name
        below = schema.field(name)
        if "closed" in rules and name not in schema.fields:
            yield invalid(path, name, f"{path}.{name} in body is a forbidden property")
        elif below is not None:
            yield from _check(below, child, here, was.get(name, _MISSING))
    for name in schema.required:
        if name not in obj:
            yield required(f"{path}.{name}" if path else name)
    if schema.embedded_resource:
        for name in ("apiVersion", "kind"):
            if not obj.get(name):
                yield required(f"{path}.{name}")


def _check_conditions(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    rules = schema.rules
    if "anyOf" in rules:
        failures = [list(_check(part, value, path, _MISSING)) for part in rules["anyOf"]]
        if all(failures):
            yield invalid(NO_FIELD, "", f"{quote(path)} must validate at least one schema (anyOf)")
            yield from min(failures, key=len)
    if "oneOf" in rules:
        failures = [list(_check(part, value, path, _MISSING)) for part in rules["oneOf"]]
        valid = sum(not found for found in failures)
        if valid != 1:
            how = f"Found {valid} valid alternatives" if valid else "Found none valid"
            yield invalid(NO_FIELD, "", f"{quote(path)} must validate one and only one schema (oneOf). {how}")
            yield from () if valid else min(failures, key=len)
    if "allOf" in rules:
        failures = [list(_check(part, value, path, _MISSING)) for part in rules["allOf"]]
        for found in failures:
            yield from found
        if any(failures):
            none = ". None validated" if all(failures) else ""
            yield invalid(NO_FIELD, "", f"{quote(path)} must validate all the schemas (allOf){none}")
    if "not" in rules and not any(_check(rules["not"], value, path, _MISSING)):
        yield invalid(NO_FIELD, "", f"{quote(path)} must not validate the schema (not)")


# --- lists that are sets or maps -----------------------------------------------------------------------------------


def _check_lists(schema: Schema, value: Any, path: str, before: Any) -> Iterator[Cause]:
    if _unchanged(value, before) or not schema.custom:
        return
    if isinstance(value, dict):
        was = before if isinstance(before, dict) else {}
        for name, child in value.items():
            below = schema.fields.get(name)
            if below is not None:
                yield from _check_lists(below, child, f"{path}.{name}" if path else name, was.get(name, _MISSING))
            elif schema.values is not None:
                yield from _check_lists(schema.values, child, f"{path}[{name}]", was.get(name, _MISSING))
    elif isinstance(value, list):
        if schema.list_type in ("set", "map"):
            yield from _duplicates(schema, value, path)
        if schema.items is not None:
            for index, child in enumerate(value):
                yield from _check_lists(schema.items, child, f"{path}[{index}]", _MISSING)


def _duplicates(schema: Schema, items: list[Any], path: str) -> Iterator[Cause]:
    keys = items
    if schema.list_type == "map":
        for index, item in enumerate(items):
            if item is not None and not isinstance(item, dict):
                yield invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
                return
        keys = [{name: item[name] for name in schema.list_keys if name in item} if item else {} for item in items]
    seen: dict[bytes, int] = {}
    for index, key in enumerate(keys):
        shown = msgspec.json.encode(key, order="deterministic")
        seen[shown] = seen.get(shown, 0) + 1
        if seen[shown] == 2:  # reported once, however often it recurs
            yield duplicate(f"{path}[{index}]", key)
