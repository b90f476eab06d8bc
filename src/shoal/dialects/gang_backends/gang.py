"""A gang, independent of any scheduler: which pods must be placeable together, and on what terms.

Dialects describe the needs of their jobs in these types (`Gangs.specs`); each backend translates them for the scheduler
it represents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.kube.objects import Obj


@dataclass(frozen=True, slots=True)
class GangTopology:
    """How near to each other the members have to be; `tier` or its name limits how far apart, small is near."""

    hard: bool = True
    tier: int | None = None
    tier_name: str = ""


@dataclass(frozen=True, slots=True)
class GangRole:
    """The members of one role: so many, and of those so many at least."""

    role: str
    size: int
    minimum: int
    template: Obj = field(default_factory=dict)
    partition_size: int = 0  # members that belong together within the role; 0: no such cut
    min_partitions: int = 0
    partition_topology: GangTopology | None = None


@dataclass(frozen=True, slots=True)
class GangSpec:
    """Placed together or not at all, up to `minimum`; pods beyond that are placed one by one."""

    name: str  # of the object that represents it
    minimum: int
    roles: tuple[GangRole, ...]
    queue: str = ""
    priority_class: str = ""
    min_resources: Mapping[str, str] | None = None  # of the smallest set that may run; None: room is not requested
    min_limits: Mapping[str, str] = field(default_factory=dict)  # of the same set: the limits of its containers
    schedule_timeout_seconds: int | None = None  # how long members that have a place may hold it for the others
    topology: GangTopology | None = None
    labels: Mapping[str, str] = field(default_factory=dict)  # of the job

    def has(self, role: str) -> bool:
        return any(part.role == role for part in self.roles)

    @property
    def is_elastic(self) -> bool:
        """Whether it has members that it can do without. No member of a partition can be spared alone."""
        return sum(part.size for part in self.roles) > self.minimum and not any(
            part.partition_size for part in self.roles
        )

    @property
    def role_minimums(self) -> Mapping[str, int]:
        """The minima that count: where those of the roles exceed that of the whole, they are not meant at once."""
        minima = {part.role: part.minimum for part in self.roles}
        return minima if sum(minima.values()) <= self.minimum else {}
