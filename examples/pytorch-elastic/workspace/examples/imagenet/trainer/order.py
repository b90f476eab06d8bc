"""The assignment of samples to steps and workers, for any number of workers.

The order of an epoch's samples depends on the seed and the epoch only. It is divided into global batches, one per
step, and each batch into slots of a fixed size. A worker computes the slots whose index modulo the number of workers is
its rank. A resize changes which worker computes a slot, never its contents: the progress of a training is two numbers,
and a training resumed from them by any number of workers continues with exactly the remaining samples.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

Slot = tuple[int, ...]


@dataclass(frozen=True, slots=True, order=True)
class Progress:
    """All steps before step `step` of epoch `epoch` are done. Ordered by progress."""

    epoch: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """The samples 0 .. samples-1, epoch after epoch."""

    samples: int
    global_batch: int
    slot: int
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.samples, self.global_batch, self.slot) < 1:
            raise ValueError(
                f"{self.samples} samples in batches of {self.global_batch} and slots of {self.slot}: "
                f"each must be at least 1. Is the data there? `python prepare.py` makes it."
            )

    @property
    def steps(self) -> int:
        """Steps of an epoch; the last batch may be smaller."""
        return -(-self.samples // self.global_batch)

    def batch(self, at: Progress) -> Slot:
        first = at.step * self.global_batch
        return shuffled(self.samples, self.seed, at.epoch)[first : first + self.global_batch]

    def slots(self, at: Progress) -> list[Slot]:
        batch = self.batch(at)
        return [batch[first : first + self.slot] for first in range(0, len(batch), self.slot)]

    def share(self, at: Progress, *, rank: int, world: int) -> list[Slot]:
        """The slots of this step for one of `world` workers; none if there are fewer slots than workers."""
        return self.slots(at)[rank::world]

    def after(self, at: Progress) -> Progress:
        """The progress after this step."""
        return Progress(at.epoch, at.step + 1) if at.step + 1 < self.steps else Progress(at.epoch + 1)


@lru_cache(maxsize=2)
def shuffled(samples: int, seed: int, epoch: int) -> Slot:
    order = list(range(samples))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return tuple(order)
