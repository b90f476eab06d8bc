"""The identity of one process among its replicas, and the information it needs about the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from shoal.controller_runtime.crd_installer import DiscoveryCluster
from shoal.controller_runtime.leader_election import LeaseTimes


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The name of this process among its replicas, and where they elect."""

    name: str
    namespace: str
    leader_election: bool = True
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)


class VersionedCluster(DiscoveryCluster, Protocol):
    """A cluster that reports what it serves, and whether it is recent enough and not served by another yet."""

    async def require_unserved(self) -> object: ...
