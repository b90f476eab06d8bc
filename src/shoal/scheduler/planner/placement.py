"""Puts pods of one shape on the best nodes, many at a time.

A batch is placed as one: the nodes are ranked once, and filled from the top (packing) or evenly (spreading). Pods with
rules about neighbours or with shares of devices go one by one, each seeing those before it. Everything is tried in
the room and can be rolled back; with `later` the pods are promised a place that leaving pods will free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.scheduler.planner.equivalence_classes import NOWHERE, RANKS, EquivalenceClass
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState
from shoal.scheduler.planner.resource_vectors import Ints, Mask

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView

FEW_ROWS = 16


class Placement(NamedTuple):
    pod: Pod
    row: int
    devices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes count (`mask`, None for all) and when: now, or as soon as the leaving pods are gone."""

    mask: Mask | None = None
    later: bool = False

    def within(self, mask: Mask | None) -> NodeFilter:
        if mask is None:
            return self
        return NodeFilter(mask if self.mask is None else self.mask & mask, self.later)


class Placer:
    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._room = view.resources

    def place(
        self, pods: Sequence[Pod], most: int, where: NodeFilter, *, only: EquivalenceClass | None = None
    ) -> list[Placement]:
        """As many of the pods as fit, up to `most`, in their order as far as they differ; `only` if they do not."""
        placed: list[Placement] = []
        for eq_class, batch in self._batches(pods) if only is None else [(only, pods)]:
            wanted = batch[: most - len(placed)]
            if not wanted:
                break
            eq_class.sync()
            if not (eq_class.fits_later if where.later else eq_class.fits):
                continue
            is_shared = eq_class.gpu is not None and self._view.devices.are_shared
            if eq_class.is_careful or is_shared or self._view.affinity.affects(wanted[0]):
                placed += self._one_by_one(eq_class, wanted, where)
            else:
                placed += self._together(eq_class, wanted, where)
        return placed

    def _batches(self, pods: Sequence[Pod]) -> Sequence[tuple[EquivalenceClass, Sequence[Pod]]]:
        found: dict[int, tuple[EquivalenceClass, list[Pod]]] = {}
        for pod in pods:
            if pod.blocked:
                continue
            eq_class = self._view.eq_class_of(pod)
            found.setdefault(id(eq_class), (eq_class, []))[1].append(pod)
        return list(found.values())

    def _together(self, eq_class: EquivalenceClass, pods: Sequence[Pod], where: NodeFilter) -> list[Placement]:
        key, slots = (eq_class.later_key, eq_class.later) if where.later else (eq_class.key, eq_class.slots)
        if where.mask is not None:
            key = np.where(where.mask, key, NOWHERE)
        if len(pods) == 1:
            row = int(key.argmax()) if len(key) else 0
            if not len(key) or key[row] == NOWHERE:
                return []
            self._give(eq_class, row, 1, later=where.later)
            return [Placement(pods[0], row)]
        rows = _filling(key, slots, len(pods)) if eq_class.packs else _best(key, len(pods))
        if not len(rows):
            return []
        if eq_class.packs:
            counts, rest = [], len(pods)
            for most in slots[rows].tolist():  # each takes all it can before the next gets any
                counts.append(min(most, rest))
                rest -= counts[-1]
        else:
            counts = self._evenly(eq_class, rows, slots[rows], len(pods)).tolist()
        placed: list[Placement] = []
        for row, count in zip(rows.tolist(), counts, strict=True):
            if count:
                self._give(eq_class, row, count, later=where.later)
                placed += [Placement(pod, row) for pod in pods[len(placed) : len(placed) + count]]
        return placed

    def _evenly(self, eq_class: EquivalenceClass, rows: Ints, slots: Ints, wanted: int) -> Ints:
        """How many on each row, when each further pod makes a node less attractive."""
        deep = 1
        while np.minimum(slots, deep).sum() < 2 * wanted and deep < slots.max():
            deep *= 2
        deep = min(deep, int(slots.max()), wanted)
        tie = RANKS - 1 - self._room.rank[rows]
        worth = np.array([eq_class.score(rows, n) * RANKS + tie for n in range(1, deep + 1)])
        worth = np.minimum.accumulate(worth, axis=0)
        worth[np.arange(deep)[:, None] >= slots] = NOWHERE
        best = np.argsort(worth, axis=None, kind="stable")[::-1][:wanted]
        best = best[worth.ravel()[best] > NOWHERE]
        return np.bincount(best % len(rows), minlength=len(rows))

    def _one_by_one(self, eq_class: EquivalenceClass, pods: Sequence[Pod], where: NodeFilter) -> list[Placement]:
        placed: list[Placement] = []
        neighbours = self._view.affinity
        leaving = self._leaving() if where.later and neighbours.has_any else []
        for other, row in leaving:  # by then they and their rules are gone
            neighbours.add(other, row, -1)
        for pod in pods:
            eq_class.sync()
            key = eq_class.later_key if where.later else eq_class.key
            ok = neighbours.allowed(pod, eq_class.eligible) & (key > NOWHERE)
            if where.mask is not None:
                ok &= where.mask
            if not ok.any():
                break  # the next of this shape fares no better
            row = int(np.where(ok, key, NOWHERE).argmax())
            placed.append(Placement(pod, row, self._devices(eq_class, row, later=where.later)))
            self._give(eq_class, row, 1, later=where.later)
            self._record(eq_class, placed[-1])
        for other, row in leaving:
            neighbours.add(other, row, 1)
        return placed

    def _leaving(self) -> list[tuple[Pod, int]]:
        """Pods that were requested to terminate and still exist."""
        rows = sorted(self._room.releasing)
        nodes = [(row, node) for row in rows if (node := self._room.nodes[row]) is not None]
        on = [(pod, row) for row, node in nodes for pod in self._view.pods_on(node.name)]
        return [(pod, row) for pod, row in on if pod.state is PodState.RELEASING]

    def _devices(self, eq_class: EquivalenceClass, row: int, *, later: bool) -> tuple[int, ...]:
        devices = self._view.devices
        if eq_class.gpu is None or not devices.are_shared:
            return ()
        if eq_class.gpu_milli:
            best = int(eq_class.device[row])
            if devices.free[row, best] >= eq_class.gpu_milli:
                return (best,)
        return devices.choose(row, eq_class.gpu_count, eq_class.gpu_milli, later=later)

    def _record(self, eq_class: EquivalenceClass, placed: Placement) -> None:
        neighbours, devices = self._view.affinity, self._view.devices
        neighbours.add(placed.pod, placed.row, 1)
        self._room.note(lambda: neighbours.add(placed.pod, placed.row, -1))
        if placed.devices:
            devices.take(placed.row, placed.devices, eq_class.gpu_milli)
            self._room.note(lambda: devices.take(placed.row, placed.devices, eq_class.gpu_milli, -1))

    def _give(self, eq_class: EquivalenceClass, row: int, count: int, *, later: bool) -> None:
        if later:
            self._room.nominate(row, eq_class.vector, count)
        else:
            self._room.take(row, eq_class.vector, count)


def _filling(key: Ints, slots: Ints, wanted: int) -> Ints:
    """The best rows, best first, until they hold so many: a few, each found by one look over all of them."""
    taken: list[tuple[int, int]] = []
    left = wanted
    while left > 0 and len(taken) < FEW_ROWS and len(key):
        row = int(key.argmax())
        worth = int(key[row])
        if worth == NOWHERE:
            break
        taken.append((row, worth))
        left -= int(slots[row])
        key[row] = NOWHERE
    for row, worth in taken:
        key[row] = worth
    if left > 0 and len(taken) == FEW_ROWS:
        return _best(key, wanted)
    return np.array([row for row, _ in taken], dtype=np.int64)


def _best(key: Ints, most: int) -> Ints:
    """The best rows, best first, no more than `most`."""
    if most == 1:
        row = int(key.argmax()) if len(key) else 0
        return np.array([row] if len(key) and key[row] > NOWHERE else [], dtype=np.int64)
    rows = np.flatnonzero(key > NOWHERE)
    found = key[rows]
    if most < len(rows):
        best = np.argpartition(found, -most)[-most:]
        rows, found = rows[best], found[best]
    return rows[np.argsort(-found)]
