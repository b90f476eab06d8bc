"""Log lines in the format of the PyTorch ImageNet example, and their meters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Meter:
    """The last value of a quantity and its weighted mean."""

    name: str
    form: str  # of both numbers, as in format()
    value: float = 0.0
    total: float = 0.0
    weight: float = 0.0

    def update(self, value: float, weight: float = 1.0) -> None:
        self.value = value
        self.total += value * weight
        self.weight += weight

    @property
    def mean(self) -> float:
        return self.total / self.weight if self.weight else 0.0

    def __str__(self) -> str:
        return f"{self.name} {self.value:{self.form}} ({self.mean:{self.form}})"


class Board:
    """The meters of one pass over a data set."""

    def __init__(self, *, with_data: bool) -> None:
        self.time = Meter("Time", "6.3f")
        self.data = Meter("Data", "6.3f")
        self.loss = Meter("Loss", ".4e")
        self.top1 = Meter("Acc@1", "6.2f")
        self.top5 = Meter("Acc@5", "6.2f")
        self._shown = [self.time, *([self.data] if with_data else []), self.loss, self.top1, self.top5]

    def line(self, prefix: str, step: int, steps: int) -> str:
        return progress_line(prefix, step, steps, self._shown)

    def summary(self) -> str:
        return f" * Acc@1 {self.top1.mean:.3f} Acc@5 {self.top5.mean:.3f}"


def progress_line(prefix: str, step: int, steps: int, meters: Sequence[Meter]) -> str:
    """`Epoch: [0][ 10/782]` and the meters, with tabs between."""
    width = len(str(steps))
    return "\t".join([f"{prefix}[{step:{width}d}/{steps}]", *map(str, meters)])
