"""Completion and Ready: when a run ends, and when it counts as running. Both are conditions on counts of tasks.

Completion is a level: the conditions are evaluated again in every pass, so an edit of the spec alone can satisfy them.
Only undropped tasks count, and only what is done counts as ok or bad.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from shoal.engine.pass_context import PassContext
from shoal.engine.state import JobState, RoleState, TaskState
from shoal.engine.types import BAD, TOO_LARGE, Outcome, Stage, TaskRef, Trigger

if TYPE_CHECKING:
    from shoal.engine.model import Job


class Tally(Enum):
    """Counts over undropped tasks. `live` has a pod or will get one, `able` may still end well."""

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
    """If all conditions hold the run ends with `outcome`.

    `inherits` takes code, phrase, class and text from the trigger: the task that made the first condition true, or for
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
    """Several rules of equal precedence: the one whose trigger ended first wins, ties in the order written."""

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
    """The job counts as running when all conditions hold. Sticky: for the rest of the run."""

    conditions: tuple[CountCondition, ...] = (CountCondition(Tally.RUNNING, at_least=1),)
    sticky: bool = True
    # not sticky: back when these hold (None: when the conditions no longer do)
    falls_back: tuple[CountCondition, ...] | None = None


_NEVER = datetime.max.replace(tzinfo=UTC)


_BEFORE = datetime.min.replace(tzinfo=UTC)  # when it is unknown: a compact job state keeps no times


class TaskCounts(msgspec.Struct):
    """How many tasks of something there are, and in which condition."""

    size: int = 0  # as the spec has it
    present: int = 0
    ok: int = 0
    bad: int = 0
    running: int = 0

    def plus(self, other: TaskCounts) -> TaskCounts:
        return TaskCounts(
            self.size + other.size,
            self.present + other.present,
            self.ok + other.ok,
            self.bad + other.bad,
            self.running + other.running,
        )

    def of(self, tally: Tally) -> int:
        done = self.ok + self.bad
        live = max(self.present - done, 0)
        return {
            Tally.OK: self.ok,
            Tally.BAD: self.bad,
            Tally.DONE: done,
            Tally.LIVE: live,
            Tally.ABLE: live + self.ok,
            Tally.PENDING: live - self.running,
            Tally.RUNNING: self.running,
            Tally.UP: self.running + self.ok,
            Tally.STARTED: self.running + done,
        }[tally]


class Tallies(msgspec.Struct):
    """Counts per role of the spec, of all of them together, and of the lead."""

    roles: dict[str, TaskCounts]
    all: TaskCounts
    lead: TaskCounts
    states: tuple[RoleState, ...] = ()  # of the roles of the spec

    def count_for(self, condition: CountCondition) -> TaskCounts:
        """The tasks that a condition counts."""
        if not condition.among:
            return self.of(condition.of)
        total = TaskCounts()
        for role in self.states:
            if condition.of in (ALL, role.name):
                among = [t for t in role.tasks if any(first <= t.index <= last for first, last in condition.among)]
                total = total.plus(_count(RoleState(role.name, tasks=tuple(among)), 0))
        return total

    def of(self, name: str) -> TaskCounts:
        if name == ALL:
            return self.all
        return self.lead if name == LEAD else self.roles.get(name, TaskCounts())


def tally(job: Job, state: JobState, context: PassContext) -> Tallies:
    roles: dict[str, TaskCounts] = {name: TaskCounts(size=context.sizes.get(name, 0)) for name in context.roles}
    total, lead = TaskCounts(), TaskCounts()
    for role in state.roles:
        if role.name in roles:
            roles[role.name] = _count(role, context.sizes.get(role.name, 0))
    for count in roles.values():
        total = total.plus(count)
    if job.lead and (task := state.task(job.lead)) is not None:
        lead = _count(RoleState("", tasks=(task,)), 1)
    return Tallies(roles, total, lead, tuple(role for role in state.roles if role.name in roles))


def _count(role: RoleState, size: int) -> TaskCounts:
    count = TaskCounts(size=size, ok=role.ok_count, bad=role.bad_count, present=role.ok_count + role.bad_count)
    for task in role.tasks:
        if task.dropped:
            continue
        count.present += 1
        if task.stage is Stage.RUNNING:
            count.running += 1
        elif task.stage is Stage.DONE and task.attempt.outcome is not None:
            if task.attempt.outcome.is_ok:
                count.ok += 1
            else:
                count.bad += 1
    return count


def holds(job: Job, condition: CountCondition, tallies: Tallies) -> bool:
    count = tallies.count_for(condition)
    value = count.of(condition.tally)
    if condition.at_least is not None:
        need = _amount(job, condition.at_least, condition.of, count)
        if need is None or value < need:
            return False
    if condition.below is not None:
        limit = _amount(job, condition.below, condition.of, count)
        if limit is None or value >= limit:
            return False
    return True


def _amount(job: Job, bound: int | Bound, name: str, count: TaskCounts) -> int | None:
    """The number a bound represents; None where it can satisfy nothing."""
    if isinstance(bound, int):
        return bound
    if bound is Bound.SIZE:
        return count.size or None
    if name == ALL:
        return job.minimum if job.minimum is not None else count.size
    spec = next((role for role in job.roles if role.name == name), None)
    return spec.minimum if spec is not None and spec.minimum is not None else count.size


def is_ready(job: Job, tallies: Tallies) -> bool:
    return all(holds(job, condition, tallies) for condition in job.policies.ready.conditions)


def falls_back(job: Job, tallies: Tallies) -> bool:
    ready = job.policies.ready
    if ready.sticky:
        return False
    if ready.falls_back is None:
        return not is_ready(job, tallies)
    return all(holds(job, condition, tallies) for condition in ready.falls_back)


def evaluate_completion(
    job: Job, state: JobState, tallies: Tallies, fresh: Collection[TaskRef] = frozenset()
) -> tuple[CompletionRule, Outcome] | None:
    """The first rule whose conditions all hold, with its outcome.

    `fresh` are the tasks that became done just now: times are whole seconds, and the task that made a condition true is
    its trigger, also where others ended in that second.
    """
    for element in job.policies.completion.rules:
        rule_list = element.rules if isinstance(element, EarliestOf) else (element,)
        held = [rule for rule in rule_list if all(holds(job, condition, tallies) for condition in rule.conditions)]
        if held:
            ended = _completed_tasks(state, fresh)
            rule = held[0]
            if len(held) > 1:  # the one triggered first; ties: the order written
                triggers = [_trigger(rule, _required_count(job, rule, tallies), ended) for rule in held]
                moments = [(each.completed, each.is_fresh) if each is not None else (_NEVER, True) for each in triggers]
                rule = held[moments.index(min(moments))]
            return rule, _rule_outcome(job, tallies, rule, ended)
    return None


class CompletedTask(NamedTuple):
    """A task that is done, as it is ordered among them."""

    completed: datetime
    is_fresh: bool
    rank: int  # of its role
    position: int  # in its role
    ref: TaskRef
    task: TaskState


def _completed_tasks(state: JobState, fresh: Collection[TaskRef]) -> list[CompletedTask]:
    """In the order of their ends; within one second those known before, then by role and index."""
    ended = [
        CompletedTask(task.completed or _BEFORE, ref in fresh, rank, task.index, ref, task)
        for rank, role in enumerate(state.roles)
        for task in role.tasks
        if task.is_done and not task.dropped
        for ref in (TaskRef(role.name, task.index),)
    ]
    return sorted(ended, key=lambda each: each[:4])


def _required_count(job: Job, rule: CompletionRule, tallies: Tallies) -> int:
    condition = rule.conditions[0]
    bound = condition.at_least if condition.at_least is not None else condition.below
    return (_amount(job, bound, condition.of, tallies.of(condition.of)) or 0) if bound is not None else 0


def _rule_outcome(job: Job, tallies: Tallies, rule: CompletionRule, ended: list[CompletedTask]) -> Outcome:
    condition = rule.conditions[0]
    need = _required_count(job, rule, tallies)
    template = {"count": tallies.of(condition.of).of(condition.tally), "need": need}
    outcome = replace(rule.outcome, text=rule.outcome.text.format(**template)) if rule.outcome.text else rule.outcome
    trigger = _trigger(rule, need, ended) if rule.inherits or rule.names_trigger else None
    if trigger is None:
        return outcome
    if rule.inherits and trigger.task.outcome is not None:
        outcome = trigger.task.outcome
    ref = trigger.ref
    named = Trigger(ref.role, ref.index, rule.trigger_text.format(**template, who=ref))
    if rule.takes_code and trigger.task.outcome is not None:
        return outcome.blaming(named, trigger.task.outcome.code)
    return outcome.because_of(named)


def _trigger(rule: CompletionRule, need: int, ended: list[CompletedTask]) -> CompletedTask | None:
    """The task whose end made the first condition true: the need-th of its kind in the order of their ends."""
    condition = rule.conditions[0]
    matching = [each for each in ended if condition.of in (ALL, each.ref.role)]
    if condition.tally in (Tally.OK, Tally.BAD):
        is_ok = condition.tally is Tally.OK
        matching = [each for each in matching if (each.task.outcome is not None and each.task.outcome.is_ok) == is_ok]
    if not matching:
        return None
    return matching[-1] if condition.of == ALL else matching[min(max(need, 1), len(matching)) - 1]
