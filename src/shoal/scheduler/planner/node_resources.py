"""What is free on each node, as arrays: one row of numbers per resource, one place in it per node.

`free` is what can be given away now; `coming` is what leaving pods will release. Every change made while planning is
recorded in a journal and can be reverted, so trying something costs what it touches and never a copy of the cluster. A
log of the places touched allows the equivalence classes (`eq_classes`) to bring their own arrays up to date at the cost
of the change. Names decide ties: `rank` is a node's place in alphabetical order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from shoal.scheduler.planner.node_and_pod_types import Node
from shoal.scheduler.planner.resource_vectors import ALL, Codes, Ints, LabelColumn, Mask, Resources, Rows, Vector

FIRST_ROWS = 64
FIRST_COLUMNS = 8
NODE_NAME = "metadata.name"  # a field that node terms may name, kept like a label

Undo = Callable[[], None]


class NodeResources:
    def __init__(self) -> None:
        self.resources = Resources()
        self.rows: dict[str, int] = {}
        self.nodes: list[Node | None] = [None] * FIRST_ROWS
        self.whole: Ints = np.zeros((FIRST_COLUMNS, FIRST_ROWS), dtype=np.int64)
        self.free: Ints = np.zeros_like(self.whole)
        self.cells = [memoryview(column) for column in self.free]  # the same memory, for changes to single cells
        self.coming: Ints = np.zeros_like(self.whole)
        self.fixed: Ints = np.zeros_like(self.whole)  # held by pods that may not be evicted and never end
        self.rank: Ints = np.zeros(FIRST_ROWS, dtype=np.int64)
        self.kind: Codes = np.zeros(FIRST_ROWS, dtype=np.int32)  # index into `kinds`; 0 is no node
        self.kinds: list[Node | None] = [None]
        self.labels: dict[str, LabelColumn] = {}
        self.log = array("q")
        self.read_to = 0  # how far the log has been read
        self._logged = [-1] * FIRST_ROWS  # where in the log a row is last
        self.epoch = 0  # of the arrays: a reader with another one starts over
        self.releasing: dict[int, int] = {}  # rows with something coming, and how many pods
        self.has_assumptions = False  # that a pod leaves
        self.total: dict[str, int] = {}  # of the nodes that may take pods
        self.shut: set[str] = set()  # nodes that take no pods, and may still run some
        self._kind_index: dict[Any, int] = {}
        self._spare = list(range(FIRST_ROWS - 1, -1, -1))
        self._names: list[str] = []
        self._journal: list[Undo | tuple[int, Ints, Ints] | tuple[int, Vector, int]] = []

    def __len__(self) -> int:
        return len(self.nodes)

    # Nodes

    def set_node(self, node: Node) -> int:
        row = self.rows.get(node.name)
        if row is None:
            row = self._new_row(node.name)
        elif (known := self.nodes[row]) is not None:
            self._count(known, -1)
        used = self.whole[:, row] - self.free[:, row]
        columns = [self.column(name) for name in node.allocatable]
        self.whole[:, row] = 0
        self.whole[columns, row] = list(node.allocatable.values())
        self.free[:, row] = self.whole[:, row]
        self.free[: len(used), row] -= used
        self.nodes[row] = node
        self._describe(row, node)
        self._count(node, 1)
        return row

    def remove_node(self, name: str) -> None:
        """Its pods are dropped with it; the caller that has them occupies the row again if it returns."""
        row = self.rows.pop(name)
        node = self.nodes[row]
        assert node is not None, f"{name} has a row and no node"
        self._count(node, -1)
        self.nodes[row] = None
        for amounts in (self.whole, self.free, self.coming, self.fixed):
            amounts[:, row] = 0
        self.releasing.pop(row, None)
        self._names.remove(name)
        self.rank[self.rank > self.rank[row]] -= 1
        self._spare.append(row)
        self._describe(row, None)

    def column(self, name: str) -> int:
        column = self.resources.column(name)
        if column >= len(self.whole):
            self._pad(((0, len(self.whole)), (0, 0)))
        return column

    def vector(self, requests: Mapping[str, int]) -> Vector:
        found = self.resources.vector(requests)
        while len(self.resources.index) > len(self.whole):
            self.column(next(reversed(self.resources.index)))
        return found

    def _new_row(self, name: str) -> int:
        if not self._spare:
            self._grow()
        row = self.rows[name] = self._spare.pop()
        place = bisect_left(self._names, name)
        self._names.insert(place, name)
        self.rank[self.rank >= place] += 1
        self.rank[row] = place
        self.start_over()
        return row

    def _grow(self) -> None:
        """By a quarter: a search for the best node scans the spare rows too."""
        before, more = len(self.nodes), max(len(self.nodes) // 4, FIRST_ROWS)
        after = before + more
        self._pad(((0, 0), (0, more)))
        self.rank, self.kind = np.pad(self.rank, (0, more)), np.pad(self.kind, (0, more))
        self.nodes.extend([None] * more)
        for column in self.labels.values():
            column.grow(after)
        self._spare = list(range(after - 1, before - 1, -1))

    def _pad(self, more: tuple[tuple[int, int], tuple[int, int]]) -> None:
        arrays = (self.whole, self.free, self.coming, self.fixed)
        self.whole, self.free, self.coming, self.fixed = (np.pad(amounts, more) for amounts in arrays)
        self.cells = [memoryview(column) for column in self.free]

    def _describe(self, row: int, node: Node | None) -> None:
        self.kind[row] = 0 if node is None else self._kind_of(node)
        for key, column in self.labels.items():
            column.set(row, _label(node, key))
        self.start_over()

    def _kind_of(self, node: Node) -> int:
        """Nodes that differ in neither taints nor readiness are one kind to the filters."""
        taints = tuple(tuple(sorted(taint.items())) for taint in node.taints)
        has = frozenset(name for name, amount in node.allocatable.items() if amount)
        known = (taints, node.ready, node.unschedulable, has)
        found = self._kind_index.get(known)
        if found is None:
            found = self._kind_index[known] = len(self.kinds)
            self.kinds.append(node)
        return found

    def _count(self, node: Node, sign: int) -> None:
        if node.ready and not node.unschedulable:  # a node that takes no pods is in no share
            for name, amount in node.allocatable.items():
                self.total[name] = self.total.get(name, 0) + sign * amount
        elif sign > 0:
            self.shut.add(node.name)
        else:
            self.shut.discard(node.name)

    def label(self, key: str) -> LabelColumn:
        found = self.labels.get(key)
        if found is None:
            found = self.labels[key] = LabelColumn(len(self.nodes))
            for row in self.rows.values():
                found.set(row, _label(self.nodes[row], key))
        return found

    def matching(self, term: Mapping[str, Any], rows: Rows) -> Mask:
        """One node selector term: all its expressions; a term without any selects nothing."""
        expressions = [(e["key"], e) for e in term.get("matchExpressions") or ()]
        expressions += [(NODE_NAME, {**f, "key": NODE_NAME}) for f in term.get("matchFields") or ()]
        ok = np.full(len(self.kind[rows]), bool(expressions), dtype=np.bool_)
        for key, requirement in expressions:
            ok &= self.label(key).holding(requirement, rows)
        return ok

    def start_over(self) -> None:
        """Nothing derived from these arrays holds any longer."""
        self.epoch += 1
        del self.log[:]
        self.read_to = 0
        self._logged = [-1] * len(self.nodes)

    # What pods hold, outside of a plan

    def occupy(self, row: int, vector: Vector, sign: int) -> None:
        cells = self.cells
        for column, amount in vector.cells:  # a few of them: quicker than any array
            cells[column][row] -= sign * amount
        if self._logged[row] < self.read_to:
            self.touched(row)

    def start_leaving(self, row: int, vector: Vector, sign: int) -> None:
        """A pod there began to go, or (sign -1) is gone."""
        self.coming[vector.columns, row] += sign * vector.amounts
        self.releasing[row] = self.releasing.get(row, 0) + sign
        if not self.releasing[row]:
            del self.releasing[row]
        self.touched(row)

    def fix(self, row: int, vector: Vector, sign: int) -> None:
        """A pod there stays whatever happens, or (sign -1) is gone after all."""
        self.fixed[vector.columns, row] += sign * vector.amounts
        self.start_over()

    def touched(self, row: int) -> None:
        if self._logged[row] >= self.read_to:
            return  # logged, and not read yet
        self._logged[row] = len(self.log)
        self.log.append(row)
        if len(self.log) > 4 * len(self.nodes):
            self.start_over()

    # What is tried within a plan, and taken back

    def take(self, row: int, vector: Vector, count: int = 1) -> None:
        self._journal.append((row, vector, count))
        self.occupy(row, vector, count)

    def nominate(self, row: int, vector: Vector, count: int = 1) -> None:
        """Taken from what is free and what is coming; no other pod may have it, and none starts on it yet."""
        self._note(row)
        later = self.free[:, row] + self.coming[:, row]
        later[vector.columns] -= count * vector.amounts
        self.free[:, row] = np.minimum(self.free[:, row], later)
        self.coming[:, row] = later - self.free[:, row]

    def assume_evicted(self, row: int, vector: Vector) -> None:
        """Suppose that a pod there leaves."""
        if not self.has_assumptions:
            self.has_assumptions = True

            def suppose_no_more() -> None:
                self.has_assumptions = False

            self.note(suppose_no_more)
        self._note(row)
        self.coming[vector.columns, row] += vector.amounts

    @property
    def is_leaving(self) -> bool:
        """Whether any pod leaves, or is supposed to: otherwise later is now."""
        return self.has_assumptions or bool(self.releasing)

    def note(self, undo: Undo) -> None:
        self._journal.append(undo)

    def _note(self, row: int) -> None:
        self._journal.append((row, self.free[:, row].copy(), self.coming[:, row].copy()))
        self.touched(row)

    def mark(self) -> int:
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        while len(self._journal) > mark:
            entry = self._journal.pop()
            if callable(entry):
                entry()
                continue
            row, before, more = entry
            if isinstance(before, Vector):
                self.occupy(row, before, -cast(int, more))
                continue
            self.free[:, row], self.coming[:, row] = before, more
            self.touched(row)

    def later(self, rows: Rows = ALL) -> Ints:
        return self.free[:, rows] + self.coming[:, rows]


def _label(node: Node | None, key: str) -> str | None:
    if node is None:
        return None
    return node.name if key == NODE_NAME else node.labels.get(key)
