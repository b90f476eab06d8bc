"""What `shoal run` leaves of each job: a folder with a log per task and attempt, the final object, its description,
and the steps and losses in its logs."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.kube import yaml_codec
from shoal.kube.objects import uid_of
from shoal.node.checkpoint import PodFolder
from shoal.node.log_archive import METRICS, LogArchive, find_archived
from shoal.node.log_reader import LogFormatter, LogTrail
from shoal.training_progress import visible

if TYPE_CHECKING:
    from shoal.cli.job_lookup import FoundJob

OBJECT, DESCRIPTION = "job.yaml", "story.txt"


def new_folder(parent: Path, job: FoundJob, began: datetime) -> Path | None:
    """`<parent>/<job>-<time>`, made now; None, with a warning, where it cannot be."""
    stem = f"{job.name}-{began.astimezone():%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        folder = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if folder.is_dir():
                continue
            refused = f"{parent} is not a folder"
        except OSError as problem:
            refused = f"{problem.filename}: {problem.strerror}"
        else:
            return folder
        break
    click.echo(
        f"Warning: no output folder is written: {refused}. Name another folder with --out, or use --no-out.", err=True
    )
    return None


def write(folders: Mapping[str, Path], data: Path, jobs: Sequence[FoundJob], descriptions: Mapping[str, str]) -> None:
    """Fill the folders, by uid of the job, from the data folder of a cluster that has stopped."""
    archive = LogArchive(data)
    for path in data.glob("nodes/*/pods/*"):
        folder = PodFolder(path)
        if (record := folder.load()) is not None:
            archive.store(folder, record)
    for job in jobs:
        uid = uid_of(job.manifest)
        if (folder_of_job := folders.get(uid)) is None:
            continue
        try:
            write_folder(folder_of_job, data, job, descriptions.get(uid, ""))
        except OSError as refused:
            click.echo(f"Warning: the output in {folder_of_job} is incomplete: {refused.strerror}.", err=True)


def write_folder(folder: Path, data: Path, job: FoundJob, description: str) -> None:
    (folder / OBJECT).write_text(yaml_codec.encode(job.manifest, sort_keys=False))
    if description:
        (folder / DESCRIPTION).write_text(f"{description}\n")
    for kept in find_archived(data, job.namespace, job.name):
        if kept.uid != uid_of(job.manifest):
            continue
        # `worker-0.0.log` is the first attempt of worker-0, with the container's name where there are several.
        containers = {log.container for log in kept.logs}
        numbers: dict[tuple[str, str], int] = defaultdict(int)
        for log in kept.logs:
            number = numbers[log.task, log.container]
            numbers[log.task, log.container] += 1
            container = f".{log.container}" if len(containers) > 1 else ""
            copy_log(kept.folder / log.file, folder / f"{log.task[:200]}.{number}{container}.log")
        if (kept.folder / METRICS).exists():
            shutil.copyfile(kept.folder / METRICS, folder / METRICS)


def copy_log(source: Path, target: Path) -> None:
    """The lines as the program wrote them, of progress bars the last state."""
    trail, words, rest = LogTrail(source), LogFormatter(), b""
    trail.seek_tail(None)
    try:
        with target.open("wb") as file:
            while records := trail.read():
                *lines, rest = (rest + words.format(records)).split(b"\n")
                file.writelines(_last_state(line) + b"\n" for line in lines)
            if rest:
                file.write(_last_state(rest) + b"\n")
    finally:
        trail.close()


def _last_state(line: bytes) -> bytes:
    line = line.removesuffix(b"\r")
    return os.fsencode(visible(os.fsdecode(line))) if b"\r" in line else line
