"""What this process remembers of a job between passes: more than the copies show, less than a crash may cost.

The newest version of the manifest (a write's answer may be ahead of the watch), the last ledger, the receipts the
engine has not heard of, and pauses after refusals. All of it can be lost: a restart reads the stored ledger and looks.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec.structs import replace

from shoal.cluster.clock import Timer
from shoal.controller_runtime.workqueue import backoff_seconds
from shoal.engine import (
    Create,
    Created,
    Door,
    Gone,
    Intent,
    Job,
    JobState,
    Notification,
    Receipt,
    RoleState,
    Stage,
    Target,
    TaskRef,
    TaskState,
)
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, uid_of

Told = TypeVar("Told", bound=Receipt)


class Pauses:
    """What was refused waits a growing while before it is asked for again, also by the attempts that follow: a task
    that may be retried for ever must not ask without end. Others go on meanwhile, but for those of a role that was
    refused as a whole: they wait together."""

    def __init__(self, rng: random.Random) -> None:
        self._chance = rng
        self._refused: dict[Target | str, tuple[int, datetime]] = {}  # by task, or by the name of a role
        self.barred: dict[str, Target] = {}  # roles known to be refused task by task, and whom it met first

    def allow(self, create: Create, state: JobState, now: datetime) -> bool:
        first = self.barred.get(create.target.role) if isinstance(create.target, TaskRef) else None
        task = state.task(first) if isinstance(first, TaskRef) else None
        if task is not None and task.outcome is not None and not task.is_done:
            return False  # what the first refusal means for the job is about to be decided
        return all(self._refused.get(whose, (0, now))[1] <= now for whose in _whose(create))

    def refused(self, whose: Target | str, now: datetime) -> None:
        count = self._refused.get(whose, (0, now))[0] + 1
        self._refused[whose] = (count, now + timedelta(seconds=backoff_seconds(count, self._chance)))

    def made(self, create: Create) -> None:
        for whose in _whose(create):
            self._refused.pop(whose, None)
        if isinstance(create.target, TaskRef):
            self.barred.pop(create.target.role, None)

    def end(self) -> None:
        """What stood in the way is gone."""
        self._refused.clear()

    def next_end(self, now: datetime) -> datetime | None:
        return min((until for _, until in self._refused.values() if until > now), default=None)


def _whose(create: Create) -> tuple[Target | str, ...]:
    return (create.target, create.target.role) if isinstance(create.target, TaskRef) else (create.target,)


@dataclass(frozen=True, slots=True)
class Resting:
    """A job that ended: there may be thousands of them. The next look at it begins like the first of a process,
    with the stored ledger."""

    uid: str
    word: str
    timer: Timer | None  # what it does wait for: to be deleted some day

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


@dataclass(slots=True)
class Known:
    """One job, by uid."""

    manifest: Obj  # the newest version seen or answered
    state: JobState  # the last ledger computed
    stored: JobState  # the last ledger known to be stored
    pauses: Pauses
    echo: str = ""  # the version that our last write made: when a watch tells of it, it is no news
    is_writing: bool = False  # a write is under way
    is_unsure: bool = False  # a copy came meanwhile: whether it is that write's, its answer will tell
    receipts: tuple[Receipt, ...] = ()  # not yet heard by the engine
    births: tuple[Created, ...] = ()  # heard, and not yet part of a stored ledger
    gone: frozenset[str] = frozenset()  # uids the cluster has no more, while a copy still shows them
    reading: tuple[object, Job | None] | None = None  # what the job was read from, and the job
    is_doubtful: bool = False  # a ledger write failed: look at the stored one before anything else
    unwritten_since: datetime | None = None  # facts the stored ledger does not show yet
    unsaid: tuple[Notification, ...] = ()
    timer: Timer | None = None
    word: str = ""  # the state it is counted under
    went: frozenset[str] = frozenset()  # uids of bodies that have gone since the last pass
    heard: frozenset[str] = frozenset()  # those of them that the pass under way hears of; others may go meanwhile
    told_doors: frozenset[tuple[str, str]] = frozenset()  # reasons and topics of shut doors with an Event

    @property
    def uid(self) -> str:
        return uid_of(self.manifest)

    def saw(self, manifest: Obj) -> None:
        """A copy arrived; it may be older than what a write answered."""
        if version_of(manifest) >= version_of(self.manifest):
            self.manifest = manifest

    def vanished(self) -> tuple[Gone, ...]:
        """Bodies that came and went before any pass saw them."""
        if not self.went:
            return ()
        made = [(told.target, told.uid) for told in (*self.births, *self.receipts) if isinstance(told, Created)]
        for role in self.state.roles:
            made += [(TaskRef(role.name, t.index), t.uid) for t in role.tasks if t.stage is Stage.REQUESTED and t.uid]
        return tuple(Gone(target, uid) for target, uid in made if uid in self.went)

    def news_of_doors(self, doors: Iterable[Door]) -> tuple[Notification, ...]:
        """Doors that are shut since the last pass, where people should hear of it."""
        shut = {(door.reason, door.topic or door.sentence): door.sentence for door in doors if door.reason}
        fresh, self.told_doors = shut.keys() - self.told_doors, frozenset(shut)
        return tuple(
            Notification("", Message("GateClosed", {"cause": shut[reason, topic]}), warning=True, own_reason=reason)
            for reason, topic in sorted(fresh)
        )

    def at_rest(self, copy: Obj) -> Resting | None:
        """What is left to remember of a job that ended; None while there is more than `copy` shows."""
        facts = (self.receipts, self.births, self.gone, self.went, self.unsaid, self.told_doors)
        if not self.state.is_ended or any(facts) or self.is_doubtful or self.unwritten_since:
            return None
        return Resting(self.uid, self.word, self.timer) if version_of(copy) >= version_of(self.manifest) else None

    def set_timer(self, timer: Timer | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = timer


def wishes_of(manifest: Obj) -> object:
    """What a job is read from: everything but the status. A change of the spec shows in the generation."""
    meta = manifest["metadata"]
    return meta.get("generation"), meta.get("deletionTimestamp"), meta.get("labels"), meta.get("annotations")


def still_news(receipts: tuple[Told, ...], before: JobState, stored: JobState) -> tuple[Told, ...]:
    """Of what happened to the bodies of one ledger, that which the stored one, perhaps a step ahead, has yet to hear.

    A ledger of few words has no numbers of attempts; that a body is settled it says always.
    """
    return tuple(
        told
        for told in receipts
        if _is_same_attempt(told.target, before, stored)
        and not (isinstance(told, Created) and told.uid in stored.settled)
    )


def _is_same_attempt(target: Target, before: JobState, after: JobState) -> bool:
    """Whether two ledgers speak of the same attempt: what became of one is nothing to the next."""
    if not isinstance(target, TaskRef):
        return before.run.number == after.run.number
    was, now = (state.task(target) for state in (before, after))
    if was is None or now is None or before.run.number != after.run.number:
        return False
    return (was.instance, was.attempt.number) == (now.instance, now.attempt.number)


def still_unseen(stored: JobState, known: JobState) -> JobState:
    """A stored ledger with the bodies that were created in this life and that no copy has shown yet: a compact ledger
    cannot tell them from bodies that vanished."""
    if stored.run.number != known.run.number:
        return stored
    changed: dict[str, dict[int, TaskState]] = {}
    unlisted: dict[str, list[TaskState]] = {}
    for role in known.roles:
        for was in role.tasks:
            task = stored.task(TaskRef(role.name, was.index)) if was.stage is Stage.REQUESTED else was
            if task is None and not was.instance:
                unlisted.setdefault(role.name, []).append(was)  # of living tasks this ledger says nothing
            elif was.uid in stored.settled:
                continue
            elif task is not None and task.stage is Stage.WAITING and _is_same_body(was, task):
                changed.setdefault(role.name, {})[was.index] = was
    return _with_unlisted(stored.with_tasks(changed), unlisted)


def _is_same_body(was: TaskState, task: TaskState) -> bool:
    return (task.born or not was.instance) and was.stage is Stage.REQUESTED and _decided_alike(was, task)


def _with_unlisted(state: JobState, unlisted: dict[str, list[TaskState]]) -> JobState:
    if not unlisted:
        return state
    there = {role.name: role for role in state.roles}
    for name, tasks in unlisted.items():
        role = there.get(name) or RoleState(name)
        there[name] = replace(role, tasks=tuple(sorted([*role.tasks, *tasks], key=lambda task: task.index)))
    return replace(state, roles=tuple(there.values()))


def _decided_alike(one: TaskState, other: TaskState) -> bool:
    """A stored ledger may be ahead of ours by a write whose answer got lost: then it holds."""
    return (one.charged, one.dropped, one.not_before) == (other.charged, other.dropped, other.not_before)


def version_of(obj: Obj) -> int:
    """Versions of one object are numbers that rise, as every API server promises by now."""
    return int(obj["metadata"]["resourceVersion"])


def word_for(state: JobState) -> str:
    """One word for the metrics, the same for every job language."""
    run = state.run
    if state.is_ended:
        return "succeeded" if run.outcome is not None and run.outcome.is_ok else "failed"
    if run.intent is Intent.HOLD:
        return "held"
    if not run.is_open:
        return "ending"
    return "running" if run.stage is Stage.RUNNING else "pending"
