"""Whoever places a gang, as one value made of plain functions: a gang goes in, and out come the object that stands for
it and the changes to each of its pods; what the scheduler writes into that object is read back as a Standing.

Nothing here touches the world. `handing` puts a backend into a job language, and from then on rights, copies, writes
and reports follow by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shoal.dialects.gang_backends.gang import Gang
from shoal.engine.policies import Opens
from shoal.kube.conditions import condition_of
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

# Schedulers that a job names because it wants a gang: whoever the gang is handed to stands in for them. Any other name
# is somebody's own choice and stays.
GANG_SCHEDULERS = ("", "volcano", "shoal")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a gang stands with its scheduler."""

    admitted: bool = False  # its members may start
    broken: bool = False  # some members run and the rest cannot be placed
    evicted: bool = False  # what was granted is taken back: its members have to go
    why: str = ""  # in the scheduler's words, while it waits
    reason: str = ""  # of the same condition


Sight = Mapping[tuple[Kind, str], Obj]  # objects by kind and name


@dataclass(frozen=True, slots=True)
class Looks:
    """Objects of the whole cluster that a group names, and what follows from them."""

    kinds: tuple[Kind, ...]
    at: Callable[[Obj], tuple[tuple[Kind, str], ...]]  # which, for a group that is granted or about to be made
    complete: Callable[[Obj, Sight], None]  # the group that is about to be made
    fit: Callable[[Obj, str, Obj, Sight], None]  # a pod of that role to what its group was granted


@dataclass(frozen=True, slots=True)
class Backend:
    """One gang scheduler."""

    name: str
    scheduler: str  # the schedulerName of pods; '': the cluster's own
    kind: Kind | None  # of the object that stands for a gang; None: nobody is told of gangs
    spec: Callable[[Gang], Obj]  # of that object
    standing: Callable[[Obj], Standing]
    join: Callable[[Obj, Gang], None]  # changes a pod, so that it is known as a member
    opens: Opens = Opens.EXISTS  # whether pods wait for the gang's admission or gather in front of the scheduler
    follows: bool = True  # a gang that changes is changed in place
    longest_name: int = 200  # of an object that stands for a gang
    takes_over: str = ""  # instead, each size of a gang is an object; the annotation that names the one before it
    evicts: bool = False  # what was granted may be taken back
    asks: bool = False  # asks elastic jobs for pods before it evicts any
    notes: Mapping[str, str] = field(default_factory=dict)  # annotations of every such object
    looks: Looks | None = None
    answer: Callable[[Obj, bool, str], Obj | None] | None = None  # the status a group should show: whether all are up
    refuses: Callable[[Gang], str] = lambda _: ""  # why such a gang cannot be handed over
    leaves_out: Callable[[Gang], tuple[str, ...]] = lambda _: ()  # what of it cannot be said to this scheduler

    @property
    def is_sliced(self) -> bool:
        return bool(self.takes_over)

    @property
    def label(self) -> str:
        """As it is remembered on a job: its name, and which version of its API was spoken."""
        return f"{self.name}/{self.kind.version}" if self.kind is not None else self.name


def told(obj: Obj, condition: str) -> str:
    """What a condition says of an object; its reason where it has no words; '' where there is none."""
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


def share_priority(pod: Obj, gang: Gang) -> None:
    """Give every member one priority: members of several would wait for each other in the scheduler's queue."""
    templates = ((part.template.get("spec") or {}).get("priorityClassName") or "" for part in gang.parts)
    one = gang.priority_class or next((name for name in templates if name), "")
    if one:
        pod["spec"]["priorityClassName"] = one
