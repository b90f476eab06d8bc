"""A gang scheduler as one value made of plain functions.

From a gang it builds the object that represents it and the changes to each of its pods; what the scheduler writes into
that object is read back as a Standing.

Nothing here does I/O. `delegate` puts a backend into a dialect; rights, caches, writes and reports follow from that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shoal.dialects.gang_backends.gang import GangSpec
from shoal.engine.policies import Opens
from shoal.kube.conditions import condition_of
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

# Schedulers that a job names to get a gang: the gang's backend replaces them. Any other name
# is somebody's own choice and stays.
GANG_SCHEDULERS = ("", "volcano", "shoal")


@dataclass(frozen=True, slots=True)
class GangStatus:
    """The state of a gang as its scheduler reports it."""

    admitted: bool = False  # its members may start
    partially_placed: bool = False  # some members run and the rest cannot be placed
    evicted: bool = False  # what was granted is taken back: its members have to go
    message: str = ""  # the scheduler's message, while it waits
    reason: str = ""  # of the same condition


ClusterObjects = Mapping[tuple[Kind, str], Obj]  # objects by kind and name


@dataclass(frozen=True, slots=True)
class ClusterLookups:
    """Objects of the whole cluster that a group names, and what follows from them."""

    kinds: tuple[Kind, ...]
    references: Callable[[Obj], tuple[tuple[Kind, str], ...]]  # which, for a group that is granted or about to be made
    complete: Callable[[Obj, ClusterObjects], None]  # the group that is about to be made
    apply_to_pod: Callable[[Obj, str, Obj, ClusterObjects], None]  # a pod of that role to what its group was granted


@dataclass(frozen=True, slots=True)
class Backend:
    """One gang scheduler."""

    name: str
    scheduler: str  # the schedulerName of pods; '': the cluster's own
    kind: Kind | None  # of the object that represents a gang; None: gangs are not handed over
    spec: Callable[[GangSpec], Obj]  # of that object
    status_of: Callable[[Obj], GangStatus]
    add_pod: Callable[[Obj, GangSpec], None]  # changes a pod, so that it is known as a member
    opens_when: Opens = Opens.EXISTS  # whether pods wait for the gang's admission or gather in front of the scheduler
    follows: bool = True  # a gang that changes is changed in place
    longest_name: int = 200  # of an object that represents a gang
    # instead, each size of a gang is an object; the annotation that names the one before it
    replaces_annotation: str = ""
    evicts: bool = False  # what was granted may be taken back
    requests_shrink: bool = False  # requests pods of elastic jobs before it evicts any
    group_annotations: Mapping[str, str] = field(default_factory=dict)  # annotations of every such object
    cluster_lookups: ClusterLookups | None = None
    # the status a group should show: whether all are up
    acknowledge_pods: Callable[[Obj, bool, str], Obj | None] | None = None
    rejection_reason: Callable[[GangSpec], str] = lambda _: ""  # why such a gang cannot be handed over
    # what of it this scheduler cannot express
    unsupported_fields: Callable[[GangSpec], tuple[str, ...]] = lambda _: ()

    @property
    def is_sliced(self) -> bool:
        return bool(self.replaces_annotation)

    @property
    def label(self) -> str:
        """As it is remembered on a job: its name, and which version of its API was spoken."""
        return f"{self.name}/{self.kind.version}" if self.kind is not None else self.name


def condition_message(obj: Obj, condition: str) -> str:
    """The message of an object's condition; its reason where the message is empty; '' without the condition."""
    found = condition_of(obj, condition)
    return str(found.get("message") or found.get("reason") or "") if found is not None else ""


def use_scheduler(pod: Obj, name: str) -> None:
    """Have the pod placed by the gang's scheduler, unless its template names one of its own."""
    spec = pod["spec"]
    if (spec.get("schedulerName") or "") not in GANG_SCHEDULERS:
        return
    if name:
        spec["schedulerName"] = name
    else:
        spec.pop("schedulerName", None)


def share_priority(pod: Obj, gang: GangSpec) -> None:
    """Give every member one priority: members of several would wait for each other in the scheduler's queue."""
    templates = ((part.template.get("spec") or {}).get("priorityClassName") or "" for part in gang.roles)
    one = gang.priority_class or next((name for name in templates if name), "")
    if one:
        pod["spec"]["priorityClassName"] = one
