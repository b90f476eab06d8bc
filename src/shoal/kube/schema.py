"""What an object may look like: a tree of `Schema`, and the walks every write takes over it.

A `Schema` describes one place: its JSON type, its fields, how lists and maps merge, and the description
`kubectl explain` prints. The trees of the built-in kinds are declared in `shoal.kube.schemas`; those of custom
resources are read from their CRD by `shoal.kube.structural_schema`. Nothing here depends on a particular kind.

Every write needs two checks: is each value of the right type, and is each field known? `is_clean` does both in one
walk, which almost always succeeds; only after a failure do `type_problem` and `unknown_fields` walk again to build
messages, so the ordinary write never pays for them. The messages are those of the Kubernetes API server, which decodes
into Go structs: hence `go_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from shoal.kube import fast_validation
from shoal.kube.objects import Obj
from shoal.kube.wire_formats import base64_problem, micro_time_problem, quantity_problem, time_problem

_NONE: Mapping[str, Any] = MappingProxyType({})


def _none() -> Mapping[str, Any]:
    return _NONE


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schema:
    """What may stand at one place. Compared by identity: two places may share one Schema."""

    type: str = "any"  # object, array, string, integer, number, boolean, any
    format: str = ""  # int32, int64, double, date-time, micro-time, quantity, int-or-string, byte, ...
    fields: Mapping[str, Schema] = attribute(default_factory=_none)  # may refer back to itself
    values: Schema | None = None  # of an object used as a map; of `any`, what an object found there must be
    items: Schema | None = None  # of an array
    required: tuple[str, ...] = ()
    description: str = ""  # of this place
    default: Any = None
    enum: tuple[Any, ...] = ()
    list_type: str = "atomic"  # atomic, set, map
    list_keys: tuple[str, ...] = ()
    map_type: str = "granular"  # granular, atomic
    patch_strategy: frozenset[str] = frozenset()  # of: merge, retainKeys
    patch_key: str = ""
    preserve_unknown: bool = False
    embedded_resource: bool = False
    nullable: bool = False
    go_type: str = ""  # the name in decoding errors: v1.Container, v1.RestartPolicy
    go_inside: str = ""  # the struct embedded in the outer one that has this field: VolumeSource
    component: str = ""  # the shared OpenAPI component this is one use of: io.k8s.api.core.v1.Container
    about: str = ""  # what the component is, wherever it is used
    custom: bool = False  # read from a CustomResourceDefinition: its types are a matter of validation
    rules: Mapping[str, Any] = attribute(default_factory=_none)  # minimum, oneOf, ... of a custom schema

    def __repr__(self) -> str:
        return f"Schema({self.go_type or self.component or self.type})"

    def field(self, name: str) -> Schema | None:
        """The schema below `name`: a named field, else the map's value schema, else nothing is known."""
        return self.fields.get(name) or self.values


_TEXT_PROBLEMS: dict[str, Callable[[str], str | None]] = {
    "date-time": time_problem,
    "micro-time": micro_time_problem,
    "quantity": quantity_problem,
    "byte": base64_problem,
}
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


def is_clean(schema: Schema, value: Any) -> bool:
    """Whether `value` needs no error and no pruning: all types right, all fields known, no stray nulls.

    A clean object has no `type_problem`, no `unknown_fields`, and `drop_unknown` leaves it as it is. The one walk of
    the hot path: callers that need all three answers check this first.
    """
    if fast_validation.decode_validator(schema).accepts(value):
        return True
    try:
        return _is_clean(schema, value)
    except RecursionError:
        return False


def _is_clean(schema: Schema, value: Any) -> bool:
    expected = schema.type
    if expected == "object":
        if value.__class__ is not dict:
            return False
        fields = schema.fields
        inner = schema.values
        for name, child in value.items():
            below = fields.get(name) or inner
            if below is None:
                if not schema.preserve_unknown:
                    return False
            elif child is None and below.custom and below.nullable:
                # Built-in kinds have no nullable fields: a null there decodes to the zero value and is dropped.
                continue
            elif child.__class__ is str and below.type == "string":
                if below.format and not _text_fits(below, child):
                    return False
            elif not _is_clean(below, child):
                return False
        return True
    if expected == "array":
        if value.__class__ is not list:
            return False
        item = schema.items
        if item is None:
            return True
        if item.type == "string" and not item.format:
            return all(child.__class__ is str for child in value)
        return all(map(partial(_is_clean, item), value))  # a generator would make every call of this function slower
    if expected == "any":
        if schema.custom:
            return schema.preserve_unknown or _has_no_fields(value)
        if schema.values is None:
            return True
        if schema.format == "object-or-boolean" and not isinstance(value, dict | bool):
            return False
        return all(map(partial(_is_clean, schema.values), _objects(value)))
    return _scalar_fits(schema, value)


def _has_no_fields(value: Any) -> bool:
    if isinstance(value, list):
        return all(_has_no_fields(child) for child in value)
    return not (isinstance(value, dict) and value)


def _objects(value: Any) -> list[Obj]:
    """The objects where either one or a list of them may stand."""
    found = value if isinstance(value, list) else [value]
    return [part for part in found if isinstance(part, dict)]


def _text_fits(schema: Schema, text: str) -> bool:
    problem = _TEXT_PROBLEMS.get(schema.format)
    return schema.custom or problem is None or problem(text) is None


def _scalar_fits(schema: Schema, value: Any) -> bool:
    expected, cls = schema.type, value.__class__
    if expected == "string":
        if cls is str:
            return _text_fits(schema, value)
        if schema.format == "quantity":
            return cls is int or cls is float
        return schema.format == "int-or-string" and cls is int and value in _INT32
    if expected == "integer":
        return cls is int and value in (_INT32 if schema.format == "int32" else _INT64)
    if expected == "boolean":
        return cls is bool
    return cls is float or cls is int


# --- type errors as messages ---------------------------------------------------------------------------------------


def type_problem(schema: Schema, obj: Any) -> str | None:
    """The first value of a wrong type, in the wording of the API server's decoder; None when every type is right.

    A custom resource is decoded into no struct, so only its metadata has types to check here; the rest is validated by
    `shoal.kube.structural_schema.validate`.
    """
    if schema.custom:
        if not isinstance(obj, dict):
            return f"json: cannot unmarshal {_json_type(obj)} into Go value of type map[string]interface {{}}"
        metadata = schema.fields.get("metadata")
        if metadata is None or obj.get("metadata") is None or is_clean(metadata, obj["metadata"]):
            return None
        return _first_problem(_decode(metadata, obj["metadata"], _Position()))
    if is_clean(schema, obj):
        return None
    try:
        return _first_problem(_decode(schema, obj, _Position()))
    except RecursionError:
        return "exceeded max depth"


def _first_problem(problems: Iterator[_Problem]) -> str | None:
    # Go's decoder goes on after a mismatch and reports the first, but an error of a type's own decoder ends it.
    first = None
    for problem in problems:
        if problem.is_fatal:
            return problem.message
        first = first or problem.message
    return first


class _Position(NamedTuple):
    """Where the decoder is: the struct it fills and the names of the fields down to here."""

    struct: str = ""
    path: str = ""

    def below(self, struct: str, field: str, inside: str) -> _Position:
        step = f"{inside}.{field}" if inside else field
        return _Position(struct.rpartition(".")[2], f"{self.path}.{step}" if self.path else step)


class _Problem(NamedTuple):
    message: str
    is_fatal: bool = False  # raised by the type's own decoder, which ends the decoding


def _decode(schema: Schema, value: Any, position: _Position) -> Iterator[_Problem]:
    """Walk as a decoder into structs does: null is always nothing, unknown fields are passed over."""
    if value is None:
        return
    if schema.type == "any":
        if schema.format == "object-or-boolean" and not isinstance(value, dict | bool):
            yield _Problem("boolean or JSON schema expected", is_fatal=True)
        if schema.values is not None:
            for part in _objects(value):
                for problem in _decode(schema.values, part, position):
                    yield problem._replace(is_fatal=True)
    elif schema.type == "object" and isinstance(value, dict):
        for name, child in value.items():
            known = schema.fields.get(name)
            if known is not None:
                yield from _decode(known, child, position.below(schema.go_type, name, known.go_inside))
            elif schema.values is not None:
                yield from _decode(schema.values, child, position)
    elif schema.type == "array" and isinstance(value, list):
        if schema.items is not None:
            for child in value:
                yield from _decode(schema.items, child, position)
    elif schema.type in ("object", "array"):
        yield _mismatch(schema, value, position)
    elif not _scalar_fits(schema, value):
        yield _scalar_problem(schema, value, position)


def _scalar_problem(schema: Schema, value: Any, position: _Position) -> _Problem:
    if schema.format == "quantity":
        return _Problem(quantity_problem(value if isinstance(value, str) else "?") or "", is_fatal=True)
    if schema.format == "int-or-string":
        return _mismatch(schema, value, position, go_type="int32", is_fatal=True)
    if schema.format in ("date-time", "micro-time"):
        if not isinstance(value, str):
            return _mismatch(schema, value, position, go_type="string", is_fatal=True)
        return _Problem(_TEXT_PROBLEMS[schema.format](value) or "", is_fatal=True)
    if schema.format == "byte" and isinstance(value, str):
        return _Problem(base64_problem(value) or "")
    return _mismatch(schema, value, position)


def _mismatch(
    schema: Schema, value: Any, position: _Position, *, go_type: str = "", is_fatal: bool = False
) -> _Problem:
    found = _json_type(value)
    expected = go_type or schema.go_type
    if found == "number" and expected in ("int32", "int64"):
        found = f"number {value}"  # the right sort of thing: too large, or not whole
    target = f"Go struct field {position.struct}.{position.path}" if position.path else "Go value"
    return _Problem(f"json: cannot unmarshal {found} into {target} of type {expected}", is_fatal)


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


# --- undeclared fields ---------------------------------------------------------------------------------------------


def unknown_fields(schema: Schema, obj: Any) -> list[str]:
    """The paths of fields the schema does not contain, as strict decoding names them: `spec.containers[0].foo`."""
    if is_clean(schema, obj):
        return []
    found = [path for path, _, _ in walk_unknown_fields(schema, obj, "")]
    return sorted(found) if schema.custom else found


def _items_of(schema: Schema) -> Schema | None:
    """What items of a list must be. Where a custom schema declares nothing, it declares nothing all the way down."""
    return schema if schema.custom and schema.type == "any" and not schema.preserve_unknown else schema.items


def _has_fields(schema: Schema) -> bool:
    return schema.type == "object" or _items_of(schema) is schema


def walk_unknown_fields(schema: Schema, value: Any, path: str) -> Iterator[tuple[str, str, Schema]]:
    """The path and the name of each undeclared field below `path`, and the schema that does not declare it."""
    if isinstance(value, list):
        item = _items_of(schema)
        if item is not None:
            for index, child in enumerate(value):
                yield from walk_unknown_fields(item, child, f"{path}[{index}]")
    elif isinstance(value, dict) and _has_fields(schema):
        for name, child in value.items():
            item_path = f"{path}.{name}" if path else name
            below = schema.field(name)
            if below is not None:
                yield from walk_unknown_fields(below, child, item_path)
            elif not schema.preserve_unknown:
                yield item_path, name, schema


def drop_unknown(schema: Schema, obj: Obj) -> Obj:
    """`obj` without unknown fields and, in a built-in kind, without nulls, which decode to the zero value.

    `obj` is never changed; it is returned itself where there is nothing to drop.
    """
    if is_clean(schema, obj):
        return obj
    kept: Obj = _known_part(schema, obj)
    return kept


def _known_part(schema: Schema, value: Any) -> Any:
    if schema.type == "any" and schema.values is not None:
        schema = Schema("array", items=schema.values) if isinstance(value, list) else schema.values
    if isinstance(value, list):
        item = _items_of(schema)
        return value if item is None else [_known_part(item, _filled(item, child)) for child in value]
    if not isinstance(value, dict) or not _has_fields(schema):
        return value
    kept: Obj = {}
    for name, child in value.items():
        below = schema.field(name)
        if child is None and below is not None and not schema.custom and name in schema.fields:
            continue
        if below is not None:
            kept[name] = _known_part(below, _filled(below, child))
        elif schema.preserve_unknown:
            kept[name] = child
    return kept


_ZERO: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def _filled(schema: Schema, value: Any) -> Any:
    """A null among the items of a list or the values of a map becomes the zero value of their type."""
    if value is not None or schema.custom or schema.format in ("date-time", "micro-time"):
        return value
    if schema.format == "quantity":
        return "0"
    return {} if schema.fields else _ZERO.get(schema.type)
