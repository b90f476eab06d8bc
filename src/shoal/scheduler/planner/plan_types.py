"""The plan of one pass: which waiting pod is placed where, and for each that must wait, the reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase


class Bind(NamedTuple):
    pod: Key
    uid: str
    node: str
    devices: tuple[int, ...] = ()  # where they are shared


@dataclass(frozen=True, slots=True)
class Wait:
    pod: Key
    uid: str
    message: Message
    reason: str = "Unschedulable"  # or Schedulable: it would fit once its gang does; or Queued: its queue's turn
    too_large: bool = False  # for all nodes there are, were they empty


@dataclass(frozen=True, slots=True)
class Evict:
    pod: Key
    uid: str
    message: Message


@dataclass(frozen=True, slots=True)
class ShrinkRequest:
    """A request to an elastic job to give pods back."""

    group: Key
    evictions: tuple[Evict, ...]  # of these pods, if the job does not delete them itself
    message: Message
    cause: Message  # for which group, and why


@dataclass(frozen=True, slots=True)
class Nominate:
    """The node that is kept for a pod until the pods that leave on its behalf are gone."""

    pod: Key
    node: str


class GroupResult(NamedTuple):
    """The result for one gang, and what is to be kept of it. `blocked` is what it waits for, '' if nothing."""

    group: Key
    phase: PodGroupPhase
    reason: str
    message: Message
    blocked: Literal["", "capacity", "quota", "queue", "pods", "order"] = ""
    inqueue_since: float | None = None
    not_before: float = 0.0
    timeouts: int = 0
    ran: bool = False
    too_large: bool = False  # its minimum, for all nodes there are, were they empty

    def changes(self, group: PodGroup) -> bool:
        """Whether something is to be remembered that the group does not say yet."""
        return (
            self.phase is not group.phase
            or self.inqueue_since != group.inqueue_since
            or self.not_before != group.not_before
            or self.timeouts != group.timeouts
            or self.ran != group.ran
        )

    def applied_to(self, group: PodGroup) -> PodGroup:
        return replace(
            group,
            phase=self.phase,
            inqueue_since=self.inqueue_since,
            not_before=self.not_before,
            timeouts=self.timeouts,
            ran=self.ran,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    binds: tuple[Bind, ...]
    waits: tuple[Wait, ...]
    evictions: tuple[Evict, ...] = ()
    shrinks: tuple[ShrinkRequest, ...] = ()
    nominations: tuple[Nominate, ...] = ()
    groups: tuple[GroupResult, ...] = ()
    reservations: tuple[tuple[Key, tuple[str, ...]], ...] = ()  # nodes kept for a gang that waited too long
    warnings: tuple[Message, ...] = ()
    searches: int = 0  # for pods to evict
    ways: tuple[str, ...] = ()  # by which room was made, one for each group that gets it: preempt, reclaim, ...
    wake_at: float | None = None  # plan again then, even if nothing happens
    again: bool = False  # plan again at once: what this plan decided opens the way for others
