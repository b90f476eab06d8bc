"""Plots a training over time: its speed in steps per second, and its number of workers.

    environment/bin/python picture.py workspace/out/metrics.jsonl picture.png

Reads the last training in the trainer's metrics file. A resize is visible as a gap in the speed: from the last step of
the old group to the first of the new one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

STEPS_AT_ONCE = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the group: its time, its number of workers, and the progress after it."""

    time: float
    world: int
    epoch: int
    step: int
    loss: float


class NothingToDraw(ValueError):
    """The file has no steps."""


def read(lines: Iterable[str]) -> list[Step]:
    """The steps of the last training, by time."""
    return trainings(lines)[-1]


def trainings(lines: Iterable[str]) -> list[list[Step]]:
    """The steps of each training, by time. A training begins with the first step of the first epoch."""
    written = [json.loads(line) for line in lines if line.strip()]
    steps = [Step(w["time"], w["world"], w["epoch"], w["step"], w["loss"]) for w in written]
    if not steps:
        raise NothingToDraw("no steps have been written yet")
    starts = [number for number, step in enumerate(steps) if (step.epoch, step.step) == (0, 0)] or [0]
    ends = [*starts[1:], len(steps)]
    parts = (steps[start:end] for start, end in zip(starts, ends, strict=True))
    return [sorted(part, key=lambda step: step.time) for part in parts]


def groups(steps: list[Step]) -> list[list[Step]]:
    """Consecutive steps of the same workers. A new group begins where the size changed or steps repeat."""
    split: list[list[Step]] = []
    for step in steps:
        before = split[-1][-1] if split else None
        if before and before.world == step.world and (before.epoch, before.step) < (step.epoch, step.step):
            split[-1].append(step)
        else:
            split.append([step])
    return split


def speeds(steps: list[Step], every: int = STEPS_AT_ONCE) -> list[tuple[float, float]]:
    """(seconds since the first step, steps per second from then on) for a few steps at a time; zero between groups."""
    begin = steps[0].time
    curve: list[tuple[float, float]] = []
    for group in groups(steps):
        for first in range(0, len(group) - 1, every):
            last = min(first + every, len(group) - 1)
            seconds = group[last].time - group[first].time
            curve.append((group[first].time - begin, (last - first) / max(seconds, 1e-9)))
        curve.append((group[-1].time - begin, 0.0))
    return curve


def worlds(steps: list[Step]) -> list[tuple[float, int]]:
    """(seconds since the first step, workers) at the start, at each change, and at the end."""
    begin = steps[0].time
    changes = [(steps[0].time - begin, steps[0].world)]
    for step in steps[1:]:
        if step.world != changes[-1][1]:
            changes.append((step.time - begin, step.world))
    return [*changes, (steps[-1].time - begin, steps[-1].world)]


def draw(steps: list[Step], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (speed, size) = pyplot.subplots(2, sharex=True, figsize=(9, 4.5), height_ratios=(2, 1))
    times, rates = zip(*speeds(steps), strict=True)
    speed.fill_between(times, rates, step="post", color="#2b7bba", alpha=0.75, linewidth=0)
    speed.set(ylabel="steps per second", ylim=(0, None), title=_title(steps))
    loss = speed.twinx()
    loss.plot(
        [step.time - steps[0].time for step in steps], [step.loss for step in steps], color="#d9822b", linewidth=1
    )
    loss.set(ylabel="loss", ylim=(0, None))
    loss.yaxis.label.set_color("#d9822b")
    moments, workers = zip(*worlds(steps), strict=True)
    size.step(moments, workers, where="post", color="#3a9e5c", linewidth=2)
    size.set(ylabel="workers", xlabel="seconds", ylim=(0, max(workers) + 0.6), yticks=range(max(workers) + 1))
    for axes in (speed, size):
        axes.grid(visible=True, alpha=0.3)
        for moment in moments[1:-1]:
            axes.axvline(moment, color="#888888", linewidth=0.8, linestyle="--")
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def _title(steps: list[Step]) -> str:
    sizes = " → ".join(str(workers) for _, workers in worlds(steps)[:-1])
    return f"{sizes} workers: {steps[-1].epoch + 1} epochs, final loss {steps[-1].loss:.4f}"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: picture.py METRICS.jsonl PICTURE.png")
    source, target = map(Path, sys.argv[1:])
    try:
        steps = read(source.read_text().splitlines())
    except (OSError, NothingToDraw) as nothing:
        sys.exit(f"picture: {source}: {nothing}. The trainer writes it when METRICS_FILE or --metrics-file says where.")
    draw(steps, target)
    print(f"picture: {target}")


if __name__ == "__main__":
    main()
