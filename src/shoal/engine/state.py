"""What must survive a crash: one small record per job, changed only by methods named after what happened.

Records are immutable; a change returns a new record and shares the unchanged fields, so that "nothing changed" is an
identity test. They are msgspec structs rather than dataclasses because a pass over a thousand tasks copies thousands of
them and a struct is copied ten times as fast (`gc=False`: records hold no cycles). Times are whole seconds in UTC.

`compact_state` returns what a compact job state stores (ranges, counters, settled pods); the rest is restored from the
observed pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from shoal.engine.types import Action, EventType, Intent, Memory, Outcome, Stage, TaskRef

_NOTHING: Mapping[str, Any] = {}


class AttemptState(msgspec.Struct, frozen=True, gc=False):
    """One try of a task: one pod, identified by uid."""

    number: int = 0
    started: datetime | None = None
    ran: datetime | None = None
    completed: datetime | None = None
    uid: str | None = None
    node: str | None = None  # None until the pod was observed
    ip: str | None = None
    host_ip: str | None = None
    outcome: Outcome | None = None


class TaskState(msgspec.Struct, frozen=True, gc=False):
    """One place in a role and its current attempt."""

    index: int
    instance: str = ""  # a uuid; a task dropped and added again gets another
    stage: Stage = Stage.WAITING
    since: datetime | None = None  # of the stage
    started: datetime | None = None
    ran: datetime | None = None
    completed: datetime | None = None
    dropped: bool = False  # scaled away; never cleared
    charged: int = 0  # retries that cost budget; attempt.number counts all
    had_pod: bool = False  # had a pod in this run that is not accounted for yet
    reclaimed: bool = False  # its last pod was reclaimed, and it has not run since
    not_before: datetime | None = None  # a delayed retry
    attempt: AttemptState = AttemptState()

    @property
    def outcome(self) -> Outcome | None:
        return self.attempt.outcome

    @property
    def uid(self) -> str | None:
        return self.attempt.uid

    @property
    def is_done(self) -> bool:
        return self.stage is Stage.DONE

    def at(self, stage: Stage, now: datetime) -> TaskState:
        """On that stage; the stamps that belong to it are set. The same stage again changes nothing."""
        if stage is self.stage:
            return self
        if stage is Stage.RUNNING:
            attempt = replace(self.attempt, ran=now)
            return replace(self, stage=stage, since=now, attempt=attempt, ran=self.ran or now, reclaimed=False)
        if stage is Stage.OVER:
            return replace(self, stage=stage, since=now, attempt=replace(self.attempt, completed=now))
        if stage is Stage.DONE:
            return replace(self, stage=stage, since=now, completed=now)
        return replace(self, stage=stage, since=now)

    def with_outcome(self, outcome: Outcome) -> TaskState:
        """The attempt's outcome; the first one stays."""
        if self.attempt.outcome is not None:
            return self
        return replace(self, attempt=replace(self.attempt, outcome=outcome))

    def with_pod(self, uid: str) -> TaskState:
        return replace(self, had_pod=True, attempt=replace(self.attempt, uid=uid))

    def retried(self, now: datetime, *, charged: bool, not_before: datetime | None = None) -> TaskState:
        """The next attempt, waiting for its pod."""
        return replace(
            self,
            stage=Stage.WAITING,
            since=now,
            completed=None,
            charged=self.charged + charged,
            had_pod=False,
            not_before=not_before,
            attempt=AttemptState(number=self.attempt.number + 1, started=now),
        )

    def after_reclaim(self, now: datetime) -> TaskState:
        """The next attempt, waiting for room: its pod was deleted to make room for others."""
        return replace(self.retried(now, charged=False), reclaimed=True)

    def without_outcome(self) -> TaskState:
        """The same attempt without the outcome it was about to get."""
        return replace(self, attempt=replace(self.attempt, outcome=None))

    def drop(self, outcome: Outcome, now: datetime) -> TaskState:
        """Scaled away: it does not count any more, and its pod is deleted."""
        dropped = replace(self.with_outcome(outcome), dropped=True)
        return dropped.at(Stage.CLOSING, now) if Stage.PREPARING <= self.stage <= Stage.RUNNING else dropped

    def compact(self, memory: Memory) -> TaskState:
        """What a compact job state stores of it."""
        return TaskState(
            self.index,
            stage=Stage.DONE if self.is_done else Stage.WAITING,
            dropped=self.dropped,
            charged=self.charged,
            had_pod=self.had_pod and memory is Memory.ROSTER,
            reclaimed=self.reclaimed,
            not_before=self.not_before,
            attempt=AttemptState(outcome=self.attempt.outcome if self.is_done else None),
        )

    def without_pod(self, now: datetime) -> TaskState:
        """The same attempt without a pod, where its absence is no loss."""
        return replace(
            self, stage=Stage.WAITING, since=now, had_pod=False, attempt=replace(self.attempt, uid=None, node=None)
        )


class RoleState(msgspec.Struct, frozen=True, gc=False):
    """A role's tasks, by rising index."""

    name: str
    instance: str = ""
    force_after_seconds: int | None = None  # the spec's value, kept for when the role leaves the spec
    tasks: tuple[TaskState, ...] = ()
    ok_count: int = 0  # finished members without a place of their own (random names)
    bad_count: int = 0

    def find(self, index: int) -> TaskState | None:
        if 0 <= index < len(self.tasks) and self.tasks[index].index == index:
            return self.tasks[index]
        return next((task for task in self.tasks if task.index == index), None)

    def finish(self, now: datetime) -> RoleState:
        """All tasks done, where nothing is left of the run."""
        if all(task.is_done for task in self.tasks):
            return self
        tasks = [task if task.is_done else task.at(Stage.OVER, now).at(Stage.DONE, now) for task in self.tasks]
        return replace(self, tasks=tuple(tasks))


class Run(msgspec.Struct, frozen=True, gc=False, rename={"run_owner": "anchor"}):
    """One try of the whole job. `intent` is set when it closes and holds the reason."""

    number: int = 0
    stage: Stage = Stage.WAITING
    since: datetime | None = None
    started: datetime | None = None
    ran: datetime | None = None
    completed: datetime | None = None
    run_owner: str | None = None  # uid of the object that owns the pods
    intent: Intent | None = None
    outcome: Outcome | None = None
    delay_seconds: int | None = None  # over, and the next run is decided: it opens this long after `since`
    at_deadline: bool = False  # closed by the deadline
    held: bool = False  # closed for a hold, also after its release

    @property
    def is_open(self) -> bool:
        return self.intent is None

    @property
    def is_ended(self) -> bool:
        return self.stage is Stage.DONE

    def released(self, *, counts: bool) -> Run:
        """The hold is lifted; the next run opens once this one has drained."""
        return replace(self, intent=Intent.RESTART, outcome=None, number=self.number + counts)

    def at(self, stage: Stage, now: datetime) -> Run:
        if stage is self.stage:
            return self
        if stage is Stage.RUNNING:
            return replace(self, stage=stage, since=now, ran=self.ran or now)
        if stage is Stage.OVER:
            return replace(self, stage=stage, since=now, completed=now)
        return replace(self, stage=stage, since=now)


class SettledReason(msgspec.Struct, frozen=True, gc=False):
    """Why a subject is settled, and for which task: it can raise nothing more."""

    role: str
    index: int
    reason: str  # restart, retry, dropped, counted, latched, given
    ok: bool | None = None


class DelayedAction(msgspec.Struct, frozen=True, gc=False):
    """A reaction that waits for its time."""

    at: datetime
    action: Action
    event: EventType
    role: str = ""
    index: int = -1
    uid: str = ""
    outcome: Outcome | None = None

    def lapses(self, state: JobState) -> bool:
        """Whether the task that failed or was lost runs again, or was dropped."""
        if self.index < 0:
            return False
        task = state.task(TaskRef(self.role, self.index))
        return task is None or task.dropped or (task.stage is Stage.RUNNING and task.uid != self.uid)


class Round(msgspec.Struct, frozen=True, gc=False):
    """The published group: rises when its members change or a new round is requested."""

    number: int = 0
    members: tuple[tuple[str, int, str], ...] = ()  # role, index, uid of the pod in rank order
    asked: str = ""  # the last signal that requested a round


class Stamps(msgspec.Struct, frozen=True, gc=False):
    """Times of the job itself, over all its runs."""

    started: datetime | None = None
    ran: datetime | None = None
    clock_from: datetime | None = None  # all pods of the run were created
    held: datetime | None = None  # last held since; set means it has been held at least once
    ended: datetime | None = None


class JobState(msgspec.Struct, frozen=True, gc=False):
    """The state of one job. `JobState()` is that of a job not processed yet."""

    run: Run = Run()
    roles: tuple[RoleState, ...] = ()
    charges: Mapping[str, int] = _NOTHING  # "" for the job, else a role's name
    settled: Mapping[str, SettledReason] = _NOTHING  # by uid of a pod, or a latch such as role:worker
    due: Mapping[str, DelayedAction] = _NOTHING
    handled: tuple[str, ...] = ()  # uids of commands whose effect is in here
    stamps: Stamps = Stamps()
    round: Round = Round()
    frozen: Mapping[str, int] = _NOTHING
    memo: Any = None  # the guard's

    @property
    def is_new(self) -> bool:
        return self.stamps.started is None

    @property
    def is_ended(self) -> bool:
        return self.run.is_ended

    @property
    def is_held(self) -> bool:
        return self.run.intent is Intent.HOLD

    @property
    def charged(self) -> int:
        return self.charges.get("", 0)

    def role(self, name: str) -> RoleState | None:
        return next((role for role in self.roles if role.name == name), None)

    def task(self, ref: TaskRef) -> TaskState | None:
        role = self.role(ref.role)
        return role.find(ref.index) if role else None

    def with_tasks(self, changed: Mapping[str, Mapping[int, TaskState]]) -> JobState:
        """The given tasks replaced, all at once; roles without a change stay the same objects."""
        if not changed:
            return self
        roles = []
        for role in self.roles:
            if tasks := changed.get(role.name):
                role = replace(role, tasks=tuple([tasks.get(task.index, task) for task in role.tasks]))
            roles.append(role)
        return replace(self, roles=tuple(roles))

    def with_charge(self, *scopes: str) -> JobState:
        charges = dict(self.charges)
        for scope in scopes:
            charges[scope] = charges.get(scope, 0) + 1
        return replace(self, charges=charges)

    def with_charges(self, charges: Mapping[str, int]) -> JobState:
        return replace(self, charges=charges)

    def settle(self, subjects: Mapping[str, SettledReason]) -> JobState:
        """These can raise nothing more; subjects settled before stay as they were."""
        fresh = {uid: why for uid, why in subjects.items() if uid not in self.settled}
        return replace(self, settled={**self.settled, **fresh}) if fresh else self

    def unsettle(self, subjects: Iterable[str]) -> JobState:
        gone = set(subjects) & self.settled.keys()
        if not gone:
            return self
        return replace(self, settled={uid: why for uid, why in self.settled.items() if uid not in gone})

    def close(self, intent: Intent, now: datetime, outcome: Outcome | None = None) -> JobState:
        """The run closes, or the reason it is closed for rises; delayed reactions lapse."""
        run = self.run
        if run.intent is not None and run.intent >= intent:
            return self
        # A run without a run owner yet, or one that rests drained, keeps its stage and only gets the reason.
        stage = Stage.CLOSING if Stage.PREPARING <= run.stage <= Stage.RUNNING else run.stage
        closed = replace(run, intent=intent, outcome=outcome or run.outcome, delay_seconds=None)
        return replace(self, run=closed.at(stage, now), due=_NOTHING if self.due else self.due)


def format_ranges(indexes: Iterable[int]) -> str:
    """Rising indexes as text: `0-3,7`."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def format_tasks(role: str, indexes: Iterable[int]) -> str:
    """Tasks as people list them: `worker-0 to worker-3 and worker-7`."""
    parts = []
    for span in format_ranges(indexes).split(","):
        low, _, high = span.partition("-")
        is_pair = bool(high) and int(high) == int(low) + 1
        ends = [f"{role}-{index}" for index in (low, high) if index]
        parts += ends if is_pair else [" to ".join(ends)]
    return ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]


def parse_ranges(text: str, *, most: int) -> tuple[int, ...]:
    """The indexes that `format_ranges` wrote. Raises ValueError where there are more than `most`, before it unfolds
    them.
    """
    spans: list[range] = []
    for span in filter(None, text.split(",")):
        low, _, high = span.partition("-")
        spans.append(range(int(low), int(high or low) + 1))
        most -= max(spans[-1].stop - spans[-1].start, 0)  # len() has a limit of its own
        if most < 0:
            raise ValueError(f"its ranges name too many indexes, the last of them {span[:40]}")
    return tuple(index for span in spans for index in span)


def compact_state(state: JobState, memory: Memory) -> JobState:
    """The job state kept under that memory: everything for RECORD, else only tasks with notable state."""
    if memory is Memory.RECORD:
        return state
    roles = []
    for role in state.roles:
        tasks = [task.compact(memory) for task in role.tasks]
        notable = [
            task
            for task in tasks
            if task.is_done or task.dropped or task.had_pod or task.reclaimed or task.charged or task.not_before
        ]
        roles.append(replace(role, tasks=tuple(notable)))
    return replace(state, roles=tuple(roles))
