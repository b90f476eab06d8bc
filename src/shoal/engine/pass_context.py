"""One pass's view of the world: each task's body, strays, losses, refusals, and what the pass has to say.

Made by step 1 (recognising.py) and used by the steps after it. Facts stay as they were recognised; only sentences
and notices are added on the way.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.engine.model import Job, Role
from shoal.engine.observed import Anchor, Body, Observed, Refused
from shoal.engine.state import JobState, TaskState
from shoal.engine.types import Charge, Notice, NoticeKind, Notification, TaskRef
from shoal.kube.messages import Message

Place = tuple[str, int]
Tasks = dict[str, dict[int, TaskState]]  # changes to tasks by role and index


class Scene:
    """One pass's view of the world, and what the pass has to say."""

    __slots__ = (
        "again",
        "anchor",
        "bodies",
        "charges",
        "doomed",
        "gone",
        "job",
        "losses",
        "notices",
        "notifications",
        "now",
        "observed",
        "over",
        "refused",
        "released",
        "roles",
        "sizes",
        "stamp",
        "stray_anchor",
        "strays",
        "taken",
        "total",
    )

    def __init__(self, job: Job, observed: Observed, now: datetime) -> None:
        self.job = job
        self.observed = observed
        self.now = now
        self.stamp = now.replace(microsecond=0)  # what is stored: whole seconds
        self.roles: dict[str, Role] = {role.name: role for role in job.roles}
        self.bodies: dict[Place, Body] = {}  # each task's own body
        self.strays: list[Body] = []  # ours, and of no current attempt
        self.doomed: list[Body] = []  # ours, and settled
        self.taken: set[Place] = set()  # places whose name is not free
        self.losses: list[TaskRef] = []  # bodies that are missing and nobody asked to go
        self.over: list[TaskRef] = []  # attempts to be answered: retry or done
        self.anchor: Anchor | None = None
        self.stray_anchor: Anchor | None = None  # under the anchor's name, and not the run's
        self.gone: set[tuple[object, str]] = set()  # confirmed by a live look
        self.refused: dict[TaskRef, Refused] = {}
        self.sizes: dict[str, int] = {}
        self.total = 0
        self.again = False  # another pass is due at once
        self.released = False  # a hold was lifted in this pass
        self.notifications: list[Notification] = []
        self.notices: list[Notice] = []
        self.charges: list[Charge] = []

    def emit(self, subject: str, code: str, *, warning: bool = False, **parameters: Any) -> None:
        """An Event about a task, a role, or the job (``). Its text is made from the catalog, when it is sent."""
        self.notifications.append(Notification(subject, Message(code, parameters), warning))

    def charge(self, cause: str, *scopes: str, task: TaskRef | None = None) -> None:
        """Account for counters that rise in this pass."""
        self.charges.append(Charge(cause, scopes, task))

    def tell(self, kind: NoticeKind, role: str, record: TaskState | JobState) -> None:
        self.notices.append(Notice(kind, role, record))
