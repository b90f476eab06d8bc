"""A process that wants to lead, on a virtual clock, and whether it works."""

from __future__ import annotations

import asyncio

from shoal.cluster.fencing import FencedCluster
from shoal.cluster.simulated import SimulatedCluster
from shoal.controller_runtime.leader_election import LeaderElector


class Candidate:
    """It works from the moment it leads and is `ready` until its term ends."""

    def __init__(self, cluster: SimulatedCluster, name: str, namespace: str, identity: str) -> None:
        self.cluster = cluster
        self.leadership = LeaderElector(
            cluster, name, namespace, identity=identity, clock=cluster.clock, seconds=self.seconds
        )
        self.fenced = FencedCluster(cluster, lambda: self.leadership.is_held)
        self.works = False
        self._task = asyncio.create_task(self.leadership.run(self._work))

    def seconds(self) -> float:
        return self.cluster.clock.now().timestamp()

    async def ready(self) -> None:
        """What has to be waited for besides the lease."""

    async def _work(self) -> None:
        await self.ready()
        self.works = True
        try:
            await asyncio.Event().wait()
        finally:
            self.works = False

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
