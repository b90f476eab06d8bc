"""Policies 14 and 15: clocks, and what is taken down when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shoal.engine.policies.gates import KeepPods
from shoal.engine.policies.outcomes import BAD
from shoal.engine.types import Outcome


class DeadlineBase(Enum):
    STARTED = "started"  # first pass
    CLOCK = "clock"  # all pods of the run created


class Propagation(Enum):
    FOREGROUND = "Foreground"
    BACKGROUND = "Background"


@dataclass(frozen=True, slots=True)
class Timeouts:
    deadline_seconds: int | None = None
    deadline_from: DeadlineBase = DeadlineBase.STARTED
    deadline_outcome: Outcome = BAD
    ttl_seconds: int | None = None  # the job is deleted that long after its end
    propagation: Propagation = Propagation.FOREGROUND
    creation_seconds: int | None = None  # a created pod or run owner must be seen within
    quick_retries: int = 3  # attempts of a task, or of the whole, from this number on are spaced
    retry_spacing_seconds: int = 1  # from the start stamp of a spaced attempt to the creation of its first object


class TeardownVia(Enum):
    RUN_OWNER = "anchor"  # delete the run owner; the cascade deletes the pods
    EACH = "each"


class Drained(Enum):
    """When a closed run counts as empty."""

    GONE = "gone"  # nothing that must go is left
    ENOUGH = "enough"  # size less terminating pods reaches the job's minimum


@dataclass(frozen=True, slots=True)
class Teardown:
    at_retry: KeepPods = KeepPods.NONE  # the body a retried attempt leaves behind
    at_done: KeepPods = KeepPods.ALL  # a task that will not be retried
    at_restart: KeepPods = KeepPods.NONE
    at_end: KeepPods = KeepPods.FINISHED
    at_failed_end: KeepPods | None = None  # None: as at_end
    at_deadline: KeepPods | None = None
    via: TeardownVia = TeardownVia.EACH
    cut: Outcome | None = None  # of tasks that had no outcome when the run closed
    restart_drained: Drained = Drained.GONE
