"""Messages that several steps of a plan make, and parts of them. Their texts are in `shoal.scheduler.messages`."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.kube.messages import Message

NO_PLACE = Message("Resources.NoPlace")


def waiting(cause: Message) -> Message:
    return Message("Waiting", {"cause": cause})


def all_of(parts: Sequence[Message]) -> Message:
    """Several causes as one; at least one is given."""
    return parts[0] if len(parts) == 1 else Message("All", {"parts": list(parts)})


def pods(count: int) -> Message:
    return Message("Pods.One") if count == 1 else Message("Pods", {"count": count})


def behind(group: str, queue: str) -> Message:
    """Another group precedes in a queue that serves strictly in order."""
    return Message("Turn.Behind", {"group": group, "queue": queue})


def queue_missing(queue: str) -> Message:
    return Message("Queue.Missing", {"queue": queue})


def undone(pods: int) -> Message:
    """Of a gang of so many pods, of which some were bound and the rest never."""
    return Message("Undone", {"count": pods})
