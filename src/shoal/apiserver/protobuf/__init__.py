"""Kubernetes' protobuf form of built-in objects, read into the same dictionaries JSON gives.

Go clients write built-in kinds this way and do not fall back to JSON, kubectl's `create` commands among them.
Only reading is needed: every such client takes JSON as the answer. `messages.txt` holds the field numbers
(tools/protobuf-messages makes it), this module the wire format, `well_known_types` the few types whose JSON is not
their fields. Zero values that Go's JSON would leave out are left out here too, so both roads give equal objects.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from shoal.apiserver.protobuf.well_known_types import SPECIAL
from shoal.apiserver.protobuf.wire import Malformed, fields, signed
from shoal.kube.objects import Obj

__all__ = ["Malformed", "decode"]

_PREFIX = b"k8s\x00"
_MAX_DEPTH = 60


class _Field(NamedTuple):
    name: str  # '~' where the message's fields stand among the parent's
    keeps_zero: bool
    wrapper: str  # '', '[]', '{}' or '{}<>'
    shape: str


def decode(data: bytes) -> Obj:
    """The object in the envelope, with its apiVersion and kind."""
    if not data.startswith(_PREFIX):
        expected = " ".join(str(byte) for byte in _PREFIX)
        raise Malformed(
            f"provided data does not appear to be a protobuf message, expected prefix [{expected}]"
            if data
            else "empty data"
        )
    envelope = dict(fields(data[len(_PREFIX) :]))
    type_meta = dict(fields(_bytes(envelope.get(1, b""))))
    api_version, kind = _text(type_meta.get(1, b"")), _text(type_meta.get(2, b""))
    if kind == "DeleteOptions":  # every group has it, and it is the same one
        message = "meta.v1.DeleteOptions"
    else:
        group, _, version = api_version.rpartition("/")
        message = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    if message not in _messages():
        raise Malformed(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **_read(_bytes(envelope.get(2, b"")), message, 0)}


@cache
def _messages() -> dict[str, str]:
    """Message name -> its fields, still as text: most are never requested."""
    text = files(__package__).joinpath("messages.txt").read_text("ascii")
    return {name: rest for name, _, rest in (line.partition(" ") for line in text.splitlines())}


@cache
def _fields_of(message: str) -> dict[int, _Field]:
    found = {}
    for entry in _messages()[message].split():  # number, '=' or '?', name, ':', wrapper, shape
        left, _, shape = entry.rpartition(":")
        cut = min(at for at in (left.find("="), left.find("?")) if at > 0)
        wrapper = next((w for w in ("{}<>[]", "{}", "[]") if shape.startswith(w)), "")
        found[int(left[:cut])] = _Field(left[cut + 1 :], left[cut] == "=", wrapper, shape.removeprefix(wrapper))
    return found


def _read(data: bytes, message: str, depth: int) -> Obj:
    if depth > _MAX_DEPTH:
        raise Malformed("the message is nested too deeply")
    known = _fields_of(message)
    result: Obj = {}
    for number, value in fields(data):
        field = known.get(number)
        if field is not None:
            _put(result, field, value, depth)
    for field in known.values():
        if not field.keeps_zero and field.name in result and not result[field.name]:
            del result[field.name]
    return result


def _put(result: Obj, field: _Field, value: int | bytes, depth: int) -> None:
    if field.name == "~":
        result.update(_one(field.shape, value, depth))
    elif field.wrapper == "[]":
        result.setdefault(field.name, []).append(_one(field.shape, value, depth))
    elif field.wrapper:
        entry = dict(fields(_bytes(value)))
        key, item = _text(entry.get(1, b"")), entry.get(2, b"")
        if field.wrapper == "{}<>[]":
            decoded = [_one(field.shape, each, depth) for _, each in fields(_bytes(item or b""))]
        else:
            decoded = _one(field.shape, item, depth)
        result.setdefault(field.name, {})[key] = decoded
    else:
        decoded = _one(field.shape, value, depth)
        if decoded is not None:
            result[field.name] = decoded


def _one(shape: str, value: int | bytes, depth: int) -> Any:
    scalar = _SCALARS.get(shape)
    if scalar is not None:
        return scalar(value)
    special = SPECIAL.get(shape)
    if special is not None:
        return special(_bytes(value), lambda data: _read(data, "apiextensions.v1.JSONSchemaProps", depth + 1))
    return _read(_bytes(value), shape, depth + 1)


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("a field has the wrong wire type")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise Malformed("string field contains invalid UTF-8") from None


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise Malformed("a field has the wrong wire type")
    return signed(value)


def _double(value: int | bytes) -> float:
    if isinstance(value, bytes):
        raise Malformed("a field has the wrong wire type")
    (number,) = struct.unpack("<d", struct.pack("<Q", value))
    return float(number)


_SCALARS: dict[str, Callable[[int | bytes], Any]] = {
    "text": _text,
    "int": _int,
    "bool": lambda value: bool(_int(value)),
    "double": _double,
    "bytes": lambda value: base64.b64encode(_bytes(value)).decode(),
}
