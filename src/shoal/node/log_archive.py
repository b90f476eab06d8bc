"""Logs of deleted pods: kept by job, task and attempt under a budget, in the cluster's data folder.

A pod of a job carries annotations that name the job and the task. When such a pod is deleted, or a container of it is
started for the third time, its finished logs are linked to `<data>/logs/<namespace>/<job>.<uid>/`, and a line of
`index.jsonl` there records the owner of each and how it ended. Over the budget the oldest jobs are removed first, then
the oldest attempts of the job that is left. A log that cannot be kept is dropped: an archive never keeps a pod from
ending.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from shoal.kube.objects import Obj
from shoal.logs import Logger
from shoal.node import step_metrics
from shoal.node.checkpoint import ContainerRecord, JobReference, PodFolder, PodRecord

log = Logger(__name__)

FOLDER = "logs"  # of the data folder
INDEX = "index.jsonl"
METRICS = "metrics.jsonl"  # beside it
DEFAULT_BYTES = 2 << 30
DEFAULT_DAYS = 14
DAY_SECONDS = 86_400.0
_TRIM_TARGET = 0.9  # of the budget is left in use when it was exceeded, so that not every log looks for the oldest one
_MAX_TASK_LENGTH = 80  # characters in the name of a file
_LOG = re.compile(r"(?P<container>[^.]+)\.(?P<attempt>\d+)\.log(?P<part>\.\d+)?")


@dataclass(frozen=True, slots=True)
class ArchiveBudget:
    bytes: int = DEFAULT_BYTES  # 0: nothing is kept
    days: float = DEFAULT_DAYS


class ArchivedLog(msgspec.Struct, frozen=True):
    """One run of a container in a pod that is gone, or that has run again since."""

    job: str  # <Kind>.<group>/<name>
    uid: str  # of the job
    task: str
    pod: str
    container: str
    attempt: int  # of the container in its pod
    file: str
    accepted: float  # when its node took the pod
    started: float | None = None
    ended: float | None = None
    code: int | None = None
    reason: str = ""
    is_default: bool = True  # the container whose log is read where none is named


@dataclass(frozen=True, slots=True)
class ArchivedJob:
    """The logs of one job that are kept, oldest first."""

    folder: Path
    logs: tuple[ArchivedLog, ...]

    @property
    def kind(self) -> str:
        return self.logs[0].job.partition("/")[0].partition(".")[0]

    @property
    def uid(self) -> str:
        return self.logs[0].uid


class LogArchive:
    """The archive of one data folder. Its methods may be called from any thread."""

    def __init__(
        self, data: Path, budget: ArchiveBudget | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._root = data / FOLDER
        self._budget = budget or ArchiveBudget()
        self._clock = clock
        self._lock = threading.Lock()
        self._bytes: int | None = None  # on disk; None: not measured yet
        self._expired_at = 0.0

    def store(self, folder: PodFolder, record: PodRecord, pod: Obj | None = None, *, before: int | None = None) -> None:
        """Link the logs of the pod here; the first name is removed with the pod's folder.
        `before`: only of earlier attempts of its containers."""
        if record.job is None or self._budget.bytes <= 0:
            return
        found = [
            (path, match)
            for path in sorted(_entries(folder.path))
            if (match := _LOG.fullmatch(path.name)) and (before is None or int(match["attempt"]) < before)
        ]
        if not found:
            return
        default = _default_container(pod)
        with self._lock:
            try:
                self._link_logs(record, record.job, found, default)
                self._enforce_budget()
            except OSError as refused:
                log.warning("logs not kept", pod=str(record.key), error=str(refused))

    def _link_logs(
        self, record: PodRecord, job: JobReference, found: list[tuple[Path, re.Match[str]]], default: str
    ) -> None:
        self._measure()
        job_folder = self._job_folder(record, job)
        lines: list[bytes] = []
        for path, match in found:
            name, attempt = match["container"], int(match["attempt"])
            file = f"{job.task[:_MAX_TASK_LENGTH]}.{record.uid}.{name}.{attempt}.log"
            size, target = _size(path), job_folder / f"{file}{match['part'] or ''}"
            target.unlink(missing_ok=True)
            try:  # a second name for the same file, so that a client that reads the log now is not disturbed
                target.hardlink_to(path)
            except OSError:  # a file system without hard links
                path.replace(target)
            self._bytes = (self._bytes or 0) + size
            if match["part"] is None:
                lines.append(msgspec.json.encode(_log_entry(record, job, name, attempt, file, default)) + b"\n")
        with (job_folder / INDEX).open("ab") as index:
            index.write(b"".join(lines))
        self._bytes = (self._bytes or 0) + sum(map(len, lines))

    def add_metrics(self, folder: PodFolder, record: PodRecord, container: str, attempt: int) -> None:
        """Add the steps and losses in the log of a finished run to the metrics of its job."""
        job, log_file = record.job, folder.log_file(container, attempt)
        if job is None or self._budget.bytes <= 0:
            return
        try:
            with self._lock:
                job_folder = self._job_folder(record, job)
                earlier_runs = sum(
                    (each.task, each.container) == (job.task, container)
                    and each.pod != record.uid
                    and each.accepted <= record.accepted_at
                    for each in _read_index(job_folder)
                )  # of the pods that the task had before this one
                number = earlier_runs + attempt + 1
            points = step_metrics.points_in(log_file, task=job.task, pod=record.uid, attempt=number)
            if points:
                with self._lock:
                    self._measure()
                    # again: the budget may have removed the folder by now
                    file = self._job_folder(record, job) / METRICS
                    before = _size(file)
                    step_metrics.append(points, file)
                    self._bytes = (self._bytes or 0) + _size(file) - before
                    self._enforce_budget()
        except OSError as refused:
            log.warning("metrics not kept", pod=str(record.key), error=str(refused))

    def _job_folder(self, record: PodRecord, job: JobReference) -> Path:
        job_folder = self._root / record.namespace / f"{job.name[:200]}.{job.uid[:8]}"
        job_folder.mkdir(parents=True, exist_ok=True)
        return job_folder

    def _measure(self) -> None:
        if self._bytes is None:
            self._bytes = sum(_size(path) for job in _job_folders(self._root) for path in _entries(job))

    def _enforce_budget(self) -> None:
        now = self._clock()
        if now - self._expired_at > DAY_SECONDS / 24:
            self._expired_at = now
            for job in _job_folders(self._root):
                if now - _changed_at(job) > self._budget.days * DAY_SECONDS:
                    self._remove(job)
        if (self._bytes or 0) <= self._budget.bytes:
            return
        self._bytes = None
        self._measure()  # what was removed by hand is no longer there
        oldest_first = sorted(_job_folders(self._root), key=_changed_at)
        for job in oldest_first:
            if (self._bytes or 0) <= self._budget.bytes * _TRIM_TARGET:
                return
            if job is oldest_first[-1]:
                self._trim_job(job)
            else:
                self._remove(job)

    def _remove(self, job: Path) -> None:
        self._bytes = (self._bytes or 0) - sum(map(_size, _entries(job)))
        shutil.rmtree(job, ignore_errors=True)

    def _trim_job(self, job: Path) -> None:
        """Drop the oldest attempts of a job until it is within the budget."""
        left = sum(map(_size, _entries(job)))
        before, kept = left, list(_read_index(job))
        while kept and left > self._budget.bytes * _TRIM_TARGET:
            oldest = kept.pop(0)
            for path in _entries(job):
                if path.name == oldest.file or path.name.startswith(f"{oldest.file}."):
                    left -= _size(path)
                    path.unlink(missing_ok=True)
            left -= len(msgspec.json.encode(oldest)) + 1
        draft = job / f".{INDEX}.new"
        draft.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in kept))
        draft.replace(job / INDEX)
        self._bytes = (self._bytes or 0) - before + left


def find_archived(data: Path, namespace: str, name: str) -> list[ArchivedJob]:
    """The jobs of that name whose logs are kept, the one that wrote last first."""
    folders = [path for path in _entries(data / FOLDER / namespace) if path.name.rpartition(".")[0] == name[:200]]
    found = (ArchivedJob(path, tuple(_read_index(path))) for path in sorted(folders, key=_changed_at, reverse=True))
    return [job for job in found if job.logs]


def logs_in_pod_folders(data: Path, namespace: str, name: str, pods: Mapping[str, Obj]) -> list[ArchivedLog]:
    """The logs of a job's pods in the data folder of a cluster that does not run; `file` is a whole path. `pods`: those
    that the cluster has stored, by uid."""
    found: list[ArchivedLog] = []
    for path in sorted(data.glob("nodes/*/pods/*")):
        record = PodFolder(path).load()
        if record is None or record.job is None or (record.namespace, record.job.name) != (namespace, name):
            continue
        default = _default_container(pods.get(record.uid))
        for log_file in sorted(_entries(path)):
            match = _LOG.fullmatch(log_file.name)
            if match is not None and match["part"] is None:
                run_key = match["container"], int(match["attempt"])
                found.append(_log_entry(record, record.job, *run_key, str(log_file), default))
    return found


def sort_logs(logs: Iterable[ArchivedLog]) -> list[ArchivedLog]:
    """By the time their pods came, and their attempts."""
    return sorted(logs, key=lambda each: (each.accepted, each.started or each.accepted, each.attempt))


def _default_container(pod: Obj | None) -> str:
    return pod["spec"]["containers"][0]["name"] if pod is not None else ""


def _log_entry(
    record: PodRecord, job: JobReference, container: str, attempt: int, file: str, default: str
) -> ArchivedLog:
    known = record.containers.get(container) or ContainerRecord()
    run = next((run for run in (known.run, known.last) if run and run.attempt == attempt), None)
    ended = run.ended if run is not None else None
    return ArchivedLog(
        job=f"{job.kind}/{job.name}", uid=job.uid, task=job.task, pod=record.uid, container=container,
        attempt=attempt, file=file, accepted=record.accepted_at, is_default=default in (container, ""),
        started=run.started_at if run is not None else None, ended=ended.at if ended is not None else None,
        code=ended.exit_code if ended is not None else None,
        reason=ended.reason if ended is not None else "",
    )  # fmt: skip


def _read_index(job: Path) -> Iterator[ArchivedLog]:
    """Each log once, by the time its pod came and its attempt."""
    try:
        lines = (job / INDEX).read_bytes().splitlines()
    except OSError:
        return
    found: dict[str, ArchivedLog] = {}
    for line in lines:
        try:
            each = msgspec.json.decode(line, type=ArchivedLog)
        except msgspec.DecodeError:
            continue  # cut short by a crash or a full disk
        found[each.file] = each
    yield from sort_logs(found.values())


def _job_folders(root: Path) -> list[Path]:
    return [job for namespace in _entries(root) for job in _entries(namespace)]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _changed_at(job: Path) -> float:
    try:
        return job.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    """On the disk, where the smallest file takes a block."""
    try:
        return max(path.stat().st_blocks * 512, path.stat().st_size)
    except OSError:
        return 0
