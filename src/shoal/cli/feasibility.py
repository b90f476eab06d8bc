"""Whether a job can still complete if no nodes are added: which tasks have a place, and which never get one.

Pure: the job state and what its pods and groups show are the input, a verdict is the output. The caller decides what
is done about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from shoal.engine import JobState
from shoal.kube import times
from shoal.kube.conditions import CLAIM_MISSING, condition_of, group_too_large_message, too_large_message
from shoal.kube.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, SECRET, Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, namespace_of

_ENDED = ("Succeeded", "Failed")
_QUEUE_CLOSED = "QueueClosed"
OWNED_OBJECT_FAILED = "OwnedObjectUnavailable"
_NO_COMMAND = "ImageNotConfigured"
# Reasons, and a message beside them, of a container that waits for an object its pod refers to.
_ORDINARY_REASONS = ("", "ContainerCreating", "PodInitializing")
_WAITS_FOR_OBJECT = ("CreateContainerConfigError", *_ORDINARY_REASONS)
# Where a pod's spec refers to objects: in volumes, projected volumes, env and envFrom.
_REFERENCES = {
    "configMap": CONFIG_MAP,
    "configMapRef": CONFIG_MAP,
    "configMapKeyRef": CONFIG_MAP,
    "secret": SECRET,
    "secretRef": SECRET,
    "secretKeyRef": SECRET,
    "persistentVolumeClaim": PERSISTENT_VOLUME_CLAIM,
}
_NAMES = ("name", "secretName", "claimName")


class RequiredObject(NamedTuple):
    kind: Kind
    key: Key

    @property
    def why_missing(self) -> str:
        return f"{self.kind.kind} {self.key.name} does not exist in namespace {self.key.namespace}; add it to the files"


@dataclass(frozen=True, slots=True)
class FitResult:
    """How a pod that has not ended, or a group, fits on the nodes there are."""

    task: str = ""  # whose pod it is; '' for a group
    is_placed: bool = False
    is_starting: bool = False  # it is placed, and whether its containers can start is not known yet
    why: str = ""  # why it can never start: larger than all nodes, or blocked by what nothing here changes; '' else
    is_size: bool = True  # the reason is its size
    required: tuple[RequiredObject, ...] = ()  # objects it may wait for, until the caller has looked which exist
    waits_for_claim: bool = False  # a claim of it, or of another pod of its gang, does not exist
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
    status = pod.get("status") or {}
    if status.get("phase") in _ENDED:
        return None
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    states = [each.get("state") or {} for each in containers]
    waiting = [found for state in states if (found := state.get("waiting"))]
    # The node reads its configuration of images once, when it starts.
    if no_command := next((str(each.get("message")) for each in waiting if each.get("reason") == _NO_COMMAND), ""):
        return FitResult(task, why=no_command, is_size=False)
    spec, placed = pod.get("spec") or {}, condition_of(pod, "PodScheduled") or {}
    waits_for_claim = (placed.get("status"), placed.get("reason")) == ("False", CLAIM_MISSING)
    required: Iterator[RequiredObject] | tuple[()] = ()
    if waits_for_claim or any(
        str(each.get("reason") or "") in _WAITS_FOR_OBJECT and each.get("message") for each in waiting
    ):
        required = _required_objects(spec, namespace_of(pod))
    # A message tells what a container waits for; an init container that runs may wait for other pods.
    has_started = any("running" in state or "terminated" in state for state in states)
    is_starting = status.get("phase") == "Pending" and not has_started and not any(map(_reports, waiting))
    has_node = bool(spec.get("nodeName"))
    return FitResult(
        task,
        is_placed=has_node,
        is_starting=has_node and is_starting,
        why=too_large_message(pod),
        required=tuple(dict.fromkeys(required)),
        waits_for_claim=waits_for_claim,
    )


def _reports(waiting: dict[str, Any]) -> bool:
    """Whether a container waits for something else than the ordinary steps of its start."""
    return bool(waiting.get("message")) or str(waiting.get("reason") or "") not in _ORDINARY_REASONS


def _required_objects(spec: Any, namespace: str) -> Iterator[RequiredObject]:
    """The objects without which the pod cannot start: none of an optional reference."""
    if isinstance(spec, list):
        for each in spec:
            yield from _required_objects(each, namespace)
    elif isinstance(spec, dict):
        for field, value in spec.items():
            if field in _REFERENCES and isinstance(value, dict):
                name = next((value[each] for each in _NAMES if value.get(each)), "")
                if name and not value.get("optional"):
                    yield RequiredObject(_REFERENCES[field], Key(namespace, name))
            else:
                yield from _required_objects(value, namespace)


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


def find_unschedulable(state: JobState, fits: Collection[FitResult]) -> Unschedulable | None:
    """The first task or gang that can never start, a gang before single tasks.
    None also while others wait for which that is unknown: they may be placed, and the job may complete."""
    # All pods of a gang wait for the claim that one of them lacks.
    no_claim = next((fit.why for fit in fits if fit.waits_for_claim and fit.why), "")
    fits = [replace(fit, why=no_claim, is_size=False) if fit.waits_for_claim and not fit.why else fit for fit in fits]
    unplaceable = sorted((fit for fit in fits if fit.why), key=lambda fit: fit.task)
    if not unplaceable or state.is_new or not state.run.is_open or any(fit.is_starting for fit in fits):
        return None
    first, has_place = unplaceable[0], any(fit.is_placed and not (fit.why or fit.required) for fit in fits)
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
