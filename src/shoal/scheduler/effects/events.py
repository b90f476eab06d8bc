"""Events of the scheduler, whose messages are data until here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.event_recorder import EventRecorder
from shoal.kube.errors import ApiError
from shoal.kube.messages import Message, to_annotation
from shoal.scheduler.messages import text


async def record(
    recorder: EventRecorder,
    regarding: Mapping[str, Any],
    severity: str,
    reason: str,
    message: Message,
    *,
    at: datetime | None = None,
) -> None:
    """An Event with the message as text and, for programs, as code and parameters."""
    with suppress(ApiError, OutcomeUnknown, OSError):  # what it reports has happened, even without Event
        await recorder.record(regarding, severity, reason, text(message), at=at, annotations=to_annotation(message))
