"""Policies 11 to 13: when pods may be created, and what a hold deletes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from shoal.engine.types import Action


class Lifetime(Enum):
    TASK = "task"
    RUN = "run"
    UNTIL_END = "until end"
    UNTIL_DELETED = "until deleted"


class Opens(Enum):
    EXISTS = "exists"
    ADMITTED = "admitted"


class WhenShut(Enum):
    IGNORE = "ignore"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class ReclaimLimits:
    """What remains of a group that gives members back to the scheduler on request."""

    minimum: int  # members of the group
    of_role: Mapping[str, int] = field(default_factory=dict)  # and of single roles among them


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One request for all-or-nothing placement. `digest` names its setting; roles empty: all."""

    key: str  # '' for a job's only group, else a role's or stage's name
    digest: str = ""
    roles: frozenset[str] = frozenset()
    reclaim_limits: ReclaimLimits | None = None  # None: it gives no member back on request


@dataclass(frozen=True, slots=True)
class GroupGate:
    groups: tuple[GroupPlan, ...]
    opens_when: Opens = Opens.EXISTS
    follows: bool = False  # the group is applied again when its digest changes
    lifetime: Lifetime = Lifetime.UNTIL_END
    when_closed: WhenShut = WhenShut.IGNORE
    reason: str = ""  # of the Event about a group that is not admitted


@dataclass(frozen=True, slots=True)
class ExternalGate:
    """Opened or closed by the manifest itself, or by a client that writes `key` (Observed.opened)."""

    open: bool = True
    key: str = ""
    message: str = "The job waits for its start"
    when_closed: WhenShut = WhenShut.IGNORE
    reason: str = ""  # of the Event about it, where one is wanted


Gate = GroupGate | ExternalGate


@dataclass(frozen=True, slots=True)
class After:
    """A role waits until `roles` (all of them, or any) have enough members at a level; count None: their minimum."""

    roles: tuple[str, ...]
    any: bool = False
    ready: bool = False  # else running is enough
    or_ok: bool = True
    count: int | None = None


class KeepPods(Enum):
    """Which pods are kept."""

    NONE = "none"
    FINISHED = "finished"
    ALL = "all"


class HoldClock(Enum):
    RESTARTS = "restarts"
    RUNS_ON = "runs on"


@dataclass(frozen=True, slots=True)
class Hold:
    requested: bool = False
    from_spec: bool = True  # the request is a level: without it a held job is released; else only an action releases
    keeps: KeepPods = KeepPods.NONE  # FINISHED also keeps what was achieved
    owned_objects: frozenset[str] = frozenset()  # names of those that go
    group: bool = True  # the group is deleted
    clock: HoldClock = HoldClock.RESTARTS
    resume_charged: bool = False
    renews_failed: bool = False  # of what was achieved only successes outlast a release; who failed is tried again
    release_counts: bool = False  # the release is a run of its own, without members and seen for one pass
    ignores: frozenset[Action] = frozenset()  # commands without effect on a held job
