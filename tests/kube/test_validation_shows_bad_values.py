"""A bad value is shown as Kubernetes shows it: quoted with Go's escapes, numbers plain, the rest as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.kube.errors import Cause
from shoal.kube.validation.errors import (
    duplicate,
    entries,
    forbidden,
    invalid,
    not_found,
    not_supported,
    render,
    required,
    too_long,
    too_many,
)

SHOWN: dict[str, tuple[Any, str]] = {
    "text": ("A_b", '"A_b"'),
    "quotes": ('a"b\\c', '"a\\"b\\\\c"'),
    "lines": ("a\nb\tc", '"a\\nb\\tc"'),
    "bell": ("\a\x01\x7f", '"\\a\\x01\\x7f"'),
    "letters": ("müßig", '"müßig"'),
    "invisible": ("\u200b\U000e0001", '"\\u200b\\U000e0001"'),
    "number": (-1, "-1"),
    "fraction": (0.5, "0.5"),
    "truth": (True, "true"),
    "nothing": (None, "null"),
    "list": (["a", 1], '["a",1]'),
    "object": ({"Key": "<b>"}, '{"Key":"\\u003cb\\u003e"}'),
}


@pytest.mark.parametrize(("value", "shown"), SHOWN.values(), ids=SHOWN)
def test_a_value_is_shown(value: Any, shown: str) -> None:
    assert render(value) == shown


CAUSES = {
    "required": (required("a.b"), Cause("FieldValueRequired", "Required value", "a.b")),
    "required because": (required("a", "why"), Cause("FieldValueRequired", "Required value: why", "a")),
    "invalid": (invalid("a", 1, "why"), Cause("FieldValueInvalid", "Invalid value: 1: why", "a")),
    "duplicate": (duplicate("a", "x"), Cause("FieldValueDuplicate", 'Duplicate value: "x"', "a")),
    "not found": (not_found("a", "x"), Cause("FieldValueNotFound", 'Not found: "x"', "a")),
    "not supported": (
        not_supported("a", "<x>", ("b", "c")),
        Cause("FieldValueNotSupported", 'Unsupported value: "\\u003cx\\u003e": supported values: "b", "c"', "a"),
    ),
    "forbidden": (forbidden("a", "why"), Cause("FieldValueForbidden", "Forbidden: why", "a")),
    "too long": (too_long("a", 1), Cause("FieldValueTooLong", "Too long: may not be more than 1 byte", "a")),
    "too many": (too_many("a", 3, 2), Cause("FieldValueTooMany", "Too many: 3: must have at most 2 items", "a")),
}


@pytest.mark.parametrize(("made", "expected"), CAUSES.values(), ids=CAUSES)
def test_each_kind_of_mistake_has_its_message(made: Cause, expected: Cause) -> None:
    assert made == expected


def test_a_null_among_objects_counts_as_an_empty_one() -> None:
    assert (entries(None), entries([{"a": 1}, None])) == ([], [{"a": 1}, {}])
