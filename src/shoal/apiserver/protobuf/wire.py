"""The protobuf wire format: numbered fields, each a number or a run of bytes. Nothing of Kubernetes in it."""

from __future__ import annotations

from collections.abc import Iterator


class Malformed(Exception):
    """The bytes are not a message of the form expected."""


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Every field in order: its number and its value."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        value: int | bytes
        if wire_type == _VARINT:
            value, at = _varint(data, at)
        elif wire_type == _BYTES:
            length, at = _varint(data, at)
            value, at = _run(data, at, length), at + length
        elif wire_type == _FIXED64:
            value, at = int.from_bytes(_run(data, at, 8), "little"), at + 8
        elif wire_type == _FIXED32:
            value, at = int.from_bytes(_run(data, at, 4), "little"), at + 4
        else:
            raise Malformed(f"field {number} has the unknown wire type {wire_type}")
        yield number, value


def signed(value: int) -> int:
    """Negative numbers travel as 64-bit two's complement."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        if at >= len(data):
            raise Malformed("the message ends in the middle of a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise Malformed("a number is longer than 64 bits")


def _run(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise Malformed(f"the message ends in the middle of a field of {length} bytes")
    return data[at : at + length]
