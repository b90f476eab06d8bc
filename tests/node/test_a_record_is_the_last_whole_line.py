"""What an agent remembers of a pod survives a line that was cut short, and does not grow without end."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.node.checkpoint import MAX_BYTES, RECORD, PodFolder, PodOutcome, PodRecord, new_record

POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u1"}, "spec": {"containers": [{"name": "main"}]}}


@pytest.fixture
def folder(tmp_path: Path) -> PodFolder:
    return PodFolder(tmp_path / "pods" / "u1")


def started(at: float) -> PodRecord:
    record = new_record(POD, 1.0)
    record.sandboxed_at = at
    return record


def test_the_last_version_holds(folder: PodFolder) -> None:
    for at in (2.0, 3.0):
        folder.save(started(at))
    assert folder.load() == started(3.0)
    assert PodFolder(folder.path).load() == started(3.0)


def test_nothing_is_known_of_a_pod_that_was_never_here(folder: PodFolder) -> None:
    assert folder.load() is None


@pytest.mark.parametrize("kept", [1, 20, 150])
def test_a_line_cut_short_is_passed_over_and_spoils_nothing_after_it(folder: PodFolder, kept: int) -> None:
    folder.save(started(2.0))
    whole = (folder.path / RECORD).read_bytes()
    (folder.path / RECORD).write_bytes(whole + whole[:kept])
    assert folder.load() == started(2.0)
    folder.save(started(4.0))
    assert folder.load() == started(4.0)


def test_old_versions_are_thrown_away_in_time(folder: PodFolder) -> None:
    most = 0
    for step in range(2_000):
        folder.save(started(float(step)))
        most = max(most, (folder.path / RECORD).stat().st_size)
    assert most <= MAX_BYTES
    assert folder.load() == started(1_999.0)


def test_an_agent_that_starts_again_counts_what_others_wrote(folder: PodFolder) -> None:
    for step in range(2_000):
        PodFolder(folder.path).save(started(float(step)))
    assert (folder.path / RECORD).stat().st_size <= MAX_BYTES


def test_a_record_larger_than_all_that_is_kept_is_kept_whole(folder: PodFolder) -> None:
    record = started(2.0)
    record.outcome = PodOutcome("Failed", "Evicted", "x" * MAX_BYTES)
    folder.save(started(1.0))
    folder.save(record)
    assert folder.load() == record
