"""What the operator passes to the engine: pods, run owner, groups, owned objects, commands, signals and write results.

All of it is plain data taken from caches. `read_pod` turns a pod into this form; which task it belongs to (role, index,
stamp, owner) the dialect reads from labels and annotations. An ObservedPod depends on the pod alone, so a cache may
keep it as long as it keeps that version of the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import msgspec

from shoal.engine.types import TaskRef
from shoal.kube import times
from shoal.kube.objects import Obj

_NOTHING: Mapping[Any, Any] = {}


DISRUPTED = "DisruptionTarget"  # the condition of a pod that is being evicted or preempted


class PodPhase(Enum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """A container's current state; `code` is None while it has not terminated."""

    name: str
    init: bool = False
    code: int | None = None
    signal: int = 0
    reason: str = ""
    message: str = ""
    finished: datetime | None = None
    restarts: int = 0
    last_code: int = 0  # of the time before, where it restarted in place
    has_started: bool = False  # it runs, or has ended


class ObservedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod as the engine sees it."""

    uid: str
    name: str
    role: str
    index: int | None  # None: random names without an index
    run: int = 0  # the stamp
    attempt: int = 0
    instance: str = ""  # of the task it was made for, where the dialect stamps it
    owned: bool = True  # our job, or a run owner of our job, controls it
    phase: PodPhase = PodPhase.PENDING
    reason: str = ""
    message: str = ""
    leaving: bool = False
    leaving_since: datetime | None = None  # deletionTimestamp less the grace period
    node: str = ""
    ip: str = ""
    host_ip: str = ""
    containers: tuple[ContainerState, ...] = ()  # init containers first
    created: datetime | None = None
    ready: bool = False
    ready_since: datetime | None = None
    restarts_in_place: bool = False  # its restartPolicy is not Never
    conditions: frozenset[str] = frozenset()  # types whose status is True
    disruption: str = ""  # on whose behalf it is evicted, as the evicting component reports
    marked: bool = False  # carries the mark of a pod about to be deleted
    finalizer: bool = False  # carries our finalizer
    deletion_cost: int = 0

    @property
    def is_finished(self) -> bool:
        return self.phase is PodPhase.SUCCEEDED or self.phase is PodPhase.FAILED

    @property
    def restarts(self) -> int:
        return sum(container.restarts for container in self.containers)


class ObservedRunOwner(msgspec.Struct, frozen=True, gc=False):
    """The object found under the run owner's name."""

    uid: str
    owned: bool = True
    leaving: bool = False
    run: int | None = None  # the stamp; None where it carries none


class ObservedGroup(msgspec.Struct, frozen=True, gc=False):
    uid: str
    key: str = ""
    digest: str = ""
    admitted: bool = False
    unknown: bool = False  # some members run and the rest cannot be placed
    evicted: bool = False  # what it was granted is taken back: its members have to go
    leaving: bool = False
    owned: bool = True
    asked: tuple[str, ...] = ()  # uids of members its scheduler requests back
    reclaim_reason: str = ""  # and for what, as the scheduler reports
    pending_reason: str = ""  # why it is not admitted: the reason of its condition
    pending_message: str = ""  # and the message


class OwnedObjectRef(msgspec.Struct, frozen=True, gc=False):
    """Which owned object: its policy's name, and the role or task it belongs to."""

    name: str
    role: str = ""
    index: int = -1


class ObservedObject(msgspec.Struct, frozen=True, gc=False):
    """An owned object that exists."""

    uid: str
    digest: str = ""
    leaving: bool = False
    owned: bool = True


class Command(msgspec.Struct, frozen=True, gc=False):
    """A request object aimed at this job; `action` is looked up in Policies.commands."""

    uid: str
    action: str
    role: str = ""
    index: int = -1


class SignalKind(Enum):
    ROUND_CLOSED = "round closed"
    STORE_LOST = "store lost"
    GROUP_DONE = "group done"
    ROUND_WANTED = "round wanted"


class Signal(msgspec.Struct, frozen=True, gc=False):
    """A fact from inside the workload. The same key is the same fact, however often it is shown."""

    kind: SignalKind
    key: str


class RunOwnerRef(msgspec.Struct, frozen=True, gc=False):
    """The run owner as the target of a write or the subject of a write result."""


class GroupRef(msgspec.Struct, frozen=True, gc=False):
    key: str = ""


class JobRef(msgspec.Struct, frozen=True, gc=False):
    """The job object itself."""


class CommandRef(msgspec.Struct, frozen=True, gc=False):
    uid: str


Target = TaskRef | RunOwnerRef | GroupRef | OwnedObjectRef | JobRef | CommandRef


class Created(msgspec.Struct, frozen=True, gc=False):
    """A create succeeded; the object has this uid."""

    target: Target
    uid: str


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """A delete was accepted."""

    target: Target
    uid: str = ""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A confirming delete found nothing under that name (uid ''), or no longer that uid; the uid is the write's."""

    target: Target
    uid: str = ""


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A create was rejected. Code 0: the response may have been lost."""

    target: Target
    code: int = 0
    text: str = ""


WriteResult = Created | Accepted | Gone | Refused


class Observed(msgspec.Struct, frozen=True, gc=False):
    """Everything the engine may observe in one pass."""

    pods: tuple[ObservedPod, ...] = ()
    run_owner: ObservedRunOwner | None = None
    groups: Mapping[str, ObservedGroup] = _NOTHING  # by key
    owned_objects: Mapping[OwnedObjectRef, ObservedObject] = _NOTHING
    commands: tuple[Command, ...] = ()
    signals: tuple[Signal, ...] = ()
    write_results: tuple[WriteResult, ...] = ()
    open_gates: frozenset[str] = frozenset()  # keys of ExternalGates that other controllers have opened
    nonce: str = ""  # randomness for this pass: uuids and delays derive from it


_PHASES = {phase.value: phase for phase in PodPhase}


_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def read_pod(
    pod: Obj,
    *,
    role: str,
    index: int | None,
    run: int = 0,
    attempt: int = 0,
    instance: str = "",
    owned: bool = True,
    marked: bool = False,
    finalizer: str = "",
) -> ObservedPod:
    meta, spec, status = pod.get("metadata") or {}, pod.get("spec") or {}, pod.get("status") or {}
    conditions = {c.get("type", ""): c for c in status.get("conditions") or () if c.get("status") == "True"}
    init = [_container(entry, init=True) for entry in status.get("initContainerStatuses") or ()]
    main = [_container(entry, init=False) for entry in status.get("containerStatuses") or ()]
    deletion = _moment(meta.get("deletionTimestamp"))
    grace = timedelta(seconds=int(meta.get("deletionGracePeriodSeconds") or 0))
    return ObservedPod(
        uid=meta.get("uid") or "",
        name=meta.get("name") or "",
        role=role,
        index=index,
        run=run,
        attempt=attempt,
        instance=instance,
        owned=owned,
        phase=_PHASES.get(status.get("phase") or "Pending", PodPhase.UNKNOWN),
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        leaving=bool(meta.get("deletionTimestamp")),
        # deletionTimestamp is the moment when the deletion should be over.
        leaving_since=deletion - grace if deletion is not None else None,
        node=spec.get("nodeName") or "",
        ip=status.get("podIP") or "",
        host_ip=status.get("hostIP") or "",
        containers=(*init, *main),
        created=_moment(meta.get("creationTimestamp")),
        ready="Ready" in conditions,
        ready_since=_moment((conditions.get("Ready") or {}).get("lastTransitionTime")),
        restarts_in_place=(spec.get("restartPolicy") or "Always") != "Never",
        conditions=frozenset(conditions),
        disruption=str((conditions.get(DISRUPTED) or {}).get("message") or ""),
        marked=marked,
        finalizer=bool(finalizer) and finalizer in (meta.get("finalizers") or ()),
        deletion_cost=_deletion_cost(meta),
    )


def _container(entry: Mapping[str, Any], *, init: bool) -> ContainerState:
    restarts = int(entry.get("restartCount") or 0)
    before = int(((entry.get("lastState") or {}).get("terminated") or {}).get("exitCode") or 0)
    state = entry.get("state") or {}
    ended = state.get("terminated")
    if not ended:
        return ContainerState(
            entry.get("name") or "", init=init, has_started="running" in state, restarts=restarts, last_code=before
        )
    return ContainerState(
        entry.get("name") or "",
        init=init,
        code=int(ended.get("exitCode") or 0),
        signal=int(ended.get("signal") or 0),
        reason=ended.get("reason") or "",
        message=ended.get("message") or "",
        has_started=True,
        finished=_moment(ended.get("finishedAt")),
        restarts=restarts,
        last_code=before,
    )


def _moment(text: str | None) -> datetime | None:
    return times.parse(text) if text else None


def _deletion_cost(meta: Mapping[str, Any]) -> int:
    text = (meta.get("annotations") or {}).get(_DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0
