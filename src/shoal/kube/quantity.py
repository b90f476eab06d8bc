"""Quantities: `500m` cpu, `1536Mi` memory, `4` GPUs, exactly as Kubernetes counts them.

A quantity is a whole number of billionths and the family of its suffix, so sums and comparisons are exact and never use
floating point. It is formatted in canonical form: no fraction, the largest suffix that loses nothing, in the family it
was read in. Nothing here depends on what the amount measures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
BAD_FORM = f"quantities must match the regular expression '{FORM}'"
BAD_NUMBER = "unable to parse numeric part of quantity"
BAD_SUFFIX = "unable to parse quantity's suffix"

# Somewhat wider than the form the message shows: "1.", ".5" and a bare suffix are accepted by API servers too.
_PARTS = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+")

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

_NANO = 10**9
_MOST = 2**63 - 1
_LARGEST_EXPONENT = 4096  # beyond any amount of anything, and still cheap to multiply out
_FAST_DIGITS = 18
_MAX_CHARACTERS = 1024  # parsing takes quadratic time, and parsed texts are cached


class BadQuantity(ValueError):
    """Text that is no quantity; the message is the one an API server gives."""


class Family(StrEnum):
    """Which suffixes a quantity was written with, and is written with again."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount. Two quantities are equal when their amounts are, however they were written."""

    nanos: int
    family: Family = field(default=Family.DECIMAL, compare=False)
    # The text as it was read, where an API server would keep it although another spelling is canonical ("1.500").
    spelling: str = field(default="", compare=False, repr=False)

    @classmethod
    def parse(cls, value: str | int | float) -> Quantity:
        """The quantity in a JSON value (a string or a plain number); raises BadQuantity."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadQuantity(BAD_FORM)
        text = value if isinstance(value, str) else repr(value)
        if len(text) > _MAX_CHARACTERS:
            raise BadQuantity(f"a quantity has at most {_MAX_CHARACTERS} characters")
        return _parse(text)

    @classmethod
    def of(cls, amount: int, family: Family = Family.DECIMAL) -> Quantity:
        return cls(amount * _NANO, family)

    @classmethod
    def of_milli(cls, thousandths: int, family: Family = Family.DECIMAL) -> Quantity:
        return cls(thousandths * 10**6, family)

    def __str__(self) -> str:
        if self.spelling:
            return self.spelling
        nanos, family = self.nanos, self.family
        if nanos == 0:
            return "0"
        if family is Family.BINARY and (abs(nanos) < 1024 * _NANO or nanos % _NANO):
            family = Family.DECIMAL  # small and broken amounts have no binary suffix that loses nothing
        if family is Family.BINARY:
            amount, step = nanos // _NANO, 0
            while amount % 1024 == 0 and step < 6:
                amount //= 1024
                step += 1
            return f"{amount}{_BINARY_SUFFIXES[step]}"
        exponent = -9
        while nanos % 1000 == 0 and (family is Family.EXPONENT or exponent < 18):
            nanos //= 1000
            exponent += 3
        if family is Family.EXPONENT:
            return f"{nanos}e{exponent}" if exponent else str(nanos)
        return f"{nanos}{_DECIMAL_SUFFIXES[exponent]}"

    def value(self) -> int:
        """Whole units; a fraction counts as one more, away from zero."""
        return _round_up(self.nanos, _NANO)

    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _round_up(self.nanos, 10**6)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.family if self.nanos else other.family)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.family if self.nanos else other.family)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.family)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nanos * times, self.family)

    __rmul__ = __mul__


ZERO = Quantity(0)


def _round_up(amount: int, unit: int) -> int:
    """`amount / unit`, rounded away from zero."""
    return -(-amount // unit) if amount >= 0 else amount // unit


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    text = text.strip()
    parts = _PARTS.fullmatch(text)
    if not text or parts is None:
        raise BadQuantity(BAD_FORM)
    sign, whole, fraction, suffix = parts[1], parts[2].lstrip("0") or "0", parts[3] or "", parts[4]
    family, exponent = _suffix(suffix)
    digits = whole + fraction
    nanos = _scaled(int(digits), family, exponent, len(fraction))
    # An API server reads a short one as a 64-bit number with a scale: then it neither rounds nor caps it.
    if family is Family.BINARY:
        is_short = not fraction and 14 - len(whole) - exponent * 3 // 10 >= 0
    else:
        is_short = len(digits) <= _FAST_DIGITS and exponent - len(fraction) >= -9
    keeps_text = False
    if is_short:
        if family is Family.BINARY:
            keeps_text = int(digits) & 7 != 0
        else:
            keeps_text = (exponent - len(fraction)) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    elif not parts[2] and not fraction:
        raise BadQuantity(BAD_NUMBER)
    elif family is Family.BINARY:
        if 0 < nanos < _NANO:
            family = Family.DECIMAL
        nanos = min(nanos, _MOST * _NANO)  # an API server caps what does not fit into 64 bits
    return Quantity(-nanos if sign == "-" else nanos, family, text if keeps_text else "")


def _suffix(suffix: str) -> tuple[Family, int]:
    if (decimal := _DECIMAL.get(suffix)) is not None:
        return Family.DECIMAL, decimal
    if (binary := _BINARY.get(suffix)) is not None:
        return Family.BINARY, binary
    if not _EXPONENT.fullmatch(suffix) or len(suffix) > 20 or int(suffix[1:]) > _LARGEST_EXPONENT:
        raise BadQuantity(BAD_SUFFIX)
    return Family.EXPONENT, int(suffix[1:])


def _scaled(digits: int, family: Family, exponent: int, places: int) -> int:
    """The amount in billionths, rounded up where it is finer than that: a little is never nothing."""
    if family is Family.BINARY:
        return _round_up((digits << exponent) * _NANO, 10**places)
    power = exponent - places + 9
    if power >= 0:
        return digits * int(10**power)
    if -power > len(str(digits)):  # without computing a power of ten with thousands of digits
        return 1 if digits else 0
    return _round_up(digits, int(10**-power))
