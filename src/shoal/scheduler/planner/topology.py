"""Domains of nodes that are near to each other, tier by tier: islands, racks, spines, zones.

A tier is one number per node: which domain of that tier it is in. The tiers come from HyperNodes or, without any, from
the node labels that the settings name. Tier 1 is the nearest; beyond the last tier lies the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from shoal.scheduler.planner.gang_types import HyperNode, TopologyConstraint
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.resource_vectors import Codes, Ints, Mask


@dataclass(frozen=True, slots=True)
class Tier:
    """`domain[row]` is an index into `names`, whose first entry, '', means no domain."""

    label: str
    domain: Codes
    names: tuple[str, ...]
    tier_names: frozenset[str] = frozenset()  # the names by which a job may request the tier

    def mask(self, domain: int) -> Mask:
        found: Mask = self.domain == domain
        return found

    def sums(self, slots: Ints) -> Ints:
        """How many pods fit in each domain."""
        found = np.bincount(self.domain, weights=slots, minlength=len(self.names))
        found[0] = 0
        return found.astype(np.int64)


class Topology:
    """Rebuilt when nodes or HyperNodes change; read often in between."""

    def __init__(self, resources: NodeResources, labels: tuple[str, ...]) -> None:
        self._room = resources
        self._labels = labels
        self._hypernodes: dict[str, HyperNode] = {}
        self._tiers: tuple[Tier, ...] = ()
        self._epoch = -1

    def set_hypernode(self, domain: HyperNode) -> None:
        self._hypernodes[domain.name] = domain
        self._epoch = -1

    def remove_hypernode(self, name: str) -> None:
        self._hypernodes.pop(name, None)
        self._epoch = -1

    @property
    def tiers(self) -> tuple[Tier, ...]:
        if self._epoch != self._room.epoch:
            self._tiers = tuple(self._from_hypernodes() if self._hypernodes else self._from_labels())
            self._epoch = self._room.epoch
        return self._tiers

    def reach(self, closeness: TopologyConstraint) -> int:
        """The number of the widest tier that is near enough; 0 where the requested name is no tier's."""
        if not closeness.tier_name:
            return closeness.tier
        found = (number for number, tier in enumerate(self.tiers, start=1) if closeness.tier_name in tier.tier_names)
        return max(found, default=0)

    def widest(self, closeness: TopologyConstraint | None) -> Tier | None:
        """The tier of which one domain must hold the whole gang; None where no tier is required."""
        if closeness is None or not closeness.hard:
            return None
        reach = self.reach(closeness)
        return self.tiers[reach - 1] if 0 < reach <= len(self.tiers) else None

    def _from_labels(self) -> Iterable[Tier]:
        for key in self._labels:
            column = self._room.label(key)
            names = ("", *(value or "" for value in column.values[1:]))
            label = key.rpartition("/")[2]
            yield Tier(label, column.codes, names, frozenset({label, key}))

    def _from_hypernodes(self) -> Iterable[Tier]:
        rows = self._room.rows
        by_tier: dict[int, list[HyperNode]] = {}
        for name in sorted(self._hypernodes):
            found = self._hypernodes[name]
            by_tier.setdefault(found.tier, []).append(found)
        for tier in range(1, max(by_tier) + 1):
            domains = by_tier.get(tier, [])
            codes = np.zeros(len(self._room), dtype=np.int32)
            for number, domain in enumerate(domains, start=1):
                codes[[rows[node] for node in domain.nodes if node in rows]] = number
            tier_names = frozenset(domain.tier_name for domain in domains) - {""}
            label = f"domain of tier {tier}" if len(tier_names) != 1 else min(tier_names)
            yield Tier(label, codes, ("", *(domain.name for domain in domains)), tier_names)
