"""Strings turned into numbers once: resource names into columns, node labels into codes.

Everything a plan compares over thousands of nodes is an array; the strings stay here. A request seen before is the same
`Vector` again, so a running pod costs a dictionary look-up and not a parse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.taints import holds

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Rows = Ints | slice
ALL = slice(None)
Numbers = TypeVar("Numbers", bound=np.generic)


def at(amounts: npt.NDArray[Numbers], rows: Rows) -> npt.NDArray[Numbers]:
    """The places of these rows in an array whose last axis are rows; quicker than to index by them."""
    return amounts[..., rows] if isinstance(rows, slice) else amounts.take(rows, axis=-1)


class Vector:
    """One request: which columns it needs and how much of each. Nothing that is zero."""

    __slots__ = ("amounts", "cells", "columns", "counted", "pairs")

    def __init__(self, pairs: tuple[tuple[str, int, int], ...]) -> None:
        self.pairs = pairs  # name, column, amount
        self.cells = tuple((column, amount) for _, column, amount in pairs)
        self.columns = np.array([column for _, column, _ in pairs], dtype=np.intp)
        self.amounts = np.array([amount for _, _, amount in pairs], dtype=np.int64)
        self.counted = tuple((name, amount) for name, _, amount in pairs if name != "pods")  # what queues count


class RequestTally:
    """What many pods request together: how many there are of each request, and the amounts on demand."""

    __slots__ = ("_amounts", "_counts")

    def __init__(self) -> None:
        self._counts: dict[Vector, int] = {}
        self._amounts: Amounts | None = None

    def add(self, vector: Vector, count: int) -> None:
        left = self._counts.get(vector, 0) + count
        if left:
            self._counts[vector] = left
        else:
            del self._counts[vector]
        self._amounts = None

    def merge(self, other: RequestTally, sign: int) -> None:
        for vector, count in other._counts.items():
            self.add(vector, sign * count)

    @property
    def amounts(self) -> Amounts:
        """Not to be changed."""
        if self._amounts is None:
            found: Amounts = {}
            for vector, count in self._counts.items():
                for name, amount in vector.counted:
                    found[name] = found.get(name, 0) + count * amount
            self._amounts = found
        return self._amounts


class Resources:
    """Columns by resource name, vectors by request."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self._vectors: dict[tuple[tuple[str, int], ...], Vector] = {}
        self._by_pairs: dict[tuple[tuple[str, int, int], ...], Vector] = {}  # the same in whatever order it is given

    def column(self, name: str) -> int:
        return self.index.setdefault(name, len(self.index))

    def vector(self, requests: Mapping[str, int]) -> Vector:
        asked = tuple(requests.items())
        found = self._vectors.get(asked)
        if found is None:
            pairs = tuple((name, self.column(name), amount) for name, amount in sorted(asked) if amount > 0)
            found = self._vectors[asked] = self._by_pairs.setdefault(pairs, Vector(pairs))
        return found


class LabelColumn:
    """One label of every node as a code; 0 where the node does not have it."""

    def __init__(self, rows: int) -> None:
        self.codes: Codes = np.zeros(rows, dtype=np.int32)
        self.values: list[str | None] = [None]
        self.index: dict[str, int] = {}

    def set(self, row: int, value: str | None) -> None:
        if value is None:
            self.codes[row] = 0
            return
        code = self.index.get(value)
        if code is None:
            code = self.index[value] = len(self.values)
            self.values.append(value)
        self.codes[row] = code

    def grow(self, rows: int) -> None:
        self.codes = np.concatenate([self.codes, np.zeros(rows - len(self.codes), dtype=np.int32)])

    def holding(self, requirement: Mapping[str, Any], rows: Rows) -> Mask:
        """Which rows satisfy one expression: decided once per distinct value."""
        key = requirement["key"]
        decided = [holds(requirement, {} if value is None else {key: value}) for value in self.values]
        return np.array(decided, dtype=np.bool_)[self.codes[rows]]
