"""The two channels that connect the parts of the scheduler, and what passes through them.

Events go to the cache: changes of watched objects, and the outcomes of requests that the cache has to know. Decisions
go to the effects: what a cycle decided, and what changed in the cache and may have to be written to the cluster.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from shoal.cluster.informer import Change
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj
from shoal.scheduler.planner.gang_types import PodGroupPhase, Queue
from shoal.scheduler.planner.plan_types import Bind, Plan, Wait

Item = TypeVar("Item")


class Channel(Generic[Item]):
    """A queue without a limit between two parts in one event loop; its reader takes all that has arrived."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._filled = asyncio.Event()

    def put(self, item: Item) -> None:
        self._items.append(item)
        self._filled.set()

    async def wait(self) -> None:
        """Until something is in the channel."""
        await self._filled.wait()

    def drain(self) -> Iterator[Item]:
        """What is in the channel, with what is put there meanwhile."""
        while self._items:
            yield self._items.popleft()
        self._filled.clear()


# Events: from informers, timers and the effects to the cache


class BindFailed(NamedTuple):
    bind: Bind
    for_good: bool  # the pod was deleted or placed by another scheduler, as a watch will show


class EvictionFailed(NamedTuple):
    pod: Key
    uid: str


class EvictionRefused(NamedTuple):
    """A disruption budget keeps the pod."""

    pod: Key
    uid: str
    nothing_left: bool  # nor may any other pod of its budget be evicted


class EvictionRetry(NamedTuple):
    """A pod that its budget kept may be evicted again, even if no budget has changed."""

    pod: Key
    uid: str


class QueueUpdated(NamedTuple):
    """An update by this scheduler, applied at once: no group is admitted to a closed queue because a watch is late."""

    queue: Queue


class ClaimFailed(NamedTuple):
    """No volume could be made: the pods of the claim wait until it is retried."""

    claim: Key
    error: str


class ClaimRetry(NamedTuple):
    claim: Key


class ClaimsReleased(NamedTuple):
    """What was chosen for these claims is bound, or free again."""

    claims: tuple[Key, ...]


class CycleDue(NamedTuple):
    """The time has come that the last plan named."""


Outcome = (
    BindFailed
    | EvictionFailed
    | EvictionRefused
    | EvictionRetry
    | QueueUpdated
    | ClaimFailed
    | ClaimRetry
    | ClaimsReleased
)
Event = Change | Outcome | CycleDue


# Decisions: from the cycle and the cache to the effects


@dataclass(frozen=True, slots=True)
class VolumeChoice:
    """The volume that a claim is to get, or None: one is to be made for the node."""

    claim: Key
    uid: str
    node: str
    volume: Obj | None = None


class GangVolumes(NamedTuple):
    """Pods of one gang that are bound together, once these claims are bound."""

    binds: list[Bind]
    choices: list[VolumeChoice]


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The result of a cycle for one group."""

    group: Key
    uid: str
    phase: PodGroupPhase
    reason: str
    message: Message
    blocked: str
    too_large: bool
    queue: str = field(compare=False)
    cycle: int = field(compare=False)  # in which it was decided first


@dataclass(frozen=True, slots=True)
class Decisions:
    """Everything that one cycle decided. The cache has assumed it before the effects get it."""

    plan: Plan
    volumes: tuple[GangVolumes, ...]  # claims to bind before the pods of the plan that use them
    statuses: tuple[GroupStatus, ...]  # of groups whose result differs from the last, or that more pods wait with
    waits: tuple[Wait, ...]  # messages of pods


class GangStarted(NamedTuple):
    """All of the gang is bound for the first time."""

    group: Key
    seconds: float | None  # since its creation; None where another scheduler places pods of it


@dataclass(slots=True)
class CacheChanges:
    """What events changed in the cache: the objects, and what follows from them."""

    objects: list[Change] = field(default_factory=list)
    groups: dict[Key, None] = field(default_factory=dict)  # with other pods, or pods in other states
    queues: dict[str, None] = field(default_factory=dict)  # that may hold another amount
    started: list[GangStarted] = field(default_factory=list)


Decision = CacheChanges | Decisions
