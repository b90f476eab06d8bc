"""A simulated cluster that knows Frameworks already: the rows of one that was set up once, loaded as after a restart.

Setting up a cluster costs as much as a short scenario, and thousands of scenarios are played.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from shoal.cluster.apimachinery import Machinery
from shoal.cluster.clock import VirtualClock
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.simulated import SimulatedCluster
from shoal.cluster.store import MemoryJournal, Row
from shoal.dialects import dialects
from shoal.dialects.dialect import Dialect, definitions_of
from shoal.dialects.framework import DIALECT
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from shoal.operator.dialect_registration import admit


class Preloaded(MemoryJournal):
    """What a cluster finds when it starts; nothing is kept."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def load(self) -> Iterator[Row]:
        return iter(self._rows)

    def revision(self) -> int:
        return max(row.revision for row in self._rows)


class Kept(MemoryJournal):
    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    def commit(self, rows: list[Row], gone: list[int], revision: int) -> None:
        self.rows |= {row.id: row for row in rows}
        for number in gone:
            self.rows.pop(number, None)


def founded(seed: int, dialect: Dialect = DIALECT) -> SimulatedCluster:
    """A cluster of its own with the kind of Frameworks, or of another language, defined and guarded."""
    clock = VirtualClock()
    known = {each.kind.resource: each for each in dialects()}
    machinery = Machinery(
        Preloaded(_rows(known.get(dialect.kind.resource, dialect))), clock=clock, rng=random.Random(seed)
    )
    admit(machinery, [dialect])
    return SimulatedCluster(seed, base=EmbeddedCluster(machinery), clock=clock)


@cache
def _rows(dialect: Dialect) -> list[Row]:
    journal = Kept()
    machinery = Machinery(journal, clock=VirtualClock(), rng=random.Random(0))
    for definition in definitions_of(dialect):
        machinery.create(CUSTOM_RESOURCE_DEFINITION, "", definition)
    machinery.settle()
    return [journal.rows[number] for number in sorted(journal.rows)]
