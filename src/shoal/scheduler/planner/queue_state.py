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

from shoal.kube.quantity_format import shown
from shoal.scheduler.planner.gang_types import Queue

ROOT = "root"
DEFAULT = "default"
DEEPEST = 16


class QueueInvalid(ValueError):
    """The message is for the client that sent the request."""


def state(queue: Queue, groups: int) -> str:
    """The word for the queue's status, given how many groups it has."""
    if queue.open:
        return "Open"
    return "Closing" if groups else "Closed"


def close(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    """The queues that change, as they will be: this one, and those below it that are open."""
    if name == ROOT:
        raise QueueInvalid("queue root is above all others and cannot be closed; close the queues below it")
    found = _known(queues, name)
    changed = [replace(found, open=False, closed_by_parent=False)]
    below = [queue for queue in _below(queues, name) if queue.open]
    return changed + [replace(queue, open=False, closed_by_parent=True) for queue in below]


def reopen(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    """The queues that change: this one, and those below it that were closed with a parent."""
    found = _known(queues, name)
    parent = queues.get(found.parent)
    if parent is not None and parent.name != name and not parent.open:
        raise QueueInvalid(f"queue {name} is below {parent.name}, which is closed; open {parent.name} first")
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
        raise QueueInvalid(f"queue {name} is closed and takes nothing new; open it or name another")
    if any(True for _ in _children(queues, name)):
        raise QueueInvalid(f"queue {name} has queues below it, and jobs go into those; name one of them")


def admit_queue(queues: Mapping[str, Queue], queue: Queue, *, holds_pods: Iterable[str] = ()) -> None:
    """Whether a queue may be stored like this; `holds_pods` are the queues whose pods have nodes."""
    admit_alone(queue)
    parent = queues.get(queue.parent)
    if queue.name == ROOT or parent is None:
        if queue.parent != ROOT and queue.name != ROOT:
            raise QueueInvalid(f"queue {queue.name}: parent {queue.parent!r} does not exist; create it first")
        return
    if queue.name in _line(queues, queue.parent):
        raise _below_itself(queue)
    if len(_line(queues, queue.parent)) >= DEEPEST:
        raise QueueInvalid(f"queue {queue.name} would be more than {DEEPEST} queues deep; choose a higher parent")
    if queue.parent in set(holds_pods):
        raise QueueInvalid(f"queue {queue.parent} runs pods and cannot have queues below it; let them end first")
    _check_family(queues, queue, parent)


def admit_alone(queue: Queue) -> None:
    """Check what a queue declares by itself, whatever others there are."""
    if queue.parent == queue.name != ROOT:
        raise _below_itself(queue)
    for resource in sorted({*queue.guarantee, *queue.deserved, *queue.capability}):
        _check_amounts(queue, resource)


def _below_itself(queue: Queue) -> QueueInvalid:
    return QueueInvalid(f"queue {queue.name} would be below itself; choose another parent than {queue.parent}")


def admit_deletion(queues: Mapping[str, Queue], name: str, *, holds_pods: Iterable[str] = ()) -> None:
    if name in (ROOT, DEFAULT):
        raise QueueInvalid(f"queue {name} is always there and cannot be deleted")
    children = sorted(queue.name for queue in _children(queues, name))
    if children:
        raise QueueInvalid(f"queue {name} has queues below it ({', '.join(children)}); delete those first")
    if name in set(holds_pods):
        raise QueueInvalid(f"queue {name} runs pods; close it and let them end first")


def check_hierarchy(path: str, weights: str, others: Mapping[str, str]) -> tuple[str, str]:
    """What is wrong with a queue's hierarchy annotations, as a message for each; '' where it is right.

    `path` is `root/sci/dev`, `weights` has one weight per step (`1/2/8`), `others` are the paths of the other queues.
    """
    if not path and not weights:
        return "", ""
    steps, numbers = path.split("/"), weights.split("/")
    below = sorted(name for name, other in others.items() if other.startswith(f"{path}/"))
    wrong_path = wrong_weights = ""
    if not all(steps):
        wrong_path = f'"{path}": every step needs a name, for example root/sci/dev'
    elif below:
        wrong_path = f'"{path}": queue {below[0]} is below it; only leaves of the hierarchy are queues'
    if len(steps) != len(numbers):
        wrong_weights = f'"{weights}": {len(numbers)} weights for the {len(steps)} steps of "{path}"; give one for each'
    elif odd := [number for number in numbers if not _is_weight(number)]:
        wrong_weights = f'"{weights}": "{odd[0]}" is not a number greater than zero'
    return wrong_path, wrong_weights


def _is_weight(text: str) -> bool:
    return re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII) is not None and float(text) > 0


def _check_amounts(queue: Queue, resource: str) -> None:
    """What is kept for it is no more than it deserves, and that no more than it may hold; nothing below zero."""
    steps = (("guarantee", queue.guarantee), ("deserved", queue.deserved), ("capability", queue.capability))
    for word, amounts in steps:
        if amounts.get(resource, 0) < 0:
            raise QueueInvalid(f"queue {queue.name}: {word} of {resource} is below zero; give zero or more")
    for (low, lower), (high, upper) in pairwise(steps):
        least, most = lower.get(resource, 0), upper.get(resource)
        if most is None and high == "capability":
            continue
        if least > (most or 0):
            raise QueueInvalid(
                f"queue {queue.name}: {low} of {resource} is {shown(resource, least)} and {high} "
                f"{shown(resource, most or 0)}; lower the first or raise the second"
            )


def _check_family(queues: Mapping[str, Queue], queue: Queue, parent: Queue) -> None:
    for above in (queues[name] for name in _line(queues, parent.name)):
        for resource, amount in sorted(queue.capability.items()):
            if amount > above.capability.get(resource, amount):
                raise QueueInvalid(
                    f"queue {queue.name} may hold {shown(resource, amount)} {resource} and {above.name} above it only "
                    f"{shown(resource, above.capability[resource])}; lower the first or raise the second"
                )
    siblings = [other for other in _children(queues, parent.name) if other.name != queue.name]
    for word in ("deserved", "guarantee"):
        own, family = getattr(queue, word), getattr(parent, word)
        for resource in sorted(own.keys() & family.keys()):
            total = own[resource] + sum(getattr(other, word).get(resource, 0) for other in siblings)
            if total > family[resource]:
                raise QueueInvalid(
                    f"the queues below {parent.name} would have a {word} of {shown(resource, total)} {resource} "
                    f"together, and {parent.name} has {shown(resource, family[resource])}; lower one or raise it"
                )


def _known(queues: Mapping[str, Queue], name: str) -> Queue:
    found = queues.get(name)
    if found is None:
        raise QueueInvalid(f"there is no queue {name}; create it or name another")
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
