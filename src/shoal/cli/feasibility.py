"""Whether a job can still complete if no nodes are added: which tasks have a place, and which never get one.

Pure: the job state and what its pods and groups show are the input, a verdict is the output. The caller decides what
is done about it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from shoal.engine import JobState
from shoal.kube import times
from shoal.kube.conditions import condition_of, group_too_large_message, too_large_message
from shoal.kube.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, SECRET, Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, namespace_of
from shoal.scheduler.messages import CATALOG

_ENDED = ("Succeeded", "Failed")
_QUEUE_CLOSED = "QueueClosed"
OWNED_OBJECT_FAILED = "OwnedObjectUnavailable"
_NO_COMMAND = "ImageNotConfigured"
# What the node and the scheduler report of an object that a pod refers to; nothing of an optional reference.
_KINDS = {kind.kind.lower(): kind for kind in (CONFIG_MAP, SECRET, PERSISTENT_VOLUME_CLAIM)}
_NOT_FOUND = re.compile(rf'({"|".join(_KINDS)}) "([^"]+)" not found')
_NO_CLAIM = re.compile(re.escape(CATALOG.text(Message("Claim.Missing", {"claim": "CLAIM"}))).replace("CLAIM", r"(\S+)"))


class MissingObject(NamedTuple):
    kind: Kind
    key: Key

    @property
    def why(self) -> str:
        return f"{self.kind.kind} {self.key.name} does not exist in namespace {self.key.namespace}; add it to the files"


@dataclass(frozen=True, slots=True)
class FitResult:
    """How a pod that has not ended, or a group, fits on the nodes there are."""

    task: str = ""  # whose pod it is; '' for a group
    is_placed: bool = False
    why: str = ""  # why it can never start: larger than all nodes, or blocked by what nothing here changes; '' else
    is_size: bool = True  # the reason is its size
    missing: tuple[MissingObject, ...] = ()  # objects it waits for, which were not there a moment ago
    before: frozenset[str] = frozenset()  # of a group: roles that come before it, and whose end may be the job's


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """A task or gang of a job that can never start."""

    task: str  # '' where it is a gang
    why: str
    is_all: bool  # nothing else is left of the job
    is_size: bool = True


def fit_of_pod(pod: Obj, task: str) -> FitResult | None:
    """None for a pod that has ended: it needs no place."""
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return None
    if blocked := _why_blocked(pod):
        return FitResult(task, why=blocked, is_size=False)
    missing = _missing(pod)
    is_placed = bool((pod.get("spec") or {}).get("nodeName")) and not missing
    return FitResult(task, is_placed=is_placed, why=too_large_message(pod), missing=missing)


def fit_of_group(group: Obj, before: frozenset[str] = frozenset()) -> FitResult | None:
    """Only of one that can never start; of any other its pods say how they fit."""
    if why := group_too_large_message(group):
        return FitResult(why=why, before=before)
    unschedulable = condition_of(group, "Unschedulable") or {}
    if (unschedulable.get("status"), unschedulable.get("reason")) == ("True", _QUEUE_CLOSED):
        return FitResult(why=str(unschedulable.get("message")), before=before, is_size=False)
    return None


def fit_of_event(event: Obj, message: Message | None, since: datetime) -> FitResult | None:
    """Of a group or an owned object that the API server rejects, and does so after this time: until all files are
    submitted, what it refers to may be missing."""
    last = event.get("lastTimestamp")
    if message is None or message.code != f"{OWNED_OBJECT_FAILED}.Rejected" or not last or times.parse(last) <= since:
        return None
    return FitResult(why=str(message.parameters.get("cause")), is_size=False)


def _why_blocked(pod: Obj) -> str:
    """Of a container that has nothing to run: the node reads its configuration once, when it starts."""
    return next((str(each.get("message")) for each in _waiting(pod) if each.get("reason") == _NO_COMMAND), "")


def _missing(pod: Obj) -> tuple[MissingObject, ...]:
    """Objects without which it cannot start. Pods of a gang report the claim that one of them lacks."""
    namespace, found = namespace_of(pod), dict[MissingObject, None]()
    if claim := _NO_CLAIM.match(str((condition_of(pod, "PodScheduled") or {}).get("message") or "")):
        found[MissingObject(PERSISTENT_VOLUME_CLAIM, Key(namespace, claim[1]))] = None
    for each in _waiting(pod):
        if reported := _NOT_FOUND.fullmatch(str(each.get("message") or "")):
            found[MissingObject(_KINDS[reported[1]], Key(namespace, reported[2]))] = None
    return tuple(found)


def _waiting(pod: Obj) -> Iterator[dict[str, Any]]:
    """The states of its containers that wait."""
    status = pod.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if waiting := (each.get("state") or {}).get("waiting"):
            yield waiting


def find_unschedulable(state: JobState, fits: Collection[FitResult]) -> Unschedulable | None:
    """The first task or gang that can never start, a gang before single tasks.
    None also while others wait for which that is unknown: they may be placed, and the job may complete."""
    unplaceable = sorted((fit for fit in fits if fit.why), key=lambda fit: fit.task)
    if not unplaceable or state.is_new or not state.run.is_open:
        return None
    first, has_place = unplaceable[0], any(fit.is_placed for fit in fits)
    # All groups of a job are in one queue, so their pods that have no node yet wait for the same.
    is_blocked = any(not fit.task and not fit.is_size for fit in unplaceable)
    if has_place or ((is_blocked or len(unplaceable) == len(fits)) and not _has_more(state, unplaceable)):
        return Unschedulable(first.task, first.why, is_all=not has_place, is_size=first.is_size)
    return None


def _has_more(state: JobState, unplaceable: Sequence[FitResult]) -> bool:
    """Whether tasks are left besides these: they end just now, or are about to get a pod.

    Tasks of a gang that is not let in have no pods, and those of later stages wait for it; only those before it count.
    """
    left = [role.name for role in state.roles for task in role.tasks if not task.is_done]
    gangs = [fit for fit in unplaceable if not fit.task]
    if gangs:
        return any(role in gang.before for gang in gangs for role in left)
    return len(left) > len(unplaceable)
