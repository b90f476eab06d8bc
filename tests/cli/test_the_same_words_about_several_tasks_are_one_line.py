"""What befalls several tasks in the same words within a minute is told once; everything else line by line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.cli.event_grouping import folded

T0 = datetime(2030, 1, 1, tzinfo=UTC)

CASES: dict[str, tuple[list[tuple[int, str]], list[tuple[int, str]]]] = {
    "interleaved": (
        [(0, "w-0 was lost in attempt 0: Gone."), (0, "w-0 is tried again as attempt 1 (1 charged)."),
         (1, "w-1 was lost in attempt 0: Gone."), (1, "w-1 is tried again as attempt 1 (1 charged).")],
        [(0, "w-0 and w-1 were lost in attempt 0: Gone."),
         (0, "w-0 and w-1 are tried again as attempt 1 (1 charged each).")],
    ),
    "out of order": (
        [(9, "w-1 was evicted: x."), (3, "w-0 was evicted: x."), (4, "w-7 was evicted: x.")],
        [(3, "w-0, w-1 and w-7 were evicted: x.")],
    ),
    "other words": (
        [(0, "w-0 failed in attempt 0: Error (code 1)."), (0, "w-1 failed in attempt 0: Error (code 2).")],
        [(0, "w-0 failed in attempt 0: Error (code 1)."), (0, "w-1 failed in attempt 0: Error (code 2).")],
    ),
    "another role": (
        [(0, "ps-0 was evicted: x."), (0, "w-1 was evicted: x.")],
        [(0, "ps-0 was evicted: x."), (0, "w-1 was evicted: x.")],
    ),
    "much later": (
        [(0, "w-0 was evicted: x."), (61, "w-1 was evicted: x."), (62, "w-2 was evicted: x.")],
        [(0, "w-0 was evicted: x."), (61, "w-1 and w-2 were evicted: x.")],
    ),
    "the same task again": (
        [(0, "w-0 was evicted: x."), (1, "w-0 was evicted: x.")],
        [(0, "w-0 was evicted: x."), (1, "w-0 was evicted: x.")],
    ),
    "another attempt": (
        [(0, "w-0 was evicted in attempt 0: x."), (1, "w-1 was evicted in attempt 0: x."),
         (2, "w-0 was evicted in attempt 1: x."), (3, "w-2 was evicted in attempt 1: x.")],
        [(0, "w-0 and w-1 were evicted in attempt 0: x."), (2, "w-0 and w-2 were evicted in attempt 1: x.")],
    ),
    "words without a known plural": (
        [(0, "w-0 is wanted again and begins anew."), (0, "w-1 is wanted again and begins anew."), (0, "It failed.")],
        [(0, "w-0 is wanted again and begins anew."), (0, "w-1 is wanted again and begins anew."), (0, "It failed.")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_lines_are_folded(case: str) -> None:
    told, expected = CASES[case]
    lines = folded((T0 + timedelta(seconds=second), sentence) for second, sentence in told)
    assert [(int((moment - T0).total_seconds()), sentence) for moment, sentence in lines] == expected
