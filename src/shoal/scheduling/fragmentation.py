"""Packing of shared accelerators: put a pod where it spoils the least of what the usual pods could still use.

A free piece of a device is a fragment for a kind of pod if that kind cannot use it: the piece is too small, or the
node has too few pieces or too few cores left for it. The fragments of a node are weighed by how usual each kind
is; the best node for a pod is the one whose fragments grow least. What is usual is learned from the pods seen so far.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.scheduling.columns import Ints
from shoal.scheduling.devices import WHOLE

Floats = npt.NDArray[np.float64]
KINDS_KEPT = 96


@dataclass(frozen=True, slots=True)
class Usual:
    """One kind of pod: what it needs besides its devices, how many devices, how much of each."""

    cpu: int
    memory: int
    count: int
    milli: int  # of each device: 1000 for whole ones


class Habits:
    """How often each kind was seen, as arrays. They are made anew when the number has grown by half."""

    def __init__(self) -> None:
        self.version = 0
        self._seen: Counter[Usual] = Counter()
        self._told = 0
        self._made = 0
        self.share: Floats = np.zeros(0)
        self.cpu: Ints = np.zeros(0, dtype=np.int64)
        self.memory, self.count, self.milli = self.cpu, self.cpu, self.cpu

    def see(self, kind: Usual) -> None:
        self._seen[kind] += 1
        self._told += 1

    def refresh(self) -> None:
        if self._told * 2 < self._made * 3 or not self._told:
            return
        self._made = self._told
        kinds = sorted(self._seen.items(), key=lambda item: (-item[1], repr(item[0])))[:KINDS_KEPT]
        counts = np.array([number for _, number in kinds], dtype=np.float64)
        self.share = counts / counts.sum()
        self.cpu, self.memory, self.count, self.milli = (
            np.array([getattr(kind, name) for kind, _ in kinds], dtype=np.int64)
            for name in ("cpu", "memory", "count", "milli")
        )
        self.version += 1


def fragments(habits: Habits, cpu: Ints, memory: Ints, devices: Ints) -> Floats:
    """Thousandths of devices on each node that the usual pods could not use, weighed by how usual they are."""
    usable = devices[:, None, :] >= habits.milli[None, :, None]  # node, kind, device
    pieces = usable.sum(axis=2)
    able = (pieces >= habits.count) & (cpu[:, None] >= habits.cpu) & (memory[:, None] >= habits.memory)
    used = np.where(usable, devices[:, None, :], 0).sum(axis=2) * able
    left = devices.sum(axis=1)[:, None] - used
    result: Floats = left @ habits.share
    return result


def growth(habits: Habits, asked: Usual, cpu: Ints, memory: Ints, devices: Ints) -> tuple[Floats, Ints]:
    """How much the fragments of each node grow by the pod, and for a part of a device the best device to use."""
    before = fragments(habits, cpu, memory, devices)
    cpu, memory = cpu - asked.cpu, memory - asked.memory
    nodes = np.arange(len(devices))
    if asked.milli == WHOLE or not asked.count:
        after = _whole(devices, asked.count)
        return fragments(habits, cpu, memory, after) - before, np.zeros(len(devices), dtype=np.int64)
    best: Floats = np.full(len(devices), np.inf)
    chosen: Ints = np.zeros(len(devices), dtype=np.int64)
    for device in range(devices.shape[1]):
        fits = devices[:, device] >= asked.milli
        if not fits.any():
            continue
        after = devices[fits].copy()
        after[:, device] -= asked.milli
        grown = fragments(habits, cpu[fits], memory[fits], after) - before[fits]
        rows = nodes[fits]
        better = grown < best[rows] - 1e-9
        best[rows[better]], chosen[rows[better]] = grown[better], device
    return best, chosen


def _whole(devices: Ints, count: int) -> Ints:
    """The devices with the first `count` free ones taken."""
    after = devices.copy()
    free = devices == WHOLE
    after[free & (np.cumsum(free, axis=1) <= count)] = 0
    return after
