"""Packing of shared accelerators: place a pod where it spoils the least of what the usual pods could still use.

For one kind of pod, what is left of a node's devices is a fragment as far as no further pods of that kind could use it:
the pieces are too small or too few, or there are not enough cores or memory beside them for so many pods. The fragments
of a node are weighted by how usual each kind is; the best node for a pod is the one whose fragments grow least.
Counting whole pods, rather than whether one more fits, shows early that a pod without devices takes the cores that many
devices will need, and places it where cores abound. What is usual is given in the settings, or else it is what the
cluster holds now, in round numbers, so that it seldom changes. All weights are whole numbers: sums are exact, and equal
means equal whatever else was examined beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from shoal.scheduler.planner.gang_types import WorkloadKind
from shoal.scheduler.planner.gpu_sharing import WHOLE
from shoal.scheduler.planner.resource_vectors import Ints

Floats = npt.NDArray[np.float64]
KINDS_KEPT = 192


class TypicalWorkload:
    """How many pods there are of each kind that uses devices, as arrays. `version` changes with them."""

    def __init__(self, expected: Iterable[tuple[WorkloadKind, int]] = ()) -> None:
        self.version = 0
        self._present: Counter[WorkloadKind] = Counter()
        self._expected = {kind: number for kind, number in expected if kind.count}
        self._made: list[tuple[WorkloadKind, int]] = []
        self._is_stale = True
        self.weight: Floats = np.zeros(0)  # of each kind; whole numbers, as floats for the sake of speed
        self.total = 1.0
        self.cpu: Ints = np.zeros(0, dtype=np.int64)
        self.memory, self.count, self.milli = self.cpu, self.cpu, self.cpu
        self.used: Floats = self.weight  # by one pod of the kind, times its weight
        self.pieces: npt.NDArray[np.float32] = np.zeros(
            (WHOLE + 1, 0), dtype=np.float32
        )  # of a device, by what is left

    def count_in(self, kind: WorkloadKind, sign: int) -> None:
        """A pod of the kind came, or (sign -1) went."""
        if self._expected or not kind.count:
            return
        before = self._present[kind]
        self._present[kind] = before + sign
        if not self._present[kind]:
            del self._present[kind]
        self._is_stale |= _round(before) != _round(before + sign)

    def clear(self) -> None:
        self._present.clear()
        self._is_stale = True

    def refresh(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        counted = self._expected or {kind: _round(count) for kind, count in self._present.items()}
        kinds = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:KINDS_KEPT]
        if kinds == self._made:
            return
        self._made = kinds
        self.weight = np.array([number for _, number in kinds], dtype=np.float64)
        self.total = max(float(self.weight.sum()), 1.0)
        self.cpu, self.memory, self.count, self.milli = (
            np.array([getattr(kind, name) for kind, _ in kinds], dtype=np.int64)
            for name in ("cpu", "memory", "count", "milli")
        )
        self.used = self.count * self.milli * self.weight
        self.pieces = (np.arange(WHOLE + 1)[:, None] // self.milli).astype(np.float32)
        self.version += 1


def _round(count: int) -> int:
    """The power of two below: what is usual changes when something has doubled or halved."""
    return 1 << (count.bit_length() - 1) if count > 0 else 0


def fragments(workload: TypicalWorkload, cpu: Ints, memory: Ints, devices: Ints) -> Floats:
    """Thousandths of devices on each node that pods of one kind would leave over, summed by the weight of the kinds."""
    pods = np.floor(workload.pieces[devices].sum(axis=1) / workload.count)  # node, kind
    for left, need in ((cpu, workload.cpu), (memory, workload.memory)):
        # Quotients of numbers below 2**53 are rounded to the right side of whole numbers.
        np.minimum(pods, np.floor(np.maximum(left, 0)[:, None] / np.maximum(need, 1)), out=pods)
    result: Floats = devices.sum(axis=1) * workload.total - pods @ workload.used
    return result


def growth(
    workload: TypicalWorkload, asked: WorkloadKind, cpu: Ints, memory: Ints, devices: Ints
) -> tuple[Floats, Ints]:
    """How much the pod makes the fragments of each node grow, and the best device for a share of one."""
    before = fragments(workload, cpu, memory, devices)
    cpu, memory = cpu - asked.cpu, memory - asked.memory
    nodes = np.arange(len(devices))
    if asked.milli == WHOLE or not asked.count:
        after = devices.copy()
        free = devices == WHOLE
        after[free & (np.cumsum(free, axis=1) <= asked.count)] = 0  # the first free devices are taken
        grown = fragments(workload, cpu, memory, after) - before
        return grown / workload.total, np.zeros(len(devices), dtype=np.int64)
    best: Floats = np.full(len(devices), np.inf)
    chosen: Ints = np.zeros(len(devices), dtype=np.int64)
    for device in range(devices.shape[1]):
        fits = devices[:, device] >= asked.milli
        if not fits.any():
            continue
        after = devices[fits].copy()
        after[:, device] -= asked.milli
        grown = fragments(workload, cpu[fits], memory[fits], after) - before[fits]
        rows = nodes[fits]
        better = grown < best[rows]
        best[rows[better]], chosen[rows[better]] = grown[better], device
    return best / workload.total, chosen
