"""Quantities are exact, and come back out in the canonical form of the family they were written in."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.quantity import BadQuantity, Family, Quantity

CANONICAL = {
    "0": "0", "-0": "0", "1": "1", "0.5": "500m", "1.5": "1500m", "1000": "1k", "1024": "1024", "100000": "100k",
    "1500m": "1500m", "1000m": "1", "0.1m": "100u", "1n": "1n", "0.1n": "1n", "-0.1n": "-1n", "1E": "1E",
    "1000E": "1000E", "1Gi": "1Gi", "1.5Gi": "1536Mi", "1024Ki": "1Mi", "1000Ki": "1000Ki", "512Ki": "512Ki",
    "0.5Ki": "512", "0.5Mi": "512Ki", "1.1Ki": "1126400m", "-2Gi": "-2Gi", "0Gi": "0", "9Ei": "9223372036854775807",
    "0.0001Ki": "102400u", "1e3": "1e3", "1E3": "1E3", "1000e0": "1e3", "1e1": "10", "12e6": "12e6",
    "0.001e0": "1e-3", "1e-9": "1e-9", "1e21": "1e21", "+1": "+1", "01": "01", "1.500": "1.500", "0.500": "500m",
    "1.": "1.", ".5": "500m", ".": "0", " 5 ": "5", "m": "0",
}  # fmt: skip


@pytest.mark.parametrize(("written", "canonical"), CANONICAL.items(), ids=CANONICAL)
def test_a_quantity_is_written_as_kubernetes_writes_it(written: str, canonical: str) -> None:
    assert str(Quantity.parse(written)) == canonical


FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMBER, SUFFIX = "unable to parse numeric part of quantity", "unable to parse quantity's suffix"
REFUSED = {
    "": FORM, "abc": FORM, "1 Gi": FORM, "1GiB": FORM, "1gb": FORM, "1..2": FORM,
    "1e5.3": FORM, "--1": SUFFIX, "1,5": FORM, "١": FORM, "1K": SUFFIX, "1e": SUFFIX,
    "1Gm": SUFFIX, "5-3": SUFFIX, "1i": SUFFIX, "1e99999999999999999999": SUFFIX, "Ei": NUMBER,
}  # fmt: skip


@pytest.mark.parametrize(("written", "why"), REFUSED.items(), ids=REFUSED)
def test_an_invalid_quantity_is_rejected_with_the_message_of_kubernetes(written: str, why: str) -> None:
    with pytest.raises(BadQuantity) as refused:
        Quantity.parse(written)
    assert str(refused.value) == why


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}], ids=repr)
def test_values_that_are_neither_text_nor_number_are_refused(value: object) -> None:
    with pytest.raises(BadQuantity):
        Quantity.parse(value)  # type: ignore[arg-type]


def test_plain_numbers_are_read_too() -> None:
    assert [str(Quantity.parse(n)) for n in (2, 0.1, 1500, 1e21)] == ["2", "100m", "1500", "1e+21"]


def test_rounding_goes_away_from_zero() -> None:
    texts = ["1", "1001m", "-1001m", "1n", "1Gi"]
    assert [(Quantity.parse(t).value(), Quantity.parse(t).milli()) for t in texts] == [
        (1, 1000), (2, 1001), (-2, -1001), (1, 1), (1073741824, 1073741824000),
    ]  # fmt: skip


def test_a_sum_keeps_the_family_of_its_first_part_unless_that_is_nothing() -> None:
    gibi, giga = Quantity.parse("1Gi"), Quantity.parse("1G")
    assert [str(gibi + gibi), str(giga + giga), str(Quantity(0) + gibi), str(gibi - gibi), str(3 * gibi)] == [
        "2Gi", "2G", "1Gi", "0", "3Gi",
    ]  # fmt: skip


SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "Ki": Fraction(2**10),
    "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40), "e3": Fraction(1000), "E-3": Fraction(1, 1000),
}  # fmt: skip
numbers = st.integers(-(10**6), 10**6)
suffixes = st.sampled_from(sorted(SUFFIXES))


@given(numbers, suffixes, numbers, suffixes)
def test_order_and_sums_agree_with_exact_fractions(a: int, a_unit: str, b: int, b_unit: str) -> None:
    left, right = Quantity.parse(f"{a}{a_unit}"), Quantity.parse(f"{b}{b_unit}")
    exact_left, exact_right = a * SUFFIXES[a_unit], b * SUFFIXES[b_unit]
    assert (left < right, left == right) == (exact_left < exact_right, exact_left == exact_right)
    assert Fraction((left + right).nanos, 10**9) == exact_left + exact_right
    assert Fraction((left - right).nanos, 10**9) == exact_left - exact_right


@given(st.integers(-(2**70), 2**70), st.sampled_from(Family))
def test_what_is_written_reads_as_itself_and_is_already_canonical(nanos: int, family: Family) -> None:
    if family is Family.BINARY:
        nanos = max(min(nanos, (2**63 - 1) * 10**9), -(2**63 - 1) * 10**9)
    text = str(Quantity(nanos, family))
    assert Quantity.parse(text).nanos == nanos
    assert str(Quantity.parse(text)) == text


@given(st.text(st.sampled_from("0123456789.+-eEinumkKMGTP "), max_size=12))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except BadQuantity:
        return
    assert Quantity.parse(str(quantity)) == quantity
