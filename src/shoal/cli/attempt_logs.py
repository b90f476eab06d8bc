"""Which logs there are of a job: of its pods, from the API, and of attempts whose pods are gone, from the archive of a
cluster on this machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cluster.client import LogOptions
from shoal.kube.objects import Obj, key_of, uid_of
from shoal.node.log_archive import ArchivedJob, ArchivedLog, find_archived, logs_in_pod_folders, sort_logs
from shoal.node.log_reader import read_log

if TYPE_CHECKING:
    from shoal.cluster.client import Cluster
    from shoal.local.data_dir import DataFolder


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a task: the log of a pod that is there, or one in the archive."""

    task: str
    number: int = 0  # from 0, as in the status of a Framework, among those that are kept
    file: Path | None = None
    pod: Obj | None = None
    is_previous: bool = False  # the pod's run before its last restart

    def read(self, cluster: Cluster | None, options: LogOptions) -> AsyncIterator[bytes]:
        if self.file is not None:
            return read_file(self.file, options)
        assert cluster is not None
        assert self.pod is not None
        key = key_of(self.pod)
        return cluster.logs(key.name, key.namespace, replace(options, previous=self.is_previous))


def read_file(file: Path, options: LogOptions) -> AsyncIterator[bytes]:
    """An archived log, with the options that a pod's log has."""
    whole = replace(options, follow=False)
    return read_log(file, whole, now=datetime.now(UTC), is_over=lambda: True, subscribe=lambda _: lambda: None)


def attempts_of(
    pods: Mapping[str, Obj], kept: ArchivedJob | None, container: str, restarts: Callable[[Obj, str], int]
) -> dict[str, list[Attempt]]:
    """By task, oldest first. Logs of pods that are there come from the API, also where the archive has them already."""
    found: dict[str, list[Attempt]] = defaultdict(list)
    # The first run of each pod that the API still has a log of.
    served = {uid_of(pod): max(restarts(pod, container) - 1, 0) for pod in pods.values()}
    for log in kept.logs if kept is not None else ():
        assert kept is not None
        if _is_selected(log, container) and log.attempt < served.get(log.pod, log.attempt + 1):
            found[log.task].append(Attempt(log.task, file=kept.folder / log.file))
    for task, pod in pods.items():
        if restarts(pod, container):
            found[task].append(Attempt(task, pod=pod, is_previous=True))
        found[task].append(Attempt(task, pod=pod))
    return {
        task: [replace(each, number=number) for number, each in enumerate(several)]
        for task, several in sorted(found.items())
    }


def archived_file(kept: Iterable[ArchivedJob], pod: Obj, container: str, *, is_previous: bool) -> Path | None:
    """The log of a pod that went a moment ago."""
    logs = [
        job.folder / log.file
        for job in kept
        for log in job.logs
        if log.pod == uid_of(pod) and _is_selected(log, container)
    ]
    place = -2 if is_previous else -1
    return logs[place] if len(logs) >= -place else None


def archived_jobs(data: Path | None, namespace: str, word: str) -> list[ArchivedJob]:
    """Those that `pet` or `framework/pet` may mean, the one that wrote last first."""
    if data is None:
        return []
    kind, _, name = word.rpartition("/")
    return [
        job for job in find_archived(data, namespace, name) if kind.lower().removesuffix("s") in ("", job.kind.lower())
    ]


def jobs_of_stopped_cluster(folder: DataFolder, namespace: str, word: str) -> list[ArchivedJob]:
    """Of a cluster that does not run, so that nothing serves the logs that lie with pods: those too."""
    from shoal.cluster.store.sqlite import StoreBroken
    from shoal.local.orphan_cleanup import stored_pods

    kind, _, name = word.rpartition("/")
    jobs = {job.uid: job for job in archived_jobs(folder.path, namespace, word)}
    try:
        with folder.locked():
            pods = {uid_of(pod): pod for pod in stored_pods(folder)}
    except StoreBroken:
        pods = {}
    for log in logs_in_pod_folders(folder.path, namespace, name, pods):
        job = jobs.get(log.uid, ArchivedJob(folder.path, ()))
        others = [each for each in job.logs if _run_of(each) != _run_of(log)]
        jobs[log.uid] = replace(job, logs=tuple(sort_logs([*others, log])))
    newest_first = sorted(jobs.values(), key=lambda job: job.logs[-1].accepted, reverse=True)
    return [job for job in newest_first if kind.lower().removesuffix("s") in ("", job.kind.lower())]


def _run_of(log: ArchivedLog) -> tuple[str, str, int]:
    return log.pod, log.container, log.attempt


def _is_selected(log: ArchivedLog, container: str) -> bool:
    return log.container == container if container else log.is_default
