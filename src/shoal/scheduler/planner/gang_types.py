"""Gangs, queues and topology as plain data: the contents of PodGroup, Queue and HyperNode, and the settings.

Times are seconds, amounts are thousandths. A group's own history (`inqueue_since`, `not_before`, `timeouts`, `ran`) is
passed with it, so that a plan depends on nothing but its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from shoal.kube.objects import Key
from shoal.kube.selectors import EVERYTHING, LabelSelector


class PodGroupPhase(StrEnum):
    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


# read very often, and slow to look up in their class
PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = PodGroupPhase


@dataclass(frozen=True, slots=True)
class TopologyConstraint:
    """How near to each other the pods must be. Tiers count from 1, the nearest; a name counts instead of a number."""

    hard: bool = True
    tier: int = 1
    tier_name: str = ""


@dataclass(frozen=True, slots=True)
class SubgroupPolicy:
    """Pods of one tuple of label values form one subgroup; `minimum` of them must be whole."""

    name: str
    size: int = 1
    minimum: int = 0
    selector: LabelSelector = EVERYTHING
    label_keys: tuple[str, ...] = ()
    closeness: TopologyConstraint | None = None


@dataclass(frozen=True, slots=True)
class PodGroup:
    key: Key
    uid: str = ""
    title: str = ""  # its name without the uid of its job; '' where it is just its name
    created: float = 0.0
    min_member: int = 1
    min_roles: Mapping[str, int] = field(default_factory=dict)
    min_resources: Mapping[str, int] | None = None
    queue: str = "default"
    priority: int = 0
    phase: PodGroupPhase = PodGroupPhase.PENDING
    closeness: TopologyConstraint | None = None
    subgroups: tuple[SubgroupPolicy, ...] = ()
    elastic: bool = False  # its job gives pods back on request
    preemptable: bool = True
    preemptible_guest: bool = False  # its owner allows that it is evicted at any time
    is_charged: bool = True  # whether its pods count against the queue
    generation: int = 0
    sla_seconds: float | None = None
    estimate_seconds: float | None = None  # how long it will run
    inqueue_since: float | None = None
    not_before: float = 0.0  # sent back from the queue until then
    timeouts: int = 0
    ran: bool = False  # was whole at least once


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    created: float = 0.0
    weight: int = 1
    capability: Mapping[str, int] = field(default_factory=dict)
    deserved: Mapping[str, int] = field(default_factory=dict)
    guarantee: Mapping[str, int] = field(default_factory=dict)
    reclaimable: bool = True
    priority: int = 0
    parent: str = "root"
    fifo: bool = False
    open: bool = True
    closed_by_parent: bool = False  # and not by hand
    inqueue_timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class HyperNode:
    """One topology domain and the nodes under it."""

    name: str
    tier: int
    nodes: frozenset[str]
    tier_name: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """What a namespace may request in all, and already does."""

    hard: Mapping[str, int]
    used: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class WorkloadKind:
    """One kind of pod: what it needs besides its devices, how many devices, how much of each."""

    cpu: int
    memory: int
    count: int
    milli: int  # of each device: 1000 for whole ones


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    sharing: Literal["proportion", "capacity"] = "proportion"
    enqueue: bool = True
    overcommit: float = 1.2
    preempt: bool = True
    reclaim: bool = True
    evict_whole_gangs: bool = True
    eviction_attempts: int = 16  # searches for victims in one plan; the others wait their turn
    inqueue_timeout_seconds: float = 600
    backoff_seconds: float = 60  # doubled with each time-out, up to ten minutes
    hold_seconds: float = 30  # how long a gang may stand half bound
    starving_seconds: float = 1800
    sla_seconds: float | None = None
    profile: Literal["auto", "pack", "spread"] = "auto"
    accelerators: tuple[str, ...] = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "huawei.com/Ascend910")
    accelerator_weight: int = 10
    tiers: tuple[str, ...] = ()  # node labels that name the domains, the nearest first
    usual_pods: tuple[tuple[WorkloadKind, int], ...] = ()  # where devices are shared: kinds, and how many; else learned
