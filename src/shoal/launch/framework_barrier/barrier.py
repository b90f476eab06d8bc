"""The barrier's loop: read, decide, wait for a change or the interval, until all are there or time is up.

The Framework controller classifies the failure by the exit code: a time-out while everything could be read is a
conflict over resources, so that all pods are released; a Framework that does not exist is a permanent failure.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shoal.dialects.framework.barrier import (
    FAILED,
    FRAMEWORK_FILE,
    HOPELESS,
    INJECTOR_FILE,
    PASSED,
    TIMED_OUT,
    framework_json,
    injector,
    progress,
)
from shoal.kube.objects import Obj
from shoal.launch.framework_barrier.framework_client import FrameworkNotFound, ReadFailed

LAST_READ_SECONDS = 1.0  # for the look when time is up; all the others end before that


class Reader(Protocol):
    def read(self, seconds: float) -> Obj: ...

    def changes(self, framework: Obj | None, seconds: float) -> Iterator[Obj]: ...


@dataclass(frozen=True, slots=True)
class BarrierResult:
    """The exit code, its message, and the Framework where it is passed."""

    code: int
    sentence: str
    framework: Obj | None = None


def wait(
    reader: Reader,
    *,
    interval_seconds: float,
    timeout_seconds: float,
    now: Callable[[], float] = time.monotonic,
    report: Callable[[str], None] = lambda _: None,
) -> BarrierResult:
    """Until every task has an address, or as long as it may take."""
    deadline = now() + timeout_seconds
    last_sentence = ""
    while True:
        framework, problem = None, ""
        try:
            framework = reader.read(max(deadline - now(), LAST_READ_SECONDS))
        except FrameworkNotFound as hopeless:
            return BarrierResult(HOPELESS, f"{hopeless}; a barrier runs in the pods of a Framework that exists")
        except ReadFailed as failed:
            problem = str(failed)
        sentence = problem or str(progress(framework or {}))
        if sentence != last_sentence:
            report(sentence)
            last_sentence = sentence
        if framework is not None and progress(framework).is_passed:
            return _passed(framework)
        left = deadline - now()
        if left <= 0:
            if problem:
                return BarrierResult(FAILED, f"gave up after {timeout_seconds:g} s: {sentence}")
            return BarrierResult(TIMED_OUT, f"timed out after {timeout_seconds:g} s: {sentence}")
        for changed in reader.changes(framework, min(interval_seconds, left)):
            if progress(changed).is_passed:
                return _passed(changed)


def _passed(framework: Obj) -> BarrierResult:
    return BarrierResult(PASSED, f"passed: {progress(framework)}", framework)


def write_files(framework: Obj, *folders: Path) -> None:
    """framework.json and injector.sh, whole or not at all, in every folder."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        _write_file(folder / FRAMEWORK_FILE, framework_json(framework), mode=0o644)
        _write_file(folder / INJECTOR_FILE, injector(framework), mode=0o755)


def _write_file(path: Path, text: str, *, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as file:
        os.fchmod(handle, mode)
        file.write(text)
    Path(name).rename(path)
