"""Emits Events about a pod, without delaying the caller.

Events are sent one after another in the background: a slow or refusing API delays no container.
"""

from __future__ import annotations

import asyncio

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder, object_reference
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.logs import Logger

log = Logger(__name__)

MAX_QUEUED = 1000


class Events:
    """`emit` never waits; `run` in a task carries the notes out in order."""

    def __init__(self, recorder: EventRecorder | None) -> None:
        self._recorder = recorder
        self._queue: asyncio.Queue[tuple[Obj, str, str, str, str]] = asyncio.Queue(MAX_QUEUED)

    def emit(self, pod: Obj, reason: str, message: str, *, container: str = "", warning: bool = False) -> None:
        """Say that `reason` happened to the pod, or to one of its containers."""
        if self._recorder is None or self._queue.full():
            return
        field_path = f"spec.containers{{{container}}}" if container else ""
        about = object_reference(pod, field_path)  # the pod itself may be long gone when the event is sent
        self._queue.put_nowait((about, WARNING if warning else NORMAL, reason, message, field_path))

    async def run(self) -> None:
        while True:
            about, severity, reason, message, field_path = await self._queue.get()
            assert self._recorder is not None
            try:
                await self._recorder.record(about, severity, reason, message, field_path=field_path)
            except (ApiError, OutcomeUnknown, OSError) as refused:
                log.info("event not recorded", reason=reason, message=message, error=str(refused))
