"""Ages show two or three figures, as kubectl users know them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shoal.apiserver import durations

M, H, D = 60, 3600, 86400
SHOWN = {
    -5: "<invalid>", -1: "0s", 0: "0s", 119: "119s", 120: "2m", 3 * M + 20: "3m20s", 10 * M + 5: "10m", 179 * M: "179m",
    3 * H: "3h", 5 * H + 2 * M: "5h2m", 8 * H + 30 * M: "8h", 47 * H: "47h", 2 * D: "2d", 3 * D + 4 * H: "3d4h",
    8 * D: "8d",    700 * D: "700d", 730 * D: "2y", 800 * D: "2y70d", 3000 * D: "8y",
}  # fmt: skip


@pytest.mark.parametrize(("seconds", "shown"), SHOWN.items(), ids=SHOWN.values())
def test_a_duration_is_rounded(seconds: int, shown: str) -> None:
    assert durations.human_duration(seconds) == shown


@pytest.mark.parametrize(
    ("moment", "shown"),
    [(None, "<unknown>"), ("", "<unknown>"), ("soon", "<invalid>"), ("2029-12-31T23:59:00Z", "60s")],
)
def test_the_age_of_a_timestamp(moment: str | None, shown: str) -> None:
    assert durations.age_since(moment, datetime(2030, 1, 1, tzinfo=UTC)) == shown
