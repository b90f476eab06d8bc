"""The types of the engine: what can happen to a task or a run, how it ended, and what may be done about it.

Nothing here depends on a dialect. A dialect uses these types to express what its manifest requests (policies.py,
model.py) and to read the result (state.py). Codes, phrases and texts are the dialect's and are carried in an Outcome;
the engine reads only the failure class and `final`.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum, IntEnum
from typing import Any

import msgspec

from shoal.kube.messages import Message


class TaskRef(msgspec.Struct, frozen=True, gc=False, order=True):
    """One place in a role. Pods with random names have no index of their own; the engine numbers them."""

    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"


class FailureClass(Enum):
    """What an end means for a retry. The order of the letters in a retry word is that of the members."""

    OK = "ok"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"
    PERMANENT = "permanent"
    LOST = "lost"
    CONFLICT = "conflict"  # transient, and better not tried again at once

    @property
    def is_ok(self) -> bool:
        return self is FailureClass.OK


class Trigger(msgspec.Struct, frozen=True, gc=False):
    """The task whose end decided about the run, and the rule it satisfied."""

    role: str
    index: int
    text: str = ""  # `messages.describe_trigger` shows it


class ContainerEnd(msgspec.Struct, frozen=True, gc=False):
    """How one container ended, as the outcome of its task remembers it."""

    name: str
    code: int
    reason: str = ""
    message: str = ""
    signal: int = 0


class Detail(msgspec.Struct, frozen=True, gc=False):
    """What the pod's status reports about its end; kept with the outcome because the pod will be gone."""

    reason: str = ""
    message: str = ""
    containers: tuple[ContainerEnd, ...] = ()


class Outcome(msgspec.Struct, frozen=True, gc=False, rename={"failure_class": "nature"}):
    """How an attempt, a run or a job ended. Written once, never changed."""

    failure_class: FailureClass
    code: int = 0
    phrase: str = ""
    text: str = ""
    attributes: tuple[str, ...] = ()  # the dialect's own refinement of the class, kept for its report
    final: bool = False  # never retried (a stop, a cut, a dropped task)
    trigger: Trigger | None = None
    detail: Detail | None = None

    @property
    def is_ok(self) -> bool:
        return self.failure_class is FailureClass.OK

    @property
    def label(self) -> str:
        return f"{self.phrase} (code {self.code})" if self.code else self.phrase

    def because_of(self, trigger: Trigger) -> Outcome:
        return msgspec.structs.replace(self, trigger=trigger, detail=None)

    def blaming(self, trigger: Trigger, code: int) -> Outcome:
        """With the task that brought it about, and that task's code where it has one."""
        return msgspec.structs.replace(self, trigger=trigger, detail=None, code=code or self.code)


class EventType(Enum):
    """Kinds of events a reaction may name. ANY is used in rules only."""

    TASK_PENDING = "task pending"  # only with a delay, counted from the pod's creation
    TASK_FAILED = "task failed"
    TASK_LOST = "task lost"
    ROLE_SUCCEEDED = "role succeeded"
    ROLE_EXHAUSTED = "role exhausted"  # its containers used up their restarts in place
    GROUP_UNKNOWN = "group unknown"
    GROUP_EVICTED = "group evicted"
    STORE_LOST = "store lost"
    ROUND_CLOSED = "round closed"
    GROUP_DONE = "group done"
    COMMAND = "command"
    ANY = "any"


class Event(msgspec.Struct, frozen=True, gc=False):
    """A fact that is not processed yet."""

    kind: EventType
    at: datetime
    role: str = ""
    index: int = -1
    uid: str = ""  # the pod, group or signal it is about
    code: int | None = None

    @property
    def subject(self) -> str:
        """The task it is about, else the role, else nothing."""
        return f"{self.role}-{self.index}" if self.index >= 0 else self.role


class Action(Enum):
    """What a reaction or a command may request."""

    RESTART_TASK = "restart task"
    RESTART_PARTITION = "restart partition"
    RESTART_ROLE = "restart role"
    RESTART_RUN = "restart run"
    HOLD = "hold"
    RELEASE = "release"
    COMPLETE = "complete"
    FAIL = "fail"
    TERMINATE = "terminate"


RESTARTS = frozenset({Action.RESTART_TASK, Action.RESTART_PARTITION, Action.RESTART_ROLE, Action.RESTART_RUN})


ENDINGS = frozenset({Action.COMPLETE, Action.FAIL, Action.TERMINATE})


class Intent(IntEnum):
    """Why a run is closed. It only rises; a release alone lowers HOLD to RESTART."""

    RESTART = 1
    HOLD = 2
    END = 3


class Stage(IntEnum):
    """The stages of a task attempt and of a run; a later stage is a larger number."""

    WAITING = 0  # wanted, not created
    REQUESTED = 1  # created, not seen yet
    PREPARING = 2  # there, not running
    RUNNING = 3
    CLOSING = 4  # its end is decided and stored, no delete was sent
    DELETION_REQUESTED = 5  # the delete was accepted
    LEAVING = 6  # has a deletion timestamp
    OVER = 7  # gone; the next step is not decided
    DONE = 8  # final


class Notice(msgspec.Struct, frozen=True, gc=False):
    """What the job state is about to drop; emitted before the job state is written, at least once."""

    kind: NoticeKind
    role: str = ""
    record: Any = None  # the TaskState or JobState as it was


class NoticeKind(Enum):
    TASK_RETRY = "task retry"
    TASK_REMOVED = "task removed"
    JOB_RETRY = "job retry"


class BudgetCharge(msgspec.Struct, frozen=True, gc=False):
    """One unit taken from the budgets of a job, and what it was taken for.

    `cause` is the same whenever the same thing is charged, so that a double charge is detected; it is empty where the
    event carries no identity, such as the loss of a pod that was never observed.
    """

    cause: str
    scopes: tuple[str, ...] = ()  # counters of the job: "" for itself, else a role's name
    task: TaskRef | None = None  # whose own counter rose


class Notification(msgspec.Struct, frozen=True):
    """A message for an Event. `subject` is a task such as worker-3, a role, or '' for the job itself."""

    subject: str
    message: Message
    warning: bool = False
    own_reason: str = ""  # of the Event, where a job language has a word of its own for it

    @property
    def reason(self) -> str:
        return self.own_reason or self.message.reason


class PodNames(Enum):
    INDEX = "index"  # one name per task for life
    RANDOM = "random"  # a fresh name per pod; several pods of one task may overlap


class Memory(Enum):
    RECORD = "record"  # every task whole: uid, stage, times (the job state is the status)
    LEVEL = "level"  # nothing about living pods: an absent one is created again, free
    ROSTER = "roster"  # which tasks had a pod in this run: an absent one is a loss
    FINALIZER = "finalizer"  # finished pods stay until counted


class KeepPods(Enum):
    """Which pods are kept."""

    NONE = "none"
    FINISHED = "finished"
    ALL = "all"


class Lifetime(Enum):
    TASK = "task"
    RUN = "run"
    UNTIL_END = "until end"
    UNTIL_DELETED = "until deleted"


BAD = Outcome(FailureClass.UNKNOWN, code=1, phrase="Failed")


GOOD = Outcome(FailureClass.OK, phrase="Succeeded")


POD_OK = Outcome(FailureClass.OK, phrase="Succeeded", text="Pod succeeded")


POD_LEAVING = Outcome(FailureClass.LOST, phrase="Lost", text="The pod is being deleted by others")


POD_GONE = Outcome(FailureClass.LOST, phrase="Lost", text="The pod was deleted by others")


POD_UNSEEN = Outcome(FailureClass.LOST, phrase="Unseen", text="The pod was created and never seen")


TOO_LARGE = Outcome(
    FailureClass.PERMANENT, code=1, phrase="Failed", final=True,
    text="The state of the job is too large to be stored in its object",
)  # fmt: skip


DROPPED = Outcome(FailureClass.PERMANENT, phrase="Dropped", text="The task was scaled away", final=True)
