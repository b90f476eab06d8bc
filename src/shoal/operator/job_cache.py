"""What this process keeps of a job between passes: more than the informers have, less than a crash may cost.

It holds the newest version of the manifest (a write's response may be ahead of the watch), the last job state, the
receipts that the engine has not processed, and backoffs after rejections. All of it can be lost: a restart reads the
stored job state and observes the cluster.
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
    GateStatus,
    Gone,
    Intent,
    Job,
    JobState,
    Notification,
    RoleState,
    Stage,
    Target,
    TaskRef,
    TaskState,
    WriteResult,
)
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, uid_of

AnyReceipt = TypeVar("AnyReceipt", bound=WriteResult)


class CreateBackoff:
    """Growing backoff of rejected creates, also for the attempts that follow.
    A task with unlimited retries must not send requests without end. Other creates continue, except those of a role
    that was rejected as a whole: they wait together."""

    def __init__(self, rng: random.Random) -> None:
        self._chance = rng
        self._refused: dict[Target | str, tuple[int, datetime]] = {}  # by task, or by the name of a role
        self.barred: dict[str, Target] = {}  # roles known to be rejected task by task, and the first target

    def allow(self, create: Create, state: JobState, now: datetime) -> bool:
        first = self.barred.get(create.target.role) if isinstance(create.target, TaskRef) else None
        task = state.task(first) if isinstance(first, TaskRef) else None
        if task is not None and task.outcome is not None and not task.is_done:
            return False  # what the first refusal means for the job is about to be decided
        return all(self._refused.get(key, (0, now))[1] <= now for key in _backoff_key(create))

    def refused(self, key: Target | str, now: datetime) -> None:
        count = self._refused.get(key, (0, now))[0] + 1
        self._refused[key] = (count, now + timedelta(seconds=backoff_seconds(count, self._chance)))

    def made(self, create: Create) -> None:
        for key in _backoff_key(create):
            self._refused.pop(key, None)
        if isinstance(create.target, TaskRef):
            self.barred.pop(create.target.role, None)

    def reset(self) -> None:
        """What stood in the way is gone."""
        self._refused.clear()

    def next_end(self, now: datetime) -> datetime | None:
        return min((until for _, until in self._refused.values() if until > now), default=None)


def _backoff_key(create: Create) -> tuple[Target | str, ...]:
    return (create.target, create.target.role) if isinstance(create.target, TaskRef) else (create.target,)


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that ended: there may be thousands of them. The next look at it begins like the first of a process,
    with the stored ledger."""

    uid: str
    reported_phase: str
    timer: Timer | None  # what it does wait for: to be deleted some day

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


@dataclass(slots=True)
class JobCacheEntry:
    """One job, by uid."""

    manifest: Obj  # the newest version seen or answered
    state: JobState  # the last ledger computed
    stored: JobState  # the last ledger known to be stored
    backoff: CreateBackoff
    own_version: str = ""  # the version that our last write made: its watch event is not a change
    write_pending: bool = False  # a write is under way
    stale: bool = False  # an event arrived during the write, whose response shows if it is its own
    write_results: tuple[WriteResult, ...] = ()  # not yet seen by the engine
    unobserved_creates: tuple[Created, ...] = ()  # processed, and not yet in a stored job state
    deleted_uids: frozenset[str] = frozenset()  # uids the cluster has no more, while a copy still shows them
    parsed: tuple[object, Job | None] | None = None  # what the job was read from, and the job
    state_unreadable: bool = False  # a ledger write failed: look at the stored one before anything else
    unwritten_since: datetime | None = None  # facts the stored ledger does not show yet
    pending_messages: tuple[Notification, ...] = ()
    timer: Timer | None = None
    reported_phase: str = ""  # the state it is counted under
    vanished_uids: frozenset[str] = frozenset()  # uids of bodies that have gone since the last pass
    # those of them the current pass processes; others may vanish during it
    reported_vanished: frozenset[str] = frozenset()
    reported_gates: frozenset[tuple[str, str]] = frozenset()  # reasons and topics of shut doors with an Event

    @property
    def uid(self) -> str:
        return uid_of(self.manifest)

    def observe(self, manifest: Obj) -> None:
        """A copy arrived; it may be older than what a write answered."""
        if version_of(manifest) >= version_of(self.manifest):
            self.manifest = manifest

    def vanished_pods(self) -> tuple[Gone, ...]:
        """Bodies that came and went before any pass saw them."""
        if not self.vanished_uids:
            return ()
        made = [
            (told.target, told.uid)
            for told in (*self.unobserved_creates, *self.write_results)
            if isinstance(told, Created)
        ]
        for role in self.state.roles:
            made += [(TaskRef(role.name, t.index), t.uid) for t in role.tasks if t.stage is Stage.REQUESTED and t.uid]
        return tuple(Gone(target, uid) for target, uid in made if uid in self.vanished_uids)

    def gate_messages(self, doors: Iterable[GateStatus]) -> tuple[Notification, ...]:
        """Notifications about gates that closed since the last pass, where users should see them."""
        shut = {
            (gate_status.reason, gate_status.topic or gate_status.message): gate_status.message
            for gate_status in doors
            if gate_status.reason
        }
        fresh, self.reported_gates = shut.keys() - self.reported_gates, frozenset(shut)
        return tuple(
            Notification("", Message("GateClosed", {"cause": shut[reason, topic]}), warning=True, own_reason=reason)
            for reason, topic in sorted(fresh)
        )

    def to_finished(self, copy: Obj) -> FinishedJob | None:
        """What is left to remember of a job that ended; None while there is more than `copy` shows."""
        facts = (
            self.write_results,
            self.unobserved_creates,
            self.deleted_uids,
            self.vanished_uids,
            self.pending_messages,
            self.reported_gates,
        )
        if not self.state.is_ended or any(facts) or self.state_unreadable or self.unwritten_since:
            return None
        return (
            FinishedJob(self.uid, self.reported_phase, self.timer)
            if version_of(copy) >= version_of(self.manifest)
            else None
        )

    def set_timer(self, timer: Timer | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = timer


def job_inputs(manifest: Obj) -> object:
    """What a job is read from: everything but the status. A change of the spec shows in the generation."""
    meta = manifest["metadata"]
    return meta.get("generation"), meta.get("deletionTimestamp"), meta.get("labels"), meta.get("annotations")


def unrecorded_results(
    write_results: tuple[AnyReceipt, ...], before: JobState, stored: JobState
) -> tuple[AnyReceipt, ...]:
    """The receipts for the pods of one job state that the stored one, perhaps a step ahead, does not include yet.

    A compact job state has no attempt numbers; that a pod is settled it always records.
    """
    return tuple(
        told
        for told in write_results
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


def with_unobserved_creates(stored: JobState, entry: JobState) -> JobState:
    """A stored job state, plus the pods that this process created and no informer has shown yet.
    A compact job state cannot distinguish them from pods that vanished."""
    if stored.run.number != entry.run.number:
        return stored
    changed: dict[str, dict[int, TaskState]] = {}
    unlisted: dict[str, list[TaskState]] = {}
    for role in entry.roles:
        for was in role.tasks:
            task = stored.task(TaskRef(role.name, was.index)) if was.stage is Stage.REQUESTED else was
            if task is None and not was.instance:
                unlisted.setdefault(role.name, []).append(was)  # this job state lists no living tasks
            elif was.uid in stored.settled:
                continue
            elif task is not None and task.stage is Stage.WAITING and _is_same_pod(was, task):
                changed.setdefault(role.name, {})[was.index] = was
    return _with_unlisted(stored.with_tasks(changed), unlisted)


def _is_same_pod(was: TaskState, task: TaskState) -> bool:
    return (task.had_pod or not was.instance) and was.stage is Stage.REQUESTED and _same_decisions(was, task)


def _with_unlisted(state: JobState, unlisted: dict[str, list[TaskState]]) -> JobState:
    if not unlisted:
        return state
    there = {role.name: role for role in state.roles}
    for name, tasks in unlisted.items():
        role = there.get(name) or RoleState(name)
        there[name] = replace(role, tasks=tuple(sorted([*role.tasks, *tasks], key=lambda task: task.index)))
    return replace(state, roles=tuple(there.values()))


def _same_decisions(one: TaskState, other: TaskState) -> bool:
    """A stored ledger may be ahead of ours by a write whose answer got lost: then it holds."""
    return (one.charged, one.dropped, one.not_before) == (other.charged, other.dropped, other.not_before)


def version_of(obj: Obj) -> int:
    """Versions of one object are numbers that rise, as every API server promises by now."""
    return int(obj["metadata"]["resourceVersion"])


def phase_label(state: JobState) -> str:
    """One word for the metrics, the same for every job language."""
    run = state.run
    if state.is_ended:
        return "succeeded" if run.outcome is not None and run.outcome.is_ok else "failed"
    if run.intent is Intent.HOLD:
        return "held"
    if not run.is_open:
        return "ending"
    return "running" if run.stage is Stage.RUNNING else "pending"
