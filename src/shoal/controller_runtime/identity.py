"""The identity of one process among its replicas, and what it needs to know of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from shoal.controller_runtime.crd_installer import DiscoveryCluster
from shoal.controller_runtime.leader_election import LeaseTimes


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Who this process is to its replicas, and where they meet."""

    name: str
    namespace: str
    leader_election: bool = True
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)


class VersionedCluster(DiscoveryCluster, Protocol):
    """A cluster that says what it serves, and whether it is young enough and nobody's yet."""

    async def require_unserved(self) -> object: ...
