"""Emits Events about a pod, without delaying the caller.

An Event has the text of its message, and the message itself in an annotation. Events are sent one after another in the
background: an API that is slow or rejects them delays no container.
"""

from __future__ import annotations

import asyncio

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder, object_reference
from shoal.kube.errors import ApiError
from shoal.kube.messages import Message, to_annotation
from shoal.kube.objects import Obj
from shoal.logs import Logger
from shoal.node.messages import CATALOG

log = Logger(__name__)

MAX_QUEUED = 1000


class Events:
    """`emit` never waits; `run` in a task sends the Events in order."""

    def __init__(self, recorder: EventRecorder | None) -> None:
        self._recorder = recorder
        self._queue: asyncio.Queue[tuple[Obj, str, Message, str]] = asyncio.Queue(MAX_QUEUED)

    def emit(self, pod: Obj, message: Message, *, container: str = "", warning: bool = False) -> None:
        """An Event about the pod, or about one of its containers; dropped when too many wait already."""
        if self._recorder is None or self._queue.full():
            return
        field_path = f"spec.containers{{{container}}}" if container else ""
        about = object_reference(pod, field_path)  # the pod itself may be long gone when the event is sent
        self._queue.put_nowait((about, WARNING if warning else NORMAL, message, field_path))

    async def run(self) -> None:
        while True:
            about, severity, message, field_path = await self._queue.get()
            assert self._recorder is not None
            text = CATALOG.text(message)
            try:
                await self._recorder.record(
                    about, severity, message.reason, text, field_path=field_path, annotations=to_annotation(message)
                )
            except (ApiError, OutcomeUnknown, OSError) as refused:
                log.info("event not recorded", reason=message.reason, message=text, error=str(refused))
