"""Messages for errors in a field: the kind of error, the value as Kubernetes prints it, and what to do instead.

Every rule of this package yields `Cause`s made here, so the wording is in one place. A path is a plain string
(`spec.containers[0].name`); rules build it only when they report an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"

_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
    "\v": "\\v",
}  # fmt: skip
_UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def quote(text: str) -> str:
    """Text in double quotes with the escapes Go uses."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = ""
    for char in text:
        code = ord(char)
        if char in _ESCAPES:
            escaped += _ESCAPES[char]
        elif char.isprintable():
            escaped += char
        elif code < 0x80:
            escaped += f"\\x{code:02x}"
        else:
            escaped += f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return f'"{escaped}"'


def render(value: Any) -> str:
    """A bad value as a message shows it: text quoted, numbers plain, anything else as JSON."""
    if isinstance(value, str):
        return quote(value)
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return as_json(value)


def as_json(value: Any) -> str:
    """JSON as an API server writes it into a message: safe to be put into a page."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def _with(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


def required(path: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", _with("Required value", detail), path)


def invalid(path: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", _with(f"Invalid value: {render(value)}", detail), path)


def duplicate(path: str, value: Any, detail: str = "") -> Cause:
    return Cause("FieldValueDuplicate", _with(f"Duplicate value: {render(value)}", detail), path)


def not_found(path: str, value: Any, detail: str = "") -> Cause:
    return Cause("FieldValueNotFound", _with(f"Not found: {render(value)}", detail), path)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> Cause:
    listed = ", ".join(quote(choice) for choice in supported)
    detail = f"supported values: {listed}" if listed else ""
    return Cause("FieldValueNotSupported", _with(f"Unsupported value: {as_json(value)}", detail), path)


def forbidden(path: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", _with("Forbidden", detail), path)


def too_long(path: str, limit_bytes: int) -> Cause:
    unit = "byte" if limit_bytes == 1 else "bytes"
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit_bytes} {unit}", path)


def too_many(path: str, count: int, limit: int) -> Cause:
    unit = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {unit}", path)


def entries(value: Any) -> list[Obj]:
    """The objects of a list field; a null entry counts as an empty object, a missing list as none."""
    if not value:
        return []
    return [entry or {} for entry in value] if None in value else value
