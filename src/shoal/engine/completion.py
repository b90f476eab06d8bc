"""Completion and Ready: counts over the tasks, and the verdicts that follow from them.

Completion is a level: the claims are asked again in every pass, so an edit of the spec alone can satisfy them. Only
undropped tasks count, and only what is done counts as ok or bad.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from shoal.engine.model import Job
from shoal.engine.pass_context import Scene
from shoal.engine.policies import ALL, LEAD, Bound, Claim, Earliest, Tally, When
from shoal.engine.state import JobState, RoleState, TaskState
from shoal.engine.types import Outcome, Stage, TaskRef, Trigger

_NEVER = datetime.max.replace(tzinfo=UTC)
_BEFORE = datetime.min.replace(tzinfo=UTC)  # when nobody knows any more: a compact ledger keeps no times


class Count(msgspec.Struct):
    """How many tasks of something there are, and in which condition."""

    size: int = 0  # as the spec has it
    present: int = 0
    ok: int = 0
    bad: int = 0
    running: int = 0

    def plus(self, other: Count) -> Count:
        return Count(
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

    roles: dict[str, Count]
    all: Count
    lead: Count
    states: tuple[RoleState, ...] = ()  # of the roles of the spec

    def meant(self, claim: Claim) -> Count:
        """What a claim is about."""
        if not claim.among:
            return self.of(claim.of)
        total = Count()
        for role in self.states:
            if claim.of in (ALL, role.name):
                total = total.plus(_count(_among(role, claim.among), 0))
        return total

    def of(self, whom: str) -> Count:
        if whom == ALL:
            return self.all
        return self.lead if whom == LEAD else self.roles.get(whom, Count())


def tally(job: Job, state: JobState, scene: Scene) -> Tallies:
    roles: dict[str, Count] = {name: Count(size=scene.sizes.get(name, 0)) for name in scene.roles}
    total = Count()
    for role in state.roles:
        if role.name in roles:
            roles[role.name] = _count(role, scene.sizes.get(role.name, 0))
    for count in roles.values():
        total = total.plus(count)
    return Tallies(roles, total, _lead(job, state), tuple(role for role in state.roles if role.name in roles))


def _among(role: RoleState, spans: tuple[tuple[int, int], ...]) -> RoleState:
    tasks = [task for task in role.tasks if any(first <= task.index <= last for first, last in spans)]
    return RoleState(role.name, tasks=tuple(tasks))


def _count(role: RoleState, size: int) -> Count:
    count = Count(size=size, ok=role.ok_count, bad=role.bad_count, present=role.ok_count + role.bad_count)
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


def _lead(job: Job, state: JobState) -> Count:
    role = state.role(job.lead.role) if job.lead else None
    task = role.find(job.lead.index) if role is not None and job.lead else None
    return _count(RoleState("", tasks=(task,)), 1) if task is not None else Count()


def holds(job: Job, claim: Claim, tallies: Tallies) -> bool:
    count = tallies.meant(claim)
    value = count.of(claim.tally)
    if claim.at_least is not None:
        need = _amount(job, claim.at_least, claim.of, count)
        if need is None or value < need:
            return False
    if claim.below is not None:
        limit = _amount(job, claim.below, claim.of, count)
        if limit is None or value >= limit:
            return False
    return True


def _amount(job: Job, bound: int | Bound, whom: str, count: Count) -> int | None:
    """The number a bound stands for; None where it can satisfy nothing."""
    if isinstance(bound, int):
        return bound
    if bound is Bound.SIZE:
        return count.size or None
    if whom == ALL:
        return job.minimum if job.minimum is not None else count.size
    spec = next((role for role in job.roles if role.name == whom), None)
    return spec.minimum if spec is not None and spec.minimum is not None else count.size


def is_ready(job: Job, tallies: Tallies) -> bool:
    return all(holds(job, claim, tallies) for claim in job.policies.ready.claims)


def falls_back(job: Job, tallies: Tallies) -> bool:
    ready = job.policies.ready
    if ready.sticky:
        return False
    if ready.falls_back is None:
        return not is_ready(job, tallies)
    return all(holds(job, claim, tallies) for claim in ready.falls_back)


def verdict(
    job: Job, state: JobState, tallies: Tallies, fresh: Collection[TaskRef] = frozenset()
) -> tuple[When, Outcome] | None:
    """The first verdict whose claims all hold, with its outcome. `fresh` are the tasks that came to be done just now:
    times are whole seconds, and whoever made a claim true is its trigger, also where others ended in that second."""
    for element in job.policies.completion.verdicts:
        whens = element.verdicts if isinstance(element, Earliest) else (element,)
        held = [when for when in whens if all(holds(job, claim, tallies) for claim in when.claims)]
        if held:
            return _chosen(job, tallies, held, _order(state, fresh))
    return None


class Ended(NamedTuple):
    """A task that is done, as it is ordered among them."""

    completed: datetime
    is_fresh: bool
    rank: int  # of its role
    place: int  # in its role
    ref: TaskRef
    task: TaskState


def _order(state: JobState, fresh: Collection[TaskRef]) -> list[Ended]:
    """Who was done first; within one second those known before, then by role and index."""
    ended = [
        Ended(task.completed or _BEFORE, ref in fresh, rank, task.index, ref, task)
        for rank, role in enumerate(state.roles)
        for task in role.tasks
        if task.is_done and not task.dropped
        for ref in (TaskRef(role.name, task.index),)
    ]
    return sorted(ended, key=lambda each: each[:4])


def _chosen(job: Job, tallies: Tallies, held: list[When], ended: list[Ended]) -> tuple[When, Outcome]:
    first = held[0]
    if len(held) > 1:
        triggers = {id(when): _trigger(when, _need(job, when, tallies), ended) for when in held}
        first = min(held, key=lambda when: _moment(triggers[id(when)]))  # ties: the order written
    return first, _outcome(job, tallies, first, ended)


def _moment(trigger: Ended | None) -> tuple[datetime, bool]:
    return (trigger.completed, trigger.is_fresh) if trigger is not None else (_NEVER, True)


def _need(job: Job, when: When, tallies: Tallies) -> int:
    claim = when.claims[0]
    bound = claim.at_least if claim.at_least is not None else claim.below
    return (_amount(job, bound, claim.of, tallies.of(claim.of)) or 0) if bound is not None else 0


def _outcome(job: Job, tallies: Tallies, when: When, ended: list[Ended]) -> Outcome:
    claim = when.claims[0]
    need = _need(job, when, tallies)
    words = {"count": tallies.of(claim.of).of(claim.tally), "need": need}
    outcome = replace(when.outcome, text=when.outcome.text.format(**words)) if when.outcome.text else when.outcome
    if not (when.inherits or when.names_trigger):
        return outcome
    trigger = _trigger(when, need, ended)
    if trigger is None:
        return outcome
    if when.inherits and trigger.task.outcome is not None:
        outcome = trigger.task.outcome
    ref = trigger.ref
    told = Trigger(ref.role, ref.index, when.trigger_text.format(**words, who=ref))
    if when.takes_code and trigger.task.outcome is not None:
        return outcome.blaming(told, trigger.task.outcome.code)
    return outcome.because_of(told)


def _trigger(when: When, need: int, ended: list[Ended]) -> Ended | None:
    """The task whose end made the first claim true: the need-th of its kind in the order they were done."""
    claim = when.claims[0]
    meant = [each for each in ended if claim.of in (ALL, each.ref.role) and _is_of_kind(claim.tally, each.task)]
    if not meant:
        return None
    return meant[-1] if claim.of == ALL else meant[min(max(need, 1), len(meant)) - 1]


def _is_of_kind(tally: Tally, task: TaskState) -> bool:
    ok = task.outcome is not None and task.outcome.is_ok
    return {Tally.OK: ok, Tally.BAD: not ok}.get(tally, True)
