"""What a pass requests. Writes are abstract: they name what, the dialect builds the object upon execution.

The order in a step is the order of execution: marks and finalizers, deletes, run owner and groups, owned objects, pods,
then what ends the job object itself. The job state is stored before the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from shoal.engine.observed import Target
from shoal.engine.policies import Propagation
from shoal.engine.state import JobState
from shoal.engine.state_diff import StateChange
from shoal.engine.types import BudgetCharge, Notice, Notification, TaskRef


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
    failures: int = 0  # charged so far; rides on the body under Memory.FINALIZER


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
    """Put the mark of a doomed body on it before it is deleted."""

    target: TaskRef
    uid: str


class RemoveFinalizer(msgspec.Struct, frozen=True, gc=False):
    """Take our finalizer off a body that is counted."""

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
    topic: str = ""  # an Event with another message about the same topic is not news; '': the message itself


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
