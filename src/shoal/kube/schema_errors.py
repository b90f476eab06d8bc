"""Every value of an object that does not fit its schema: the path, the value and what is expected there.

An API server's decoder stops at the first value of a wrong type and names the struct it was filling. A check before
submission needs all of them, and then continues with the rest: `remove_mismatches` removes the values that do not fit.
`find_unknown_fields` are undeclared fields, each with the declared name closest to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

from shoal.kube.errors import Cause
from shoal.kube.schema import Schema, is_clean, walk_unknown_fields
from shoal.kube.validation.errors import invalid

Steps = tuple[str | int, ...]

_BY_FORMAT = {
    "quantity": "must be an amount such as 2, 500m or 1.5Gi",
    "int-or-string": "must be an integer or text",
    "date-time": "must be a time such as 2030-01-31T12:00:00Z",
    "micro-time": "must be a time such as 2030-01-31T12:00:00.000000Z",
    "byte": "must be base64",
}
_TYPES = (
    (dict, "object"), (list, "array"), (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"),
)  # fmt: skip
_VARIABLES = "env"
_BY_TYPE = {
    "string": "must be text; put it in quotes",
    "integer": "must be an integer",
    "number": "must be a number",
    "boolean": "must be true or false",
    "array": "must be a list",
    "object": "must be an object",
}


class FieldWarning(str):
    """A warning about a field: `spec.tasknumber: there is no such field`."""

    field: str

    def __new__(cls, field: str, text: str) -> Self:
        made = super().__new__(cls, f"{field}: {text}")
        made.field = field
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.field, self[len(self.field) + 2 :]


class UnknownField(FieldWarning):
    """The message about a field that no schema declares: an error under strict validation, else a warning."""


@dataclass(frozen=True, slots=True)
class SchemaMismatch:
    """A value of a type its place does not have."""

    steps: Steps
    value: Any
    expected: str

    def cause(self, prefix: str = "") -> Cause:
        """The message may be read by others than the author, so values of environment variables are not repeated."""
        path = path_of(prefix, self.steps)
        display = type_of(self.value) if _VARIABLES in self.steps else display_value(self.value)
        return Cause("FieldValueTypeInvalid", invalid(path, display, self.expected).message, path)


def display_value(value: Any) -> Any:
    """A value as a message may show it: a list or an object is named by its type, as API servers do."""
    return type_of(value) if value and isinstance(value, dict | list) else value


def type_of(value: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")


def path_of(prefix: str, steps: Iterable[str | int]) -> str:
    path = prefix
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else (f".{step}" if path else step)
    return path


def find_mismatches(schema: Schema, value: Any, steps: Steps = ()) -> Iterator[SchemaMismatch]:
    """Null fits everywhere, and undeclared fields are skipped."""
    if value is None or schema.type == "any":
        return
    if schema.type == "object" and isinstance(value, dict):
        for name, child in value.items():
            below = schema.field(name)
            if below is not None:
                yield from find_mismatches(below, child, (*steps, name))
    elif schema.type == "array" and isinstance(value, list):
        for index, child in enumerate(value):
            if schema.items is not None:
                yield from find_mismatches(schema.items, child, (*steps, index))
    elif not is_clean(schema, value):
        expected = _BY_FORMAT.get(schema.format) or _BY_TYPE[schema.type]
        if schema.type == "integer" and isinstance(value, int) and not isinstance(value, bool):
            expected = f"must fit into {schema.format.removeprefix('int') or 64} bits"
        yield SchemaMismatch(steps, value, expected)


def remove_mismatches(value: Any, found: Iterable[SchemaMismatch]) -> Any:
    """A copy without the values that do not fit."""
    result = value
    for mismatch in found:
        result = _removed(result, mismatch.steps)
    return result


def _removed(value: Any, steps: Steps) -> Any:
    if not steps:
        return None
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        return [_removed(child, rest) if index == step else child for index, child in enumerate(value)]
    if not rest:
        return {name: child for name, child in value.items() if name != step}
    return {name: _removed(child, rest) if name == step else child for name, child in value.items()}


def is_at_or_below(path: str, prefixes: Iterable[str]) -> bool:
    """Whether a path is one of these places or leads through one of them."""
    return any(path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")) for prefix in prefixes)


def find_unknown_fields(schema: Schema, value: Any, prefix: str = "") -> Iterator[UnknownField]:
    """A message for each undeclared field: `spec.tasknumber: there is no such field; did you mean ...?`."""
    for path, name, holder in walk_unknown_fields(schema, value, prefix):
        suggestion = closest_match(name, tuple(holder.fields))
        hint = f"; did you mean {suggestion}?" if suggestion else " here"
        yield UnknownField(path, f"there is no such field{hint}")


def closest_match(name: str, known: Sequence[str]) -> str | None:
    """The known name closest to `name`, ignoring case."""
    by_case = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_case, n=1, cutoff=0.7)
    return by_case[found[0]] if found else None
