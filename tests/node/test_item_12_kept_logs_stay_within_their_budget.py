"""The archive of logs: what it keeps, and that it never takes more room than its budget."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.node.checkpoint import Ended, JobReference, PodFolder, PodRecord, job_of
from shoal.node.log_archive import ArchiveBudget, LogArchive, find_archived

KIB = 1 << 10


def ended_pod(data: Path, number: int, *, job: str = "", size: int = 4 * KIB) -> tuple[PodFolder, PodRecord]:
    folder = PodFolder(data / "nodes" / "n" / "pods" / f"uid-{number}")
    reference = JobReference("Framework.x", job or f"job-{number}", f"{number if not job else 0:08d}-x", "worker-0")
    record = PodRecord(f"uid-{number}", "team", f"pod-{number}", float(number), job=reference)
    record.container("main").mark_intended(1.0, 0.0)
    record.container("main").mark_ended(Ended(2.0, number % 3))
    folder.save(record)
    folder.log_file("main", 0).write_bytes(b"2026-11-18T00:00:00.000000000Z stdout F " + b"x" * (size - 41) + b"\n")
    return folder, record


def room_taken(data: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in (data / "logs").rglob("*") if path.is_file())


def keep(archive: LogArchive, folder: PodFolder, record: PodRecord, *, now: float) -> None:
    archive.store(folder, record)
    folder.remove()
    for job in find_archived(folder.path.parents[3], "team", record.job.name if record.job else ""):
        os.utime(job.folder, (now, now))


@pytest.mark.parametrize("is_one_job", [False, True], ids=["many jobs", "one job"])
def test_many_short_pods_leave_the_budget_and_no_folder(tmp_path: Path, is_one_job: bool) -> None:
    archive = LogArchive(tmp_path, ArchiveBudget(400 * KIB, 1.0), clock=lambda: 1000.0)
    for number in range(300):
        keep(archive, *ended_pod(tmp_path, number, job="same" if is_one_job else ""), now=1000.0 + number / 1000)
    assert 100 * KIB < room_taken(tmp_path) <= 400 * KIB
    assert list((tmp_path / "nodes" / "n" / "pods").iterdir()) == []
    last = find_archived(tmp_path, "team", "same" if is_one_job else "job-299")[0]
    assert (last.logs[-1].pod, last.logs[-1].code) == ("uid-299", 299 % 3)
    assert (last.folder / last.logs[-1].file).exists()
    assert find_archived(tmp_path, "team", "job-0") == []
    assert all((last.folder / log.file).exists() for log in last.logs)


def test_metrics_count_towards_the_budget(tmp_path: Path) -> None:
    archive = LogArchive(tmp_path, ArchiveBudget(400 * KIB, 1.0), clock=lambda: 1000.0)
    stamp = "2026-11-18T00:00:00.000000000Z"
    for number in range(10):
        folder, record = ended_pod(tmp_path, number)
        lines = [f"{stamp} stdout F step {step} loss 0.5\n" for step in range(1000)]
        folder.log_file("main", 0).write_text("".join(lines))
        archive.add_metrics(folder, record, "main", 0)
        folder.remove()
    assert 100 * KIB < room_taken(tmp_path) <= 400 * KIB


def test_logs_go_after_their_days(tmp_path: Path) -> None:
    now = 1000.0
    archive = LogArchive(tmp_path, ArchiveBudget(days=2.0), clock=lambda: now)
    keep(archive, *ended_pod(tmp_path, 1), now=now)
    now += 2.1 * 86_400
    keep(archive, *ended_pod(tmp_path, 2), now=now)
    assert find_archived(tmp_path, "team", "job-1") == []
    assert len(find_archived(tmp_path, "team", "job-2")) == 1


def test_nothing_is_kept_where_nothing_may_be(tmp_path: Path) -> None:
    keep(LogArchive(tmp_path, ArchiveBudget(0)), *ended_pod(tmp_path, 1), now=1.0)
    assert not (tmp_path / "logs").exists()


def test_a_pod_of_no_job_takes_its_logs_along(tmp_path: Path) -> None:
    folder, record = ended_pod(tmp_path, 1)
    record.job = None
    keep(LogArchive(tmp_path), folder, record, now=1.0)
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("part", ["..", "a/b", "/etc", "", ".", "a\0b", "x" * 300])
def test_an_annotation_that_is_no_name_is_no_path(part: str) -> None:
    annotations = {"shoal.dev/job": f"Job/{part}", "shoal.dev/job-uid": "u", "shoal.dev/task": "t"}
    assert job_of({"metadata": {"annotations": annotations}}) is None
    named = {"shoal.dev/job": "Job.batch/fine", "shoal.dev/job-uid": "u", "shoal.dev/task": part}
    assert job_of({"metadata": {"annotations": named}}) is None


def test_a_log_is_listed_once_though_it_was_kept_twice(tmp_path: Path) -> None:
    """The agent was killed after it had kept the logs of a pod, and before the pod's folder was gone."""
    archive = LogArchive(tmp_path)
    folder, record = ended_pod(tmp_path, 1)
    archive.store(folder, record)
    archive.store(folder, record)
    assert [log.file for log in find_archived(tmp_path, "team", "job-1")[0].logs] == ["worker-0.uid-1.main.0.log"]


def test_an_archive_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    folder, record = ended_pod(tmp_path, 1)
    LogArchive(tmp_path).store(folder, record)
    assert folder.log_file("main", 0).exists()
