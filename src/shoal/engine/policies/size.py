"""Policies 9 and 10: how many members there are, and which are removed when there are too many."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shoal.engine.policies.outcomes import DROPPED
from shoal.engine.types import Outcome


@dataclass(frozen=True, slots=True)
class FixedSize:
    """Each role has the size it names."""


@dataclass(frozen=True, slots=True)
class WeightedSize:
    """`total` members shared among the roles with a weight; roles of weight 0 keep their size."""

    total: int


@dataclass(frozen=True, slots=True)
class CompletionsSize:
    """As many at once as `parallelism` and the successes still missing allow; completions None: one success."""

    parallelism: int
    completions: int | None
    indexed: bool = False  # each success belongs to an index of its own


Size = FixedSize | WeightedSize | CompletionsSize


class VictimOrder(Enum):
    HIGHEST = "highest"
    PENDING_FIRST = "pending first"
    NAMED = "named"  # Role.victims, then the highest
    RANKED = "ranked"  # as a ReplicaSet ranks pods


class DropMark(Enum):
    LEDGER = "ledger"  # a dropped task lives on until its body is gone
    POD = "pod"  # its body is marked before the delete
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class ShrinkPolicy:
    victims: VictimOrder = VictimOrder.HIGHEST
    mark: DropMark = DropMark.INFERRED
    outcome: Outcome = DROPPED
