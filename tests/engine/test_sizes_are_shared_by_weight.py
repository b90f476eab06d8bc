"""Sizes: the weighted share, one by one, in integers; and index ranges as the ledger writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engine import Job, Policies, Role, format_ranges, parse_ranges
from shoal.engine.policies import WeightedSize
from shoal.engine.scaling import target_sizes


def shared(total: int, *roles: tuple[str, int, int]) -> list[int]:
    job = Job("u", "j", tuple(Role(n, size=s, weight=w) for n, w, s in roles), Policies(size=WeightedSize(total)))
    return list(target_sizes(job).values())


A2B1 = (("a", 2, 1), ("b", 1, 1))
A1B3 = (("a", 1, 1), ("b", 3, 1))
A6B6C2 = (("a", 6, 1), ("b", 6, 1), ("c", 2, 1))
X0 = (("x", 0, 2), ("a", 3, 1), ("b", 2, 1))

TABLE = [
    ((("worker", 1, 1),), 7, [7]),
    ((("master", 0, 1), ("worker", 1, 1)), 7, [1, 6]),
    *[
        (A2B1, t, r)
        for t, r in ((2, [1, 1]), (3, [2, 1]), (4, [3, 1]), (5, [3, 2]), (6, [4, 2]), (7, [5, 2]), (9, [6, 3]))
    ],
    *[(A1B3, t, r) for t, r in ((4, [1, 3]), (5, [2, 3]), (8, [2, 6]))],
    *[(A6B6C2, t, r) for t, r in ((10, [4, 4, 2]), (11, [5, 4, 2]), (14, [6, 6, 2]))],
    *[(X0, t, r) for t, r in ((4, [2, 1, 1]), (7, [2, 3, 2]), (12, [2, 6, 4]))],
]


@pytest.mark.parametrize(
    ("roles", "total", "expected"), TABLE, ids=lambda value: str(value) if isinstance(value, int) else ""
)
def test_a_total_is_shared_by_weight(roles: tuple[tuple[str, int, int], ...], total: int, expected: list[int]):
    assert shared(total, *roles) == expected


@given(st.integers(0, 60), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_one_more_adds_exactly_one_and_takes_from_nobody(total: int, weights: list[int]):
    roles = [(f"r{number}", weight, 1) for number, weight in enumerate(weights)]
    before, after = shared(total, *roles), shared(total + 1, *roles)

    assert sum(before) == total
    assert sorted(b - a for a, b in zip(before, after, strict=True)) == [0] * (len(weights) - 1) + [1]


@given(st.sets(st.integers(0, 300)))
def test_index_ranges_are_read_as_written(numbers: set[int]):
    assert parse_ranges(format_ranges(numbers), most=len(numbers)) == tuple(sorted(numbers))


def test_ranges_are_short():
    assert format_ranges([0, 1, 2, 3, 7, 9, 10]) == "0-3,7,9-10"
