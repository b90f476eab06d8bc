"""What this process keeps of its jobs between passes, besides what the informers cache.

Of an active job: the newest manifest and the job state, which may be ahead of the informer, what was sent and is not
observed yet, Events that wait for the job state to be stored, and backoffs after rejections. Of a finished job: next to
nothing. All of it can be lost: a restart reads the stored job state and observes the cluster.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shoal.cluster.clock import Timer
from shoal.controller_runtime.workqueue import backoff_seconds
from shoal.engine import Create, GateStatus, Intent, Job, JobState, Notification, Stage, Target, TaskRef, compact_state
from shoal.engine.policies import Memory
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, uid_of
from shoal.operator.expectations import Expectations, OwnWrites, with_unobserved_creates
from shoal.operator.write_results import WriteResults


class CreateBackoff:
    """Growing backoff of rejected creates, also for the attempts that follow.
    A task with unlimited retries must not send requests without end. Other creates continue, except those of a role
    that was rejected as a whole: they wait together."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._refused: dict[Target | str, tuple[int, datetime]] = {}  # by task, or by the name of a role
        self.barred: dict[str, Target] = {}  # roles known to be rejected task by task, and the first target

    def allow(self, create: Create, state: JobState, now: datetime) -> bool:
        first = self.barred.get(create.target.role) if isinstance(create.target, TaskRef) else None
        task = state.task(first) if isinstance(first, TaskRef) else None
        if task is not None and task.outcome is not None and not task.is_done:
            return False  # the engine is about to decide what the first rejection means for the job
        return all(self._refused.get(key, (0, now))[1] <= now for key in _backoff_key(create))

    def record(self, results: WriteResults, now: datetime) -> None:
        """The results of the creates of a pass."""
        for create in results.made:
            for key in _backoff_key(create):
                self._refused.pop(key, None)
            if isinstance(create.target, TaskRef):
                self.barred.pop(create.target.role, None)
        for create in results.refused:
            if not isinstance(create.target, TaskRef) or create.target.role not in results.quota_exceeded:
                self._grow(create.target, now)
        for role in results.quota_exceeded:
            self._grow(role, now)
        self.barred = {role: first.target for role, first in results.barred.items()} | self.barred

    def _grow(self, key: Target | str, now: datetime) -> None:
        count = self._refused.get(key, (0, now))[0] + 1
        self._refused[key] = (count, now + timedelta(seconds=backoff_seconds(count, self._rng)))

    def reset(self) -> None:
        """The object that blocked a name is gone, so every create may be tried at once."""
        self._refused.clear()

    def next_end(self, now: datetime) -> datetime | None:
        return min((until for _, until in self._refused.values() if until > now), default=None)


def _backoff_key(create: Create) -> tuple[Target | str, ...]:
    return (create.target, create.target.role) if isinstance(create.target, TaskRef) else (create.target,)


@dataclass(slots=True)
class StoredState:
    """The job state last stored, as far as this process has observed it."""

    state: JobState  # the last one known to be stored
    is_unknown: bool = False  # a write has no response, or failed: the job is read again before the next pass
    unwritten_since: datetime | None = None  # when the state began to differ from the stored one

    def includes(self, state: JobState, memory: Memory) -> bool:
        """Whether there is nothing to write: what a compact job state leaves out may differ."""
        return state is self.state or compact_state(state, memory) == compact_state(self.state, memory)


@dataclass(slots=True)
class PendingEvents:
    """Notifications that become Events once the job state they are about is stored."""

    notifications: tuple[Notification, ...] = ()
    closed_gates: frozenset[tuple[str, str]] = frozenset()  # reasons and topics that have had an Event

    def add(self, notifications: Iterable[Notification]) -> None:
        self.notifications += tuple(notifications)

    def add_closed_gates(self, gates: Iterable[GateStatus]) -> None:
        """Gates that closed since the last pass, where users should see them."""
        closed = {(gate.reason, gate.topic or gate.message): gate.message for gate in gates if gate.reason}
        fresh, self.closed_gates = closed.keys() - self.closed_gates, frozenset(closed)
        self.add(
            Notification("", Message("GateClosed", {"cause": closed[reason, topic]}), warning=True, own_reason=reason)
            for reason, topic in sorted(fresh)
        )

    def take(self) -> tuple[Notification, ...]:
        taken, self.notifications = self.notifications, ()
        return taken


@dataclass(slots=True)
class JobCacheEntry:
    """A job that has not ended, or whose end is not complete; by uid."""

    manifest: Obj  # the newest version of the job: of the informer or of a response
    state: JobState  # the job state of the last pass
    stored: StoredState  # what of it is stored
    backoff: CreateBackoff
    expectations: Expectations = field(default_factory=Expectations)
    own_writes: OwnWrites = field(default_factory=OwnWrites)
    events: PendingEvents = field(default_factory=PendingEvents)
    parsed: tuple[object, Job | None] | None = None  # the inputs the manifest was parsed from, and the result
    timer: Timer | None = None  # when the next pass is due without an event
    reported_phase: str = ""  # the phase it is counted under in the metrics

    @property
    def uid(self) -> str:
        return uid_of(self.manifest)

    def observe(self, manifest: Obj) -> None:
        """A version arrived; it may be older than that of a response."""
        if version_of(manifest) >= version_of(self.manifest):
            self.manifest = manifest

    def observe_event(self, manifest: Obj) -> bool:
        """An event of the job arrived. Returns whether it is news, and not the echo of our own write."""
        if not self.own_writes.is_own_version(manifest["metadata"]["resourceVersion"]):
            return True
        self.observe(manifest)  # one object instead of two that are equal
        return False

    def job(self, parse: Callable[[Obj], Job | None]) -> Job | None:
        """What the manifest describes, parsed again only when its inputs have changed."""
        inputs = job_inputs(self.manifest)
        if self.parsed is None or self.parsed[0] != inputs:
            self.parsed = (inputs, parse(self.manifest))
        return self.parsed[1]

    def reload(self, manifest: Obj, stored: JobState) -> None:
        """The stored job state was read after a write without a response: it is the next pass's, and what it does not
        include is expected still."""
        self.expectations.drop_stored(self.state, stored)
        state = with_unobserved_creates(stored, self.state)
        self.manifest, self.state, self.stored = manifest, state, StoredState(state)

    def end_pass(self, state: JobState) -> None:
        """The pass's job state is written, or waits to be."""
        self.state = state
        self.expectations.end_pass(is_stored=self.stored.unwritten_since is None)

    def to_finished(self, cached: Obj) -> FinishedJob | None:
        """What remains to be kept of a job that ended; None while there is more to do or to observe."""
        is_written = not self.stored.is_unknown and self.stored.unwritten_since is None
        is_reported = not self.events.notifications and not self.events.closed_gates
        if not (self.state.is_ended and is_written and is_reported and self.expectations.is_satisfied):
            return None
        if version_of(cached) < version_of(self.manifest):
            return None
        return FinishedJob(self.uid, self.reported_phase, self.timer)

    def set_timer(self, timer: Timer | None) -> None:
        self.cancel_timer()
        self.timer = timer

    def cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that ended: there may be thousands of them. Its next pass begins with the stored job state, like the first
    one of a process."""

    uid: str
    reported_phase: str
    timer: Timer | None  # a finished job may wait to be deleted

    def cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class JobCache:
    """The jobs of one dialect that have had a pass, by key; each either active or finished."""

    def __init__(self) -> None:
        self.active: dict[Key, JobCacheEntry] = {}
        self.finished: dict[Key, FinishedJob] = {}

    def __iter__(self) -> Iterator[JobCacheEntry | FinishedJob]:
        yield from self.active.values()
        yield from self.finished.values()

    def remove_former(self, key: Key, current: Obj | None) -> JobCacheEntry | FinishedJob | None:
        """Remove, and return, a job that was deleted or replaced by the `current` one of its name."""
        former = self.active.get(key) or self.finished.get(key)
        if former is None or (current is not None and uid_of(current) == former.uid):
            return None
        self.active.pop(key, None)
        self.finished.pop(key, None)
        former.cancel_timer()
        return former

    def release_finished(self, key: Key, cached: Obj | None) -> None:
        """Keep little of a job that ended, once the informer's version, `cached`, shows all of it."""
        finished = self.active[key].to_finished(cached) if cached is not None else None
        if finished is not None:
            self.finished[key] = finished
            del self.active[key]


def job_inputs(manifest: Obj) -> object:
    """What a job is read from: everything but the status. A change of the spec shows in the generation."""
    meta = manifest["metadata"]
    return meta.get("generation"), meta.get("deletionTimestamp"), meta.get("labels"), meta.get("annotations")


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
