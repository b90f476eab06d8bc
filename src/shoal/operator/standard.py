"""The loops a cluster of our own needs: placing pods, keeping the addresses of Services, binding volume claims,
giving each namespace its service account, and removing pods of nodes that are no longer there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shoal.cluster.clock import Clock
from shoal.cluster.port import Cluster
from shoal.cluster.recording import Recorder
from shoal.operator.absent_nodes import AbsentNodesLoop
from shoal.operator.accounts import AccountsLoop
from shoal.operator.endpoints import EndpointsLoop
from shoal.operator.loops import Loop
from shoal.operator.scheduler import Scheduler
from shoal.operator.volumes import VolumesLoop


def standard_loops(cluster: Cluster, *, volumes: Path, clock: Clock) -> list[Callable[[], Loop]]:
    """The loops a cluster of our own needs, each as a function that makes it."""
    return [
        lambda: Scheduler(cluster, Recorder(cluster, "scheduler", clock=clock), clock),
        lambda: EndpointsLoop(cluster),
        lambda: VolumesLoop(cluster, volumes),
        lambda: AccountsLoop(cluster),
        lambda: AbsentNodesLoop(cluster),
    ]
