"""Compares the last two trainings of a metrics file, step by step: did the resizes change the result?

    python compare.py workspace/out/metrics.jsonl

Exit code 0 if the losses of all steps agree within 2 %, else 1. The README explains the 2 %.
"""

from __future__ import annotations

import sys
from pathlib import Path

from picture import NothingToDraw, Step, trainings, worlds

TOLERANCE = 0.02


def losses(steps: list[Step]) -> dict[tuple[int, int], float]:
    """Losses by epoch and step; of repeated steps the last."""
    return {(step.epoch, step.step): step.loss for step in steps}


def apart(one: list[Step], other: list[Step]) -> float:
    """The largest relative difference of the loss at the same step."""
    first, second = losses(one), losses(other)
    return max(abs(first[at] - second[at]) / abs(first[at]) for at in first.keys() & second.keys())


def told(steps: list[Step]) -> str:
    sizes = " → ".join(str(workers) for _, workers in worlds(steps)[:-1])
    return f"{sizes} workers: {len(losses(steps))} steps, final loss {steps[-1].loss!r}"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: compare.py METRICS.jsonl")
    file = Path(sys.argv[1])
    try:
        *_, one, other = trainings(file.read_text().splitlines())
    except (OSError, NothingToDraw, ValueError) as nothing:
        sys.exit(f"compare: {file} does not hold two trainings: {nothing}. `shoal run pet.yaml` makes one each time.")
    difference = apart(one, other)
    print(told(one), told(other), f"largest difference of a step's loss: {100 * difference:.4f} %", sep="\n")
    sys.exit(0 if difference <= TOLERANCE else 1)


if __name__ == "__main__":
    main()
