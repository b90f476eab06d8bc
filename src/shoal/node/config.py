"""How one node is set up: its name, its share of the machine, what it declares, and how patient it is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from shoal.kube.objects import Obj
from shoal.node.images import Images
from shoal.node.ipam import ISOLATED_RANGE, LOOPBACK_RANGE
from shoal.node.node_object import Machine, capacity_of, devices_of, share_of
from shoal.node.pod_lifecycle import BackOff
from shoal.node.sandbox.interface import Network


@dataclass(frozen=True, slots=True)
class Confinement:
    """What protects the machine from pods that users of another cluster create. None of a cluster of one's own."""

    hidden: tuple[Path, ...] = ()  # files and folders covered in the mount namespace of every process
    separate_users: bool = False  # pods run as users of their own (`pod_user`); needs root


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """`data` is the cluster's data folder. `index` numbers the nodes of one machine: it chooses their addresses."""

    name: str
    data: Path
    machine: Machine
    index: int = 0
    share: int = 1  # among how many nodes the machine is split
    capacity: Mapping[str, str] = field(default_factory=dict)  # declared, besides what was found
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Obj, ...] = ()  # of a Node that is registered for the first time
    namespaces: frozenset[str] = frozenset()  # whose pods run here; empty: those of every namespace
    holder: str = ""  # of the Node's Lease, where another agent might hold it; '': this name can have one agent only
    confinement: Confinement | None = None
    kubelet_port: int = 0  # where an API server may request logs; 0: this one uses its own process
    images: Images = field(default_factory=Images)
    caller_env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    working_dir: str = field(default_factory=os.getcwd)
    pod_range: str = ""  # '': the usual one of the network
    backoff: BackOff = field(default_factory=BackOff)
    lease_seconds: int = 40
    renew_seconds: float = 10.0
    heartbeat_seconds: float = 300.0
    clock: Callable[[], float] = time.time

    @property
    def allocatable(self) -> dict[str, str]:
        return capacity_of(self.machine, self.capacity)

    @property
    def devices(self) -> tuple[int, ...] | None:
        return devices_of(self.machine, self.capacity, self.index)

    def range_for(self, network: Network) -> str:
        return self.pod_range or default_range(network)


def default_range(network: Network) -> str:
    return ISOLATED_RANGE if network is Network.ISOLATED else LOOPBACK_RANGE


def split(config: NodeConfig, count: int) -> list[NodeConfig]:
    """The same machine as `count` nodes, named `<name>-0`, `<name>-1`, ...; one node keeps its name."""
    if count == 1:
        return [config]
    return [
        replace(
            config,
            name=f"{config.name}-{index}",
            index=index,
            share=count,
            machine=share_of(config.machine, index, count),
        )
        for index in range(count)
    ]
