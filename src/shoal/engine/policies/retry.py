"""Policies 4 to 6: trying again and how often, and reactions to events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shoal.engine.policies.outcomes import BAD, GOOD
from shoal.engine.types import Action, EventType, FailureClass, Outcome


class RetryDecision(Enum):
    DONE = "d"
    FREE = "f"
    CHARGED = "c"


@dataclass(frozen=True, slots=True)
class UniformDelay:
    """A random whole number of seconds, after a conflict only."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ExponentialDelay:
    base: int
    cap: int


Delay = UniformDelay | ExponentialDelay | None


_RETRIED_AS = {failure_class: failure_class.value for failure_class in FailureClass} | {
    FailureClass.CONFLICT: FailureClass.TRANSIENT.value
}


@dataclass(frozen=True, slots=True)
class Retry:
    """What to do about each nature of end. `Retry.word("dfcdf")` reads ok, transient, unknown, permanent, lost."""

    ok: RetryDecision = RetryDecision.DONE
    transient: RetryDecision = RetryDecision.DONE
    unknown: RetryDecision = RetryDecision.DONE
    permanent: RetryDecision = RetryDecision.DONE
    lost: RetryDecision = RetryDecision.DONE
    delay: Delay = None

    @classmethod
    def from_letters(cls, letters: str, delay: Delay = None) -> Retry:
        ok, transient, unknown, permanent, lost = (RetryDecision(letter) for letter in letters)
        return cls(ok, transient, unknown, permanent, lost, delay)

    def decide(self, outcome: Outcome) -> RetryDecision:
        if outcome.final:
            return RetryDecision.DONE
        chosen: RetryDecision = getattr(self, _RETRIED_AS[outcome.failure_class])
        return chosen


class BudgetUnit(Enum):
    ATTEMPTS = "attempts"
    PODS = "pods"
    ACTIONS = "actions"
    CONTAINERS = "containers"  # restarts in place, summed over living pods; never stored


class BudgetScope(Enum):
    TASK = "task"
    ROLE = "role"
    JOB = "job"


class SpentOn(Enum):
    ON_RESTART = "on restart"
    ON_FAILURE = "on failure"


class WhenEmpty(Enum):
    DONE = "done"  # the task keeps its end
    FAIL = "fail"  # the job fails
    CHARGE_AND_FAIL = "charge and fail"  # the refused one is counted too
    EVENT = "event"  # raises ROLE_EXHAUSTED


@dataclass(frozen=True, slots=True)
class RetryBudget:
    unit: BudgetUnit
    scope: BudgetScope
    permits: int | None = None  # None: no limit
    spent: SpentOn = SpentOn.ON_RESTART
    when_empty: WhenEmpty = WhenEmpty.DONE
    outcome: Outcome = BAD  # of the job, where it fails
    phases: frozenset[str] = frozenset({"Running"})  # CONTAINERS: which pods count
    roles: frozenset[str] = frozenset()  # CONTAINERS: whose; empty: all


@dataclass(frozen=True, slots=True)
class Reaction:
    action: Action
    events: frozenset[EventType] = frozenset()
    code: int | None = None  # instead of events: a TASK_FAILED with this code
    after_seconds: int = 0
    outcome: Outcome = GOOD  # for COMPLETE, FAIL and TERMINATE
    charged: bool = True  # False: a restart that costs nothing, because the job is not to blame
