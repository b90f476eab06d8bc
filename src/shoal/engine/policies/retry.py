"""Policies 4 to 6: trying again and how often, and reactions to events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shoal.engine.policies.outcomes import BAD, GOOD
from shoal.engine.types import Action, Happening, Nature, Outcome


class Answer(Enum):
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


_ANSWERED_AS = {nature: nature.value for nature in Nature} | {Nature.CONFLICT: Nature.TRANSIENT.value}


@dataclass(frozen=True, slots=True)
class Retry:
    """What to do about each nature of end. `Retry.word("dfcdf")` reads ok, transient, unknown, permanent, lost."""

    ok: Answer = Answer.DONE
    transient: Answer = Answer.DONE
    unknown: Answer = Answer.DONE
    permanent: Answer = Answer.DONE
    lost: Answer = Answer.DONE
    delay: Delay = None

    @classmethod
    def word(cls, letters: str, delay: Delay = None) -> Retry:
        ok, transient, unknown, permanent, lost = (Answer(letter) for letter in letters)
        return cls(ok, transient, unknown, permanent, lost, delay)

    def answer(self, outcome: Outcome) -> Answer:
        if outcome.final:
            return Answer.DONE
        chosen: Answer = getattr(self, _ANSWERED_AS[outcome.nature])
        return chosen


class Unit(Enum):
    ATTEMPTS = "attempts"
    PODS = "pods"
    ACTIONS = "actions"
    CONTAINERS = "containers"  # restarts in place, summed over living bodies; never stored


class Scope(Enum):
    TASK = "task"
    ROLE = "role"
    JOB = "job"


class Spent(Enum):
    ON_RESTART = "on restart"
    ON_FAILURE = "on failure"


class WhenEmpty(Enum):
    DONE = "done"  # the task keeps its end
    FAIL = "fail"  # the job fails
    CHARGE_AND_FAIL = "charge and fail"  # the refused one is counted too
    EVENT = "event"  # raises ROLE_EXHAUSTED


@dataclass(frozen=True, slots=True)
class Budget:
    unit: Unit
    scope: Scope
    permits: int | None = None  # None: no limit
    spent: Spent = Spent.ON_RESTART
    when_empty: WhenEmpty = WhenEmpty.DONE
    outcome: Outcome = BAD  # of the job, where it fails
    phases: frozenset[str] = frozenset({"Running"})  # CONTAINERS: which bodies count
    roles: frozenset[str] = frozenset()  # CONTAINERS: whose; empty: all


@dataclass(frozen=True, slots=True)
class Reaction:
    action: Action
    events: frozenset[Happening] = frozenset()
    code: int | None = None  # instead of events: a failed task whose judged code is this
    after_seconds: int = 0
    outcome: Outcome = GOOD  # for COMPLETE, FAIL and TERMINATE
    charged: bool = True  # False: a restart that costs nothing, because nobody of the job is to blame
