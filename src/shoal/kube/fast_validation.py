"""The short way to a yes: a schema as types of msgspec, whose converter walks a value in C.

Nearly every object written is valid, so the cost of a write is the walk that finds no mistake. The msgspec types
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

BUSY = 200  # walks after which a schema gets types of its own
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
    """No type says what this schema says."""


class Swift:
    """One question about one schema; `is_sure` is True or "ask the slow walk"."""

    __slots__ = ("_asked", "_make", "_schema", "_type")

    def __init__(self, schema: Schema, make: Callable[[Schema], Any]) -> None:
        self._schema = schema
        self._make = make
        self._asked = 0
        self._type: Any = None

    def is_sure(self, value: Any) -> bool:
        if self._type is None:
            self._asked += 1
            if self._asked != BUSY:
                return False
            try:
                self._type = self._make(self._schema)
            except (_Inexpressible, RecursionError):
                return False
        try:
            msgspec.convert(value, self._type)
        except (msgspec.ValidationError, RecursionError):
            return False
        return True


@lru_cache(maxsize=KNOWN_SCHEMAS)
def decoding(schema: Schema) -> Swift:
    """Whether all types are right, all fields known, and no null is stray: `shoal.kube.schema.is_clean`."""
    return Swift(schema, _decodable)


@lru_cache(maxsize=KNOWN_SCHEMAS)
def fitting(schema: Schema) -> Swift:
    """Whether a custom schema has nothing to complain about: `shoal.kube.structural_schema.fast_path`."""
    return Swift(schema, _fitting)


# --- what decodes cleanly ------------------------------------------------------------------------------------------


@lru_cache(maxsize=KNOWN_SCHEMAS)  # many places share one schema
def _decodable(schema: Schema) -> Any:
    wanted = schema.type
    if wanted == "object":
        return _object(schema, _below, closed=not schema.preserve_unknown)
    if wanted == "array":
        return list[Any] if schema.items is None else list[_decodable(schema.items)]  # type: ignore[misc]
    if wanted == "any":
        if schema.preserve_unknown if schema.custom else schema.values is None:
            return Any
        return None | str | int | float | bool  # objects may stand there too: rare enough for the slow walk
    if wanted == "string":
        return str if schema.custom and schema.format != "int-or-string" else _TEXTS.get(schema.format, str)
    if wanted == "integer":
        return _INT32 if schema.format == "int32" else _INT64
    return bool if wanted == "boolean" else float


def _below(schema: Schema) -> Any:
    made = _decodable(schema)
    return made | None if schema.custom and schema.nullable else made


# --- what a custom schema lets pass --------------------------------------------------------------------------------


def _fitting(schema: Schema) -> Any:
    made = _fitting_value(schema)
    return made | None if schema.nullable and not schema.enum else made


def _fitting_value(schema: Schema) -> Any:
    wanted, rules = schema.type, schema.rules
    if not (_NUMBER if wanted == "integer" else _PLAIN).issuperset(rules) or schema.embedded_resource:
        raise _Inexpressible
    if wanted == "object":
        return _object(schema, _fitting, closed=False, required=frozenset(schema.required))
    if wanted == "array":
        most = None if schema.list_type == "atomic" else 1  # doubled items are looked for elsewhere
        item = Any if schema.items is None else _fitting(schema.items)
        return list[item] if most is None else Annotated[list[item], Meta(max_length=most)]  # type: ignore[valid-type]
    if wanted == "string" and schema.enum:
        return Literal[tuple(choice for choice in schema.enum if isinstance(choice, str))]
    if wanted == "string" and schema.format in ("", "date-time"):
        return _TEXTS[schema.format]
    if wanted == "integer" and not schema.enum:
        return _between(schema.format, rules.get("minimum"), rules.get("maximum"))
    if wanted == "boolean" and not schema.enum:
        return bool
    raise _Inexpressible


def _between(form: str, low: Any, high: Any) -> Any:
    bits = 31 if form == "int32" else 63
    least = max(-(2**bits), -(2**bits) if low is None else int(low))
    most = min(2**bits - 1, 2**bits - 1 if high is None else int(high))
    if least != (low if low is not None else least) or most != (high if high is not None else most):
        raise _Inexpressible  # a limit that is no whole number, or outside of what can be
    return Annotated[int, Meta(ge=least, le=most)]


# --- both ----------------------------------------------------------------------------------------------------------


def _object(
    schema: Schema, make: Callable[[Schema], Any], *, closed: bool, required: frozenset[str] = frozenset()
) -> Any:
    if not schema.fields:
        if required or (schema.values is None and closed):
            raise _Inexpressible
        return dict[str, Any if schema.values is None else make(schema.values)]  # type: ignore[misc]
    if schema.values is not None:
        raise _Inexpressible
    names = {f"field{number}": name for number, name in enumerate(schema.fields)}
    fields: list[Any] = []
    for slot, name in names.items():
        made = make(schema.fields[name])
        fields.append((slot, made) if name in required else (slot, made | UnsetType, UNSET))
    if required - schema.fields.keys():
        raise _Inexpressible
    title = (schema.go_type or "Object").rpartition(".")[2] or "Object"
    return msgspec.defstruct(
        title, fields, rename=names, forbid_unknown_fields=closed, gc=False, kw_only=True, frozen=False
    )
