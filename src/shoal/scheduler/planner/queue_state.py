"""Opening and closing queues, and what a queue may declare: pure rules, applied before anything is stored.

A closed queue takes no new groups and places no pods; what runs in it continues. Closing a queue closes those below it
and records for each that its parent did it; opening it again opens exactly those. A queue is *Closing* while it still
has groups. Every rejection states the fact and the way out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from shoal.kube.messages import Message
from shoal.kube.quantity_format import shown
from shoal.scheduler.planner.gang_types import Queue
from shoal.scheduler.planner.message_parts import queue_missing

ROOT = "root"
WEIGHT = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
DEFAULT = "default"
DEEPEST = 16


class QueueInvalid(ValueError):
    """The message is for the client that sent the request."""

    def __init__(self, message: Message) -> None:
        super().__init__(message.code)
        self.message = message


def state(queue: Queue, groups: int) -> str:
    """The word for the queue's status, given how many groups it has."""
    if queue.open:
        return "Open"
    return "Closing" if groups else "Closed"


def close(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    """The queues that change, as they will be: this one, and those below it that are open."""
    if name == ROOT:
        raise QueueInvalid(Message("Queue.RootStaysOpen"))
    found = _known(queues, name)
    changed = [replace(found, open=False, closed_by_parent=False)]
    below = [queue for queue in _below(queues, name) if queue.open]
    return changed + [replace(queue, open=False, closed_by_parent=True) for queue in below]


def reopen(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    """The queues that change: this one, and those below it that were closed with a parent."""
    found = _known(queues, name)
    parent = queues.get(found.parent)
    if parent is not None and parent.name != name and not parent.open:
        raise QueueInvalid(Message("Queue.ParentClosed", {"queue": name, "parent": parent.name}))
    return [replace(found, open=True, closed_by_parent=False), *_reopened(queues, name)]


def _reopened(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    """A queue closed by hand stays closed, and so do all below it."""
    opened: list[Queue] = []
    for queue in _children(queues, name):
        if queue.closed_by_parent:
            opened.append(replace(queue, open=True, closed_by_parent=False))
            opened += _reopened(queues, queue.name)
    return opened


def admit_group(queues: Mapping[str, Queue], name: str) -> None:
    """Whether a new group or job may name this queue."""
    queue = _known(queues, name)
    if not queue.open:
        raise QueueInvalid(Message("Queue.Closed", {"queue": name}))
    if any(True for _ in _children(queues, name)):
        raise QueueInvalid(Message("Queue.NotALeaf", {"queue": name}))


def admit_queue(queues: Mapping[str, Queue], queue: Queue, *, holds_pods: Iterable[str] = ()) -> None:
    """Whether a queue may be stored like this; `holds_pods` are the queues whose pods have nodes."""
    admit_alone(queue)
    parent = queues.get(queue.parent)
    if queue.name == ROOT or parent is None:
        if queue.parent != ROOT and queue.name != ROOT:
            raise QueueInvalid(Message("Queue.ParentMissing", {"queue": queue.name, "parent": queue.parent}))
        return
    if queue.name in _line(queues, queue.parent):
        raise _below_itself(queue)
    if len(_line(queues, queue.parent)) >= DEEPEST:
        raise QueueInvalid(Message("Queue.TooDeep", {"queue": queue.name, "most": DEEPEST}))
    if queue.parent in set(holds_pods):
        raise QueueInvalid(Message("Queue.ParentRunsPods", {"parent": queue.parent}))
    _check_family(queues, queue, parent)


def admit_alone(queue: Queue) -> None:
    """Check what a queue declares by itself, whatever others there are."""
    if queue.parent == queue.name != ROOT:
        raise _below_itself(queue)
    for resource in sorted({*queue.guarantee, *queue.deserved, *queue.capability}):
        _check_amounts(queue, resource)


def _below_itself(queue: Queue) -> QueueInvalid:
    return QueueInvalid(Message("Queue.BelowItself", {"queue": queue.name, "parent": queue.parent}))


def admit_deletion(queues: Mapping[str, Queue], name: str, *, holds_pods: Iterable[str] = ()) -> None:
    if name in (ROOT, DEFAULT):
        raise QueueInvalid(Message("Queue.AlwaysThere", {"queue": name}))
    children = sorted(queue.name for queue in _children(queues, name))
    if children:
        raise QueueInvalid(Message("Queue.HasChildren", {"queue": name, "children": children}))
    if name in set(holds_pods):
        raise QueueInvalid(Message("Queue.RunsPods", {"queue": name}))


def check_hierarchy(path: str, weights: str, others: Mapping[str, str]) -> tuple[Message | None, Message | None]:
    """What is wrong with a queue's hierarchy annotations, as a message for each; None where it is right.

    `path` is `root/sci/dev`, `weights` has one weight per step (`1/2/8`), `others` are the paths of the other queues.
    """
    if not path and not weights:
        return None, None
    steps, numbers = path.split("/"), weights.split("/")
    below = sorted(name for name, other in others.items() if other.startswith(f"{path}/"))
    wrong_path: Message | None = None
    wrong_weights: Message | None = None
    if not all(steps):
        wrong_path = Message("Hierarchy.EmptyStep", {"path": path})
    elif below:
        wrong_path = Message("Hierarchy.NotALeaf", {"path": path, "queue": below[0]})
    if len(steps) != len(numbers):
        counts = {"count": len(numbers), "steps": len(steps)}
        wrong_weights = Message("Hierarchy.Weights", {"weights": weights, "path": path, **counts})
    elif odd := [number for number in numbers if not (WEIGHT.fullmatch(number) and float(number) > 0)]:
        wrong_weights = Message("Hierarchy.NotAWeight", {"weights": weights, "weight": odd[0]})
    return wrong_path, wrong_weights


def _check_amounts(queue: Queue, resource: str) -> None:
    """What is kept for it is no more than it deserves, and that no more than it may hold; nothing below zero."""
    steps = (("guarantee", queue.guarantee), ("deserved", queue.deserved), ("capability", queue.capability))
    for word, amounts in steps:
        if amounts.get(resource, 0) < 0:
            raise QueueInvalid(Message("Queue.BelowZero", {"queue": queue.name, "field": word, "resource": resource}))
    for (low, lower), (high, upper) in pairwise(steps):
        least, most = lower.get(resource, 0), upper.get(resource)
        if most is None and high == "capability":
            continue
        if least > (most or 0):
            fields = {"queue": queue.name, "resource": resource, "low": low, "high": high}
            figures = {"low_amount": shown(resource, least), "high_amount": shown(resource, most or 0)}
            raise QueueInvalid(Message("Queue.OutOfOrder", {**fields, **figures}))


def _check_family(queues: Mapping[str, Queue], queue: Queue, parent: Queue) -> None:
    for above in (queues[name] for name in _line(queues, parent.name)):
        for resource, amount in sorted(queue.capability.items()):
            if amount > above.capability.get(resource, amount):
                limits = {"amount": shown(resource, amount), "limit": shown(resource, above.capability[resource])}
                names = {"queue": queue.name, "parent": above.name, "resource": resource}
                raise QueueInvalid(Message("Queue.OverParent", {**names, **limits}))
    siblings = [other for other in _children(queues, parent.name) if other.name != queue.name]
    for word in ("deserved", "guarantee"):
        own, family = getattr(queue, word), getattr(parent, word)
        for resource in sorted(own.keys() & family.keys()):
            total = own[resource] + sum(getattr(other, word).get(resource, 0) for other in siblings)
            if total > family[resource]:
                limits = {"amount": shown(resource, total), "limit": shown(resource, family[resource])}
                names = {"parent": parent.name, "field": word, "resource": resource}
                raise QueueInvalid(Message("Queue.SiblingsOverParent", {**names, **limits}))


def _known(queues: Mapping[str, Queue], name: str) -> Queue:
    found = queues.get(name)
    if found is None:
        raise QueueInvalid(queue_missing(name))
    return found


def _children(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    return [queue for _, queue in sorted(queues.items()) if queue.parent == name and queue.name != name]


def _below(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    found = []
    for queue in _children(queues, name):
        found += [queue, *_below(queues, queue.name)]
    return found


def _line(queues: Mapping[str, Queue], name: str) -> list[str]:
    """The queue and those above it, the nearest first, as far as they are known."""
    found: list[str] = []
    while name in queues and name not in found:
        found.append(name)
        name = queues[name].parent
    return found
