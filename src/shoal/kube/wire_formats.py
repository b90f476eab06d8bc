"""Texts that represent another type on the wire: times, quantities, bytes.

Each function returns the API server's message for a text that does not parse, or None when it does. They only validate;
`times` and `quantity` convert a text into a value.
"""

from __future__ import annotations

import binascii
import re
from calendar import monthrange

from shoal.kube.quantity import BadQuantity, Quantity

_TIME = re.compile(r"\d{4}-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_MICRO_TIME = re.compile(r"\d{4}-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)[.,]\d{6}(?:Z|[+-]\d\d:\d\d)", re.ASCII)

_TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_TIME_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
# The pieces of a layout in order: its name in the layout, and the pattern it matches.
_CLOCK = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"), ("15", r"\d\d"),
          (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"))  # fmt: skip
_ZONE = ("Z07:00", r"Z|[+-]\d\d:\d\d")
_TIME_PIECES = (*_CLOCK, ("", r"(?:[.,]\d+)?"), _ZONE)
_MICRO_TIME_PIECES = (*_CLOCK, (".000000", r"[.,]\d{6}"), _ZONE)


def time_problem(text: str) -> str | None:
    match = _TIME.fullmatch(text)
    return _out_of_range(text, match) if match else _first_bad_piece(text, _TIME_LAYOUT, _TIME_PIECES)


def micro_time_problem(text: str) -> str | None:
    match = _MICRO_TIME.fullmatch(text)
    return _out_of_range(text, match) if match else _first_bad_piece(text, _MICRO_TIME_LAYOUT, _MICRO_TIME_PIECES)


def _out_of_range(text: str, match: re.Match[str]) -> str | None:
    month, day, hour, minute, second = (int(piece) for piece in match.groups())
    wrong = ""
    if not 1 <= month <= 12:
        wrong = "month"
    elif hour > 23:
        wrong = "hour"
    elif minute > 59:
        wrong = "minute"
    elif second > 59:
        wrong = "second"
    elif not 1 <= day <= monthrange(int(text[:4]) or 4, month)[1]:
        wrong = "day"
    return f'parsing time "{text}": {wrong} out of range' if wrong else None


def _first_bad_piece(text: str, layout: str, pieces: tuple[tuple[str, str], ...]) -> str:
    rest = text
    for name, pattern in pieces:
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            return f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{name}"'
        rest = rest[match.end() :]
    return f'parsing time "{text}": extra text: "{rest}"'


def quantity_problem(text: str) -> str | None:
    try:
        Quantity.parse(text)
    except BadQuantity as problem:
        return str(problem)
    return None


_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def base64_problem(text: str) -> str | None:
    """Line breaks are skipped, as the API server's decoder skips them."""
    bare = text.replace("\n", "").replace("\r", "") if "\n" in text or "\r" in text else text
    try:
        binascii.a2b_base64(bare, strict_mode=True)
    except ValueError:
        is_sound = False
    else:
        is_sound = len(bare) % 4 == 0
    return None if is_sound else f"illegal base64 data at input byte {_first_bad_byte(text.encode())}"


def _first_bad_byte(data: bytes) -> int:
    """The position at which decoding in groups of four characters fails, counted as the API server's decoder counts."""
    places = [place for place, byte in enumerate(data) if byte not in b"\r\n"]
    for index, place in enumerate(places):
        if data[place] in _BASE64:
            continue
        column = index % 4
        if data[place] != ord("=") or column < 2:
            return place
        padding = places[index : index + 4 - column]
        if len(padding) < 4 - column:
            return len(data)  # the padding itself is cut short
        if column == 2 and data[padding[1]] != ord("="):
            return place
        return padding[-1] + 1
    return len(data) - len(places) % 4
