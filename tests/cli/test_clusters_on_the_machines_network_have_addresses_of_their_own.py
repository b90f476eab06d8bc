"""Clusters whose pods share the machine's network take ranges of addresses that no other uses, and keep them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from shoal.cli.loopback import PAIRS, Ranges, pair, taken

SHARED = "another cluster uses the same loopback addresses"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a name that nobody else on this machine uses: tests run beside this one, and clusters."""
    monkeypatch.setattr("shoal.cli.loopback._NAME", f"shoal test {uuid4()}")


def test_each_new_cluster_takes_the_first_free_ranges(tmp_path: Path) -> None:
    with taken(tmp_path / "one", is_new=True) as one, taken(tmp_path / "two", is_new=True) as two:
        assert (one, two) == (pair(0), pair(1))
    with taken(tmp_path / "three", is_new=True) as three:
        assert three == pair(0)


def test_a_cluster_keeps_its_ranges(tmp_path: Path) -> None:
    with taken(tmp_path / "one", is_new=True), taken(tmp_path / "two", is_new=True):
        pass
    with taken(tmp_path / "two", is_new=False) as two:
        assert two == pair(1)


def test_addresses_on_record_stay_though_another_cluster_has_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with taken(tmp_path / "one", is_new=True):
        pass
    with taken(tmp_path / "other", is_new=True), taken(tmp_path / "one", is_new=False) as one:
        assert one == pair(0)
    assert [record.getMessage() for record in caplog.records] == [SHARED]


def test_a_cluster_from_before_there_were_records_had_the_first(tmp_path: Path) -> None:
    with taken(tmp_path / "other", is_new=True), taken(tmp_path / "old", is_new=False) as old:
        assert old == pair(0)


@pytest.mark.parametrize("record", ["", "many", "-1", str(PAIRS)])
def test_a_record_that_says_nothing_is_none(tmp_path: Path, record: str) -> None:
    (tmp_path / "one").write_text(record)
    with taken(tmp_path / "other", is_new=True), taken(tmp_path / "one", is_new=True) as one:
        assert one == pair(1)


def test_when_all_are_taken_the_first_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shoal.cli.loopback.PAIRS", 1)
    with taken(tmp_path / "one", is_new=True) as one, taken(tmp_path / "two", is_new=True) as two:
        assert (one, two) == (pair(0), pair(0))
    assert [record.getMessage() for record in caplog.records] == [SHARED]


def test_no_two_ranges_overlap() -> None:
    ranges: list[Ranges] = [pair(number) for number in range(PAIRS)]
    assert len({each.pods for each in ranges} | {str(each.services) for each in ranges}) == 2 * PAIRS
