"""The result of a pass, a Step: the new job state, rated by what would be lost with it, and the writes to execute.

Writes are abstract: they name what, the dialect builds the object upon execution. Their order is the order of
execution: marks and finalizers, deletes, run owner and groups, owned objects, pods, then what ends the job object
itself. The job state is stored before the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from shoal.engine.observed import Target
from shoal.engine.state import JobState, RoleState, TaskState
from shoal.engine.types import BudgetCharge, Notice, Notification, TaskRef

if TYPE_CHECKING:
    from shoal.engine.timeouts import Propagation


class StateChange(IntEnum):
    """What a job state contains that an older one did not, by how much depends on it."""

    FACTS = 0  # stages, their times and mirrored addresses: restored by observing the pods
    CREATIONS = 1  # also uids of a new run owner and new pods: after a crash these are adopted by their stamps
    DECISIONS = 2  # an outcome, a charge, a drop, an intent


class BuildContext(msgspec.Struct, frozen=True, gc=False):
    """The values shared by everything built in one pass. The same object is shared by all writes of a step."""

    run: int = 0
    run_owner: str = ""  # uid of the run owner
    sizes: Mapping[str, int] = {}
    charged: int = 0  # the job's own charges so far
    resumed: bool = False  # the job has been held before
    round: int = 0
    frozen: Mapping[str, int] = {}


class Create(msgspec.Struct, frozen=True, gc=False):
    """Create the pod of a task, or the run owner. The result is Created or Refused."""

    target: Target
    build_context: BuildContext
    attempt: int = 0
    instance: str = ""  # of the task
    role_instance: str = ""
    rank: int = 0  # position among all tasks, roles in order
    failures: int = 0  # charged so far; annotated on the pod under Memory.FINALIZER


class Apply(msgspec.Struct, frozen=True, gc=False):
    """Bring a group or owned object to its setting; the object carries the digest afterwards."""

    target: Target
    build_context: BuildContext
    digest: str = ""


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Delete exactly that uid ('' with `confirm`: whatever of ours is found under the name).

    `confirm` requires a live read that it is gone, with the result Gone; otherwise the result is Accepted.
    """

    target: Target
    uid: str = ""
    grace_seconds: int | None = None
    propagation: Propagation | None = None
    confirm: bool = False


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Mark a pod before it is deleted."""

    target: TaskRef
    uid: str


class RemoveFinalizer(msgspec.Struct, frozen=True, gc=False):
    """Remove our finalizer from a pod that is counted."""

    target: TaskRef
    uid: str


class PatchPod(msgspec.Struct, frozen=True, gc=False):
    """A guard's decoration."""

    uid: str
    patch: Mapping[str, Any]


Write = Create | Apply | Delete | Mark | RemoveFinalizer | PatchPod


class GateStatus(msgspec.Struct, frozen=True, gc=False):
    """Whether a role may get pods now, and the message why not."""

    role: str
    open: bool = True
    message: str = ""
    reason: str = ""  # of an Event about it; '': none is needed
    topic: str = ""  # an Event with another message about the same topic is not repeated; '': the message itself


class Step(msgspec.Struct, frozen=True, gc=False):
    """What one pass decided.

    Execute in this order: emit `notices`; store `state` in one conditional write if it differs from the one passed in;
    execute `writes`, collecting their results; publish status and `notifications`. With results, or if `requeue`, run
    another pass at once; else when something changes, or at `wake_at`. A rejected create is requested again by the pass
    after a back-off.

    `state_change` rates what would be lost with the new job state. Facts may wait for the next job state, at the price
    of a status that is a stage behind; creations may wait a moment, if their results are passed in again until they are
    stored.
    """

    state: JobState
    notices: tuple[Notice, ...] = ()
    writes: tuple[Write, ...] = ()
    notifications: tuple[Notification, ...] = ()
    gate_statuses: tuple[GateStatus, ...] = ()
    wake_at: datetime | None = None
    requeue: bool = False
    state_change: StateChange = StateChange.FACTS
    charges: tuple[BudgetCharge, ...] = ()  # why counters of the job state rose; for information only


def state_change(before: JobState, after: JobState) -> StateChange:
    """What `after` holds that would be lost with it. In doubt, a change is a decision."""
    if before is after:
        return StateChange.FACTS
    if len(before.roles) != len(after.roles) or _decided_run(before) != _decided_run(after):
        return StateChange.DECISIONS
    was, now = before.run.run_owner, after.run.run_owner
    change = StateChange.FACTS
    if was != now:
        change = StateChange.CREATIONS if was is None else StateChange.DECISIONS
    roles = zip(before.roles, after.roles, strict=True)
    return max((change, *(_diff_role(old, new) for old, new in roles if old is not new)))


def _decided_run(state: JobState) -> tuple[object, ...]:
    run, stamps = state.run, state.stamps
    return (
        (run.number, run.intent, run.outcome, run.delay_seconds, run.is_ended, run.held),
        (stamps.started, stamps.held, stamps.ended, stamps.clock_from),
        (state.charges, state.settled, state.due, state.handled, state.round, state.frozen, state.memo),
    )


def _diff_role(old: RoleState, new: RoleState) -> StateChange:
    if replace(old, tasks=()) != replace(new, tasks=()) or len(old.tasks) != len(new.tasks):
        return StateChange.DECISIONS
    change = StateChange.FACTS
    for was, now in zip(old.tasks, new.tasks, strict=True):
        if was is now:
            continue
        if _decided_task(was) != _decided_task(now):
            return StateChange.DECISIONS
        if (was.uid, was.had_pod) != (now.uid, now.had_pod):
            if was.uid is not None or not now.had_pod:
                return StateChange.DECISIONS
            change = StateChange.CREATIONS
    return change


def _decided_task(task: TaskState) -> tuple[object, ...]:
    return (
        (task.index, task.instance, task.dropped, task.charged, task.not_before, task.is_done),
        (task.attempt.number, task.attempt.outcome),
    )
