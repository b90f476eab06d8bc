"""Step, loss and step time of a finished container, read from its log once, as points over time.

Bounded whatever the log is: of a large one evenly spread blocks are read, and a run leaves a limited number of points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoal.training_progress import TrainingProgress, progress_in, visible

BLOCK_BYTES = 64 << 10
MAX_BYTES_READ = 4 << 20  # of one log
MAX_POINTS = 2000  # of one log
MAX_BYTES_KEPT = 1 << 20  # of one job
_MAX_STEP_SECONDS = 18  # digits of a number that every reader of JSON takes
_HINTS = (b"loss", b"Loss", b"step", b"Step", b"iter", b"poch", b"it/s", b"s/it", b"%|")


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    at: str
    task: str
    pod: str
    attempt: int  # of the task, from 1, as log files count them: each pod and each restart of the container is one
    step: int | str = ""  # text where it is a position such as 2/100
    loss: float | str | None = None  # text where it is no number: nan, inf
    step_seconds: float | None = None


def points_in(log: Path, *, task: str, pod: str, attempt: int) -> list[Point]:
    """What changed from line to line, thinned."""
    found: list[Point] = []
    stride, count, pace = 1, 0, TrainingProgress()
    for record in _records(log):
        stamp, _, rest = record.partition(b" ")
        text = rest.split(b" ", 2)[-1].decode(errors="replace")
        after = progress_in(visible(text.rstrip("\r")), pace)
        if after == pace:
            continue
        pace = after
        if count % stride == 0:
            seen = stamp.decode(errors="replace")
            is_number = pace.step.isdecimal() and len(pace.step) <= _MAX_STEP_SECONDS
            step = int(pace.step) if is_number else pace.step
            loss: float | str | None = None
            if pace.loss:
                value = float(pace.loss)
                loss = value if math.isfinite(value) else pace.loss  # JSON has no NaN
            found.append(Point(seen, task, pod, attempt, step, loss, pace.step_seconds))
        count += 1
        if len(found) > MAX_POINTS:
            found, stride = found[::2], stride * 2
    return found


def append(points: list[Point], file: Path) -> None:
    """Add the points; a file that has grown too large loses every second of its older ones."""
    lines = [msgspec.json.encode(point) + b"\n" for point in points]
    with file.open("ab") as held:
        held.writelines(lines)
        size = held.tell()
    while size > MAX_BYTES_KEPT:
        kept = file.read_bytes().splitlines(keepends=True)[::2]
        draft = file.with_name(f".{file.name}.new")
        draft.write_bytes(b"".join(kept))
        draft.replace(file)
        size = sum(map(len, kept))


def _records(log: Path) -> Iterator[bytes]:
    """The lines that may say something, oldest first."""
    older = [path for path in log.parent.glob(f"{log.name}.*") if path.suffix[1:].isdigit()]
    files = [*sorted(older, key=lambda path: -int(path.suffix[1:])), log]
    sizes = [path.stat().st_size if path.exists() else 0 for path in files]
    stride = BLOCK_BYTES * max(-(-sum(sizes) // MAX_BYTES_READ), 1)
    for path, size in zip(files, sizes, strict=True):
        for offset in range(0, size, stride):
            for line in _block(path, offset):
                if any(hint in line for hint in _HINTS):
                    yield line


def _block(path: Path, offset: int) -> list[bytes]:
    """The lines that begin in a block, so that adjacent blocks yield each line once."""
    with path.open("rb") as file:
        file.seek(max(offset - 1, 0))
        if offset and file.read(1) != b"\n":
            file.readline()
        lines, end = [], offset + BLOCK_BYTES
        while file.tell() < end and (line := file.readline()):
            lines.append(line.rstrip(b"\n"))
    return lines
