"""Types whose JSON is not the list of their fields: times, quantities, int-or-string and raw JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.apiserver.protobuf.wire import Malformed, fields, signed

ReadSchema = Callable[[bytes], dict[str, Any]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _parts(data: bytes) -> dict[int, int | bytes]:
    return dict(fields(data))


def _text(value: int | bytes) -> str:
    if not isinstance(value, bytes):
        raise Malformed("a field has the wrong wire type")
    return value.decode("utf-8", "replace")


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise Malformed("a field has the wrong wire type")
    return signed(value)


def _moment(data: bytes) -> tuple[datetime, int] | None:
    """The instant and its nanoseconds; an empty message is Go's zero time, which JSON shows as null."""
    parts = _parts(data)
    if not parts:
        return None
    seconds, nanos = _number(parts.get(1, 0)), _number(parts.get(2, 0))
    try:
        return _EPOCH + timedelta(seconds=seconds), nanos
    except OverflowError:
        raise Malformed("a time is out of range") from None


def read_time(data: bytes, _: ReadSchema) -> str | None:
    found = _moment(data)
    return found[0].strftime("%Y-%m-%dT%H:%M:%SZ") if found else None


def read_micro_time(data: bytes, _: ReadSchema) -> str | None:
    found = _moment(data)
    return f"{found[0].strftime('%Y-%m-%dT%H:%M:%S')}.{found[1] // 1000:06d}Z" if found else None


def read_quantity(data: bytes, _: ReadSchema) -> str:
    return _text(_parts(data).get(1, b"0")) or "0"


def read_int_or_string(data: bytes, _: ReadSchema) -> int | str | None:
    if not data:
        return None
    parts = _parts(data)
    if _number(parts.get(1, 0)) == 1:
        return _text(parts.get(3, b""))
    return _number(parts.get(2, 0))


def read_raw_json(data: bytes, _: ReadSchema) -> Any:
    raw = _parts(data).get(1, b"")
    if not isinstance(raw, bytes):
        raise Malformed("a field has the wrong wire type")
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, RecursionError):
        raise Malformed("an embedded JSON value is malformed") from None


def read_schema_or_bool(data: bytes, read: ReadSchema) -> Any:
    parts = _parts(data)
    return read(_as_bytes(parts[2])) if 2 in parts else bool(_number(parts.get(1, 0)))


def read_schema_or_array(data: bytes, read: ReadSchema) -> Any:
    found = list(fields(data))
    single = [value for number, value in found if number == 1]
    return read(_as_bytes(single[-1])) if single else [read(_as_bytes(value)) for number, value in found if number == 2]


def read_schema_or_texts(data: bytes, read: ReadSchema) -> Any:
    found = list(fields(data))
    single = [value for number, value in found if number == 1]
    return read(_as_bytes(single[-1])) if single else [_text(value) for number, value in found if number == 2]


def _as_bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("a field has the wrong wire type")
    return value


SPECIAL: dict[str, Callable[[bytes, ReadSchema], Any]] = {
    "Time": read_time,
    "MicroTime": read_micro_time,
    "Quantity": read_quantity,
    "IntOrString": read_int_or_string,
    "Raw": read_raw_json,
    "SchemaOrBool": read_schema_or_bool,
    "SchemaOrArray": read_schema_or_array,
    "SchemaOrTexts": read_schema_or_texts,
}
