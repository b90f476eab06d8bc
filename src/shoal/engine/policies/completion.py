"""Policies 7 and 8: when the job ends, and when it counts as running."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shoal.engine.policies.outcomes import BAD, TOO_LARGE
from shoal.engine.types import Outcome


class Tally(Enum):
    """Counts over undropped tasks. `live` has a body or will get one, `able` may still end well."""

    OK = "ok"
    BAD = "bad"
    DONE = "done"  # ok + bad
    LIVE = "live"  # neither
    ABLE = "able"  # live + ok
    PENDING = "pending"  # live, not running
    RUNNING = "running"
    UP = "up"  # running + ok
    STARTED = "started"  # running + ok + bad


class Bound(Enum):
    SIZE = "size"  # of what is counted; a size of 0 satisfies nothing
    MIN = "min"  # the role's minimum, the job's for ALL


LEAD = "<lead>"
ALL = "<all>"


@dataclass(frozen=True, slots=True)
class CountCondition:
    """`tally` of `of` (a role's name, LEAD or ALL) is at least, or below, an amount.

    `among` are the first and last of each range of indexes that count; none: all of them do.
    """

    tally: Tally
    of: str = ALL
    at_least: int | Bound | None = None
    below: int | Bound | None = None
    among: tuple[tuple[int, int], ...] = ()


class Finish(Enum):
    AT_ONCE = "at once"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class CompletionRule:
    """A verdict: if all claims hold the run ends with `outcome`.

    `inherits` takes code, phrase, nature and text from the trigger: the task that made the first claim true, or for
    a count of all tasks the one that ended last; `takes_code` takes its code alone. In `trigger_text` and outcome.text,
    {count} and {need} are filled in, in the former also {who}, the trigger.
    """

    conditions: tuple[CountCondition, ...]
    outcome: Outcome
    finish: Finish = Finish.AT_ONCE
    inherits: bool = False
    names_trigger: bool = False
    takes_code: bool = False
    trigger_text: str = ""


@dataclass(frozen=True, slots=True)
class EarliestOf:
    """Several verdicts of equal right: the one whose trigger ended first wins, ties in the order written."""

    rules: tuple[CompletionRule, ...]


class DecisionSource(Enum):
    STOP = "stop"
    COMMAND = "command"
    REACTIONS = "reactions"
    COMPLETION = "completion"
    LIMITS = "limits"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Completion:
    rules: tuple[CompletionRule | EarliestOf, ...] = ()
    order: tuple[DecisionSource, ...] = (
        DecisionSource.STOP,
        DecisionSource.COMMAND,
        DecisionSource.REACTIONS,
        DecisionSource.COMPLETION,
        DecisionSource.LIMITS,
        DecisionSource.HOLD,
    )
    needs_ready: bool = False
    stop: Outcome = BAD  # the outcome of Job.stop
    too_large: Outcome = TOO_LARGE  # where the server does not store the state
    stop_finish: Finish = Finish.DRAINED
    limit_finish: Finish = Finish.AT_ONCE


@dataclass(frozen=True, slots=True)
class Ready:
    """The job counts as running when all claims hold. Sticky: for the rest of the run."""

    conditions: tuple[CountCondition, ...] = (CountCondition(Tally.RUNNING, at_least=1),)
    sticky: bool = True
    # not sticky: back when these hold (None: when claims no longer do)
    falls_back: tuple[CountCondition, ...] | None = None
