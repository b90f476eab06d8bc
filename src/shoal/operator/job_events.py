"""Emits the Events of jobs, and writes records of the history log.

Events are best effort: they wait in a queue of their own and are dropped when the cluster does not accept them. A
history record is written at the moment it is requested.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder, object_reference
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.capabilities import Snapshot
from shoal.engine import Notification
from shoal.engine.state import format_tasks
from shoal.kube.errors import ApiError
from shoal.kube.kinds import EVENT
from shoal.kube.messages import Message, to_annotation
from shoal.kube.objects import Obj
from shoal.operator.messages import CATALOG
from shoal.operator.write_results import WriteResults

MAX_QUEUE = 10_000
# One each per job or task, and redundant: that a run succeeded, and why, is reported when it begins to end.
_SHOWN_BY_STATUS = frozenset({"Started", "Running", "TaskSucceeded", "Succeeded"})

history = logging.getLogger("shoal.history")

History = Callable[[Snapshot], None]


def log_snapshot(snapshot: Snapshot) -> None:
    """One record of the history logger per snapshot; the program configures where it is written."""
    whole = msgspec.json.encode(snapshot.object).decode()
    history.info("%s: %s: ObjectSnapshot: %s", snapshot.about, snapshot.trigger, whole)


def withheld_messages(results: WriteResults) -> Iterator[Notification]:
    """Why pods were not even requested."""
    for role, first in {**results.barred, **results.quota_exceeded}.items():
        indexes = [ref.index for ref in results.withheld if ref.role == role]
        if indexes:
            parameters = {"target": str(first.target), "tasks": format_tasks(role, indexes), "cause": first.text}
            yield Notification(role, Message("CreatesWithheld", parameters), warning=True)


class EventEmitter:
    """Emits Events beside the passes, which do not wait for them."""

    def __init__(self, recorder: EventRecorder, metrics: Metrics) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._waiting: deque[tuple[Mapping[str, Any], Notification]] = deque(maxlen=MAX_QUEUE)
        self._added = asyncio.Event()

    def emit(self, job: Obj, notifications: tuple[Notification, ...]) -> None:
        about = object_reference(job)
        self._waiting.extend((about, each) for each in notifications if each.reason not in _SHOWN_BY_STATUS)
        if self._waiting:
            self._added.set()

    async def run(self) -> None:
        while True:
            await self._added.wait()
            self._added.clear()
            while self._waiting:
                about, notification = self._waiting.popleft()
                severity, message = WARNING if notification.warning else NORMAL, notification.message
                self._metrics.count_write(EVENT, "create")
                with suppress(ApiError, OutcomeUnknown, OSError):  # the status has it too
                    await self._recorder.record(
                        about, severity, notification.reason, CATALOG.text(message), annotations=to_annotation(message)
                    )
