"""Fast validation: a schema compiled to msgspec types, whose converter walks a value in C.

Nearly every object written is valid, so the cost of a write is the walk that finds no error. The msgspec types
built here may reject valid values (a rare form of a time) but never accept an invalid one: a rejected value is
validated in full by `shoal.kube.schema` or `shoal.kube.structural_schema`, which also produce the messages. Building
the types costs as much as some hundred full walks, so it waits until a schema has proved busy; a schema that the types
cannot express (a recursive one, an unknown rule) stays with the full walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

if TYPE_CHECKING:
    from shoal.kube.schema import Schema

COMPILE_AFTER = 200  # walks after which a schema gets types of its own
KNOWN_SCHEMAS = 1024

_INT32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
_SECOND = rf"(?a)^[12]\d{{3}}-{_DAY}T(?:[01]\d|2[0-3])(?::[0-5]\d){{2}}"
_TEXTS: Mapping[str, Any] = {
    "": str,
    "date-time": Annotated[str, Meta(pattern=rf"{_SECOND}Z\Z")],
    "micro-time": Annotated[str, Meta(pattern=rf"{_SECOND}\.\d{{6}}Z\Z")],
    "quantity": Annotated[str, Meta(pattern=r"(?a)^\d{1,15}(?:m|k|M|G|T|Ki|Mi|Gi|Ti)?\Z")],
    "byte": Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9+/]{4})*\Z")],
    "int-or-string": _INT32 | str,
}
_PLAIN = frozenset({"types"})
_NUMBER = frozenset({"types", "minimum", "maximum"})


class _Inexpressible(Exception):
    """No type expresses this schema."""


class FastValidator:
    """The fast check of one schema; `accepts` is True, or False where the full walk must decide."""

    __slots__ = ("_build_type", "_schema", "_type", "_uses")

    def __init__(self, schema: Schema, build_type: Callable[[Schema], Any]) -> None:
        self._schema = schema
        self._build_type = build_type
        self._uses = 0
        self._type: Any = None

    def accepts(self, value: Any) -> bool:
        if self._type is None:
            self._uses += 1
            # Not `>=`: a schema that no type expresses would be tried again on every write.
            if self._uses != COMPILE_AFTER:
                return False
            try:
                self._type = self._build_type(self._schema)
            except (_Inexpressible, RecursionError):
                return False
        try:
            msgspec.convert(value, self._type)
        except (msgspec.ValidationError, RecursionError):
            return False
        return True


@lru_cache(maxsize=KNOWN_SCHEMAS)
def decode_validator(schema: Schema) -> FastValidator:
    """Whether all types are right, all fields known, and no null is stray: `shoal.kube.schema.is_clean`."""
    return FastValidator(schema, _decode_type)


@lru_cache(maxsize=KNOWN_SCHEMAS)
def schema_validator(schema: Schema) -> FastValidator:
    """Whether a value is valid by a custom schema: `shoal.kube.structural_schema.schema_validation`."""
    return FastValidator(schema, _schema_type)


# --- what decodes cleanly ------------------------------------------------------------------------------------------


@lru_cache(maxsize=KNOWN_SCHEMAS)  # many places share one schema
def _decode_type(schema: Schema) -> Any:
    schema_type = schema.type
    if schema_type == "object":
        return _object(schema, _nullable_decode_type, closed=not schema.preserve_unknown)
    if schema_type == "array":
        return list[Any] if schema.items is None else list[_decode_type(schema.items)]  # type: ignore[misc]
    if schema_type == "any":
        if schema.preserve_unknown if schema.custom else schema.values is None:
            return Any
        return None | str | int | float | bool  # objects may stand there too: rare enough for the slow walk
    if schema_type == "string":
        return str if schema.custom and schema.format != "int-or-string" else _TEXTS.get(schema.format, str)
    if schema_type == "integer":
        return _INT32 if schema.format == "int32" else _INT64
    return bool if schema_type == "boolean" else float


def _nullable_decode_type(schema: Schema) -> Any:
    type_ = _decode_type(schema)
    return type_ | None if schema.custom and schema.nullable else type_


# --- what a custom schema accepts ----------------------------------------------------------------------------------


def _schema_type(schema: Schema) -> Any:
    type_ = _value_type(schema)
    return type_ | None if schema.nullable and not schema.enum else type_


def _value_type(schema: Schema) -> Any:
    schema_type, rules = schema.type, schema.rules
    if not (_NUMBER if schema_type == "integer" else _PLAIN).issuperset(rules) or schema.embedded_resource:
        raise _Inexpressible
    if schema_type == "object":
        return _object(schema, _schema_type, closed=False, required=frozenset(schema.required))
    if schema_type == "array":
        maximum = None if schema.list_type == "atomic" else 1  # doubled items are looked for elsewhere
        item = Any if schema.items is None else _schema_type(schema.items)
        return list[item] if maximum is None else Annotated[list[item], Meta(max_length=maximum)]  # type: ignore[valid-type]
    if schema_type == "string" and schema.enum:
        return Literal[tuple(choice for choice in schema.enum if isinstance(choice, str))]
    if schema_type == "string" and schema.format in ("", "date-time"):
        return _TEXTS[schema.format]
    if schema_type == "integer" and not schema.enum:
        bits = 31 if schema.format == "int32" else 63
        low, high = rules.get("minimum", -(2**bits)), rules.get("maximum", 2**bits - 1)
        if low != int(low) or high != int(high) or low < -(2**bits) or high >= 2**bits:
            raise _Inexpressible  # a limit that is no whole number, or outside of the format
        return Annotated[int, Meta(ge=int(low), le=int(high))]
    if schema_type == "boolean" and not schema.enum:
        return bool
    raise _Inexpressible


# --- both ----------------------------------------------------------------------------------------------------------


def _object(
    schema: Schema, build_type: Callable[[Schema], Any], *, closed: bool, required: frozenset[str] = frozenset()
) -> Any:
    if not schema.fields:
        if required or (schema.values is None and closed):
            raise _Inexpressible
        return dict[str, Any if schema.values is None else build_type(schema.values)]  # type: ignore[misc]
    if schema.values is not None:
        raise _Inexpressible
    names = {f"field{number}": name for number, name in enumerate(schema.fields)}
    fields: list[Any] = []
    for slot, name in names.items():
        type_ = build_type(schema.fields[name])
        fields.append((slot, type_) if name in required else (slot, type_ | UnsetType, UNSET))
    if required - schema.fields.keys():
        raise _Inexpressible
    title = (schema.go_type or "Object").rpartition(".")[2] or "Object"
    return msgspec.defstruct(
        title, fields, rename=names, forbid_unknown_fields=closed, gc=False, kw_only=True, frozen=False
    )
