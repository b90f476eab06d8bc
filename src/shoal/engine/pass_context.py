"""The context of a pass: each task's pod, strays, losses, refusals, and the messages of the pass.

Created by step 1 (pod_matching.py) and used by the steps after it. Facts stay as they were matched; only messages and
notices are added later.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from shoal.engine.observed import Observed, ObservedPod, ObservedRunOwner, Refused
from shoal.engine.state import JobState, SettledReason, TaskState
from shoal.engine.types import BudgetCharge, Notice, NoticeKind, Notification, TaskRef
from shoal.kube.messages import Message

if TYPE_CHECKING:
    from shoal.engine.model import Job, Role


TaskKey = tuple[str, int]


Tasks = dict[str, dict[int, TaskState]]  # changes to tasks by role and index


class PassContext:
    """The observations of one pass, matched to tasks, and the messages of the pass so far."""

    __slots__ = (
        "charges",
        "ended_attempts",
        "gone",
        "job",
        "losses",
        "notices",
        "notifications",
        "now",
        "observed",
        "pods",
        "refused",
        "released",
        "requeue",
        "roles",
        "run_owner",
        "settled_pods",
        "sizes",
        "stamp",
        "stray_run_owner",
        "strays",
        "total",
        "used_names",
    )

    def __init__(self, job: Job, observed: Observed, now: datetime) -> None:
        self.job = job
        self.observed = observed
        self.now = now
        self.stamp = now.replace(microsecond=0)  # what is stored: whole seconds
        self.roles: dict[str, Role] = {role.name: role for role in job.roles}
        self.pods: dict[TaskKey, ObservedPod] = {}  # each task's own pod
        self.strays: list[ObservedPod] = []  # ours, and of no current attempt
        self.settled_pods: list[ObservedPod] = []  # ours, and settled
        self.used_names: set[TaskKey] = set()  # places whose name is not free
        self.losses: list[TaskRef] = []  # missing pods whose deletion was not requested
        self.ended_attempts: list[TaskRef] = []  # attempts to be retried or done
        self.run_owner: ObservedRunOwner | None = None
        self.stray_run_owner: ObservedRunOwner | None = None  # has the run owner's name, but is not the run's
        self.gone: set[tuple[object, str]] = set()  # confirmed by a live read
        self.refused: dict[TaskRef, Refused] = {}
        self.sizes: dict[str, int] = {}
        self.total = 0
        self.requeue = False  # another pass is due at once
        self.released = False  # a hold was lifted in this pass
        self.notifications: list[Notification] = []
        self.notices: list[Notice] = []
        self.charges: list[BudgetCharge] = []

    def emit(self, subject: str, code: str, *, warning: bool = False, **parameters: Any) -> None:
        """An Event about a task, a role, or the job (``). Its text is made from the catalog, when it is sent."""
        self.notifications.append(Notification(subject, Message(code, parameters), warning))

    def charge(self, cause: str, *scopes: str, task: TaskRef | None = None) -> None:
        """Account for counters that rise in this pass."""
        self.charges.append(BudgetCharge(cause, scopes, task))

    def notify(self, kind: NoticeKind, role: str, record: TaskState | JobState) -> None:
        self.notices.append(Notice(kind, role, record))


def settle_pods(state: JobState, context: PassContext, settled: dict[str, SettledReason]) -> JobState:
    """These pods raise no more events and are matched to no task."""
    for uid, why in settled.items():
        pod = context.pods.get((why.role, why.index))
        if pod is not None and pod.uid == uid:
            context.settled_pods.append(context.pods.pop((why.role, why.index)))
    return state.settle(settled)
