"""A job language as the operator sees it: one value made of plain functions.

The engine handles roles, tasks and policies; the operator handles clusters. A dialect is between them: it reads a
manifest into the engine's terms, builds the objects the engine requests, and keeps the job state in whatever place the
language has for it. None of its functions has side effects, and none changes what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shoal.engine import (
    Apply,
    Command,
    Create,
    GroupRef,
    Job,
    JobState,
    Notice,
    Observed,
    ObservedGroup,
    ObservedObject,
    ObservedPod,
    ObservedRunOwner,
    OwnedObjectRef,
    Target,
    TaskRef,
)
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, annotations_of

if TYPE_CHECKING:
    from shoal.dialects.gang_backends.backend import ClusterLookups
    from shoal.dialects.gang_backends.gang import GangSpec

DialectSettings = Any  # each dialect has its own record
# a group or owned object as observed
ObservedChild = tuple[GroupRef, ObservedGroup] | tuple[OwnedObjectRef, ObservedObject]
Lookup = Callable[[Kind], Iterable[Obj]]  # every object of a kind


@dataclass(frozen=True, slots=True)
class Owner:
    """Which job an object names as its owner: where that job lives, and its uid."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class StatePatch:
    """How a job state is stored: a JSON patch, so that nulls are kept, on the object or one of its subresources.
    Where the language's status has no place for it, annotations.

    The sender adds the condition (metadata.resourceVersion).
    """

    operations: tuple[Obj, ...] = ()
    subresource: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    def patch(self, manifest: Obj) -> list[Obj]:
        """The operations for this version of the object."""
        if not self.annotations:
            return list(self.operations)
        if not annotations_of(manifest):
            return [*self.operations, {"op": "add", "path": "/metadata/annotations", "value": dict(self.annotations)}]
        paths = {f"/metadata/annotations/{name.replace('/', '~1')}": text for name, text in self.annotations.items()}
        return [*self.operations, *({"op": "add", "path": path, "value": text} for path, text in paths.items())]


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What people see besides the ledger. None: the ledger is the status, there is nothing to add."""

    status: Obj | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: tuple[Obj, ...] = ()  # names of children that belong into the spec, as a JSON patch
    wake_at: datetime | None = None  # when the report changes by time alone


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole object as it was before it was forgotten; one line of the history log."""

    about: str  # namespace/name of the job
    trigger: str
    object: Obj


class ManifestInvalid(ValueError):
    """A stored manifest that `admit` would have refused; every mistake with its path."""

    def __init__(self, causes: Sequence[Cause]) -> None:
        super().__init__("; ".join(str(cause) for cause in causes))
        self.causes = tuple(causes)


class SettingsInvalid(ValueError):
    """Settings of a language with mistakes; the message lists every one with its path."""

    def __init__(self, mistakes: Sequence[Cause]) -> None:
        count = f"{len(mistakes)} mistake{'s' * (len(mistakes) > 1)}"
        listed = "\n".join(f"  {mistake}" for mistake in mistakes)
        super().__init__(f"the settings have {count}:\n{listed}")
        self.causes = tuple(mistakes)


class StateUnreadable(ValueError):
    """A stored ledger no version of ours has written. Starting over could run a finished job twice."""


@dataclass(frozen=True, slots=True)
class ChildKind:
    """A kind of object that jobs own besides pods; `labels` select those that may be ours."""

    kind: Kind
    labels: str = ""


@dataclass(frozen=True, slots=True)
class RequiredObject:
    """An object of another owner without which a job does not start: while it exists, the gate `key` is open."""

    kind: Kind
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class OwnedObjects:
    """Groups and companions: what jobs of a language own besides pods, and what they wait for."""

    children: tuple[ChildKind, ...]
    build_object: Callable[[Obj, Apply, bool], Obj]  # the object; True: it is new, False: it is there and is changed
    locate_object: Callable[[Obj, Target], tuple[Kind, str]]  # its kind and name
    observe_child: Callable[[Obj, Obj], ObservedChild | None]  # beside its job
    describe_failure: Callable[[Target], str]  # the reason of the Event where it cannot be had
    required_objects: Callable[[Obj], tuple[RequiredObject, ...]]
    definitions: Callable[[], tuple[Obj, ...]]  # of kinds that come with the language
    group: Kind  # which of the children are groups
    # why a group is not admitted, as reported by the pod scheduler; '' if admitted
    pending_reason: Callable[[Obj], str]
    gangs: Callable[[Obj], Mapping[str, GangSpec]] | None = None  # what the groups of a job ask for, by key
    # where one may hide another: what is seen
    select_groups: Callable[[Sequence[ObservedChild], Obj], list[ObservedChild]] | None = None
    # a new group takes over from those that are there
    replace_group: Callable[[Obj, Iterable[Obj]], None] | None = None
    cluster_lookups: ClusterLookups | None = None  # what groups and pods depend on that is nobody's child
    # what its scheduler reads of a group's pods
    acknowledge_pods: Callable[[Obj, bool, str], Obj | None] | None = None


@dataclass(frozen=True, slots=True)
class Commands:
    """Requests to a job that are objects of their own and go once they have taken effect."""

    kind: Kind
    target: Callable[[Obj], Key | None]  # the job an order is for
    read: Callable[[Obj, Obj], Command]  # an order beside that job
    stop: Callable[[Obj], Obj]  # the order that ends a job for good
    start: Callable[[Obj], Obj]  # releases a held job


@dataclass(frozen=True, slots=True)
class CompletionProgress:
    """How far a job is that wants a number of successes and has fewer pods at once."""

    wanted: int
    parallelism: int
    succeeded: int
    running: int
    failed: int  # pods, of which others may have taken the place since


@dataclass(frozen=True, slots=True)
class Dialect:
    """One job language."""

    kind: Kind
    crd: Callable[[], Obj] | None  # None: every cluster knows the kind
    settings: Callable[[Mapping[str, Any] | None], DialectSettings]  # from a configuration file's content
    default: Callable[[Obj], Obj]  # a manifest with its defaults and canonical names
    admit: Callable[[Obj], list[Cause]]  # every mistake
    preview_pods: Callable[[Obj], list[Cause]]  # what is let in, and refused as soon as a pod is made of it
    warn: Callable[[Obj, Obj | None], list[str]]  # what is accepted and probably not meant (new, old)
    read: Callable[[Obj, DialectSettings], Job | None]  # None: not ours
    build_pod: Callable[[Obj, Create], Obj]  # the pod of a task
    pod_name: Callable[[Obj, TaskRef], str]  # its name, known without rendering it
    restore: Callable[[Obj], JobState]
    record: Callable[[Job, JobState, DialectSettings], StatePatch]
    owner: Callable[[Obj], Owner | None]  # of a pod or an anchor
    observe_pod: Callable[[Obj, Obj], ObservedPod | None]  # a pod beside the manifest of the job it is looked at for
    report: Callable[[Job, JobState, Observed, Obj, datetime], StatusReport]
    build_run_owner: Callable[[Obj, Create], Obj] | None = None
    run_owner_name: Callable[[Obj], str] | None = None
    run_owner: Callable[[Obj, Obj], ObservedRunOwner] | None = None  # the object found under the anchor's name
    owned_objects: OwnedObjects | None = None
    commands: Commands | None = None
    deletion_mark: Obj | None = None  # the merge patch that marks a doomed pod
    snapshot: Callable[[Obj, JobState, Notice, DialectSettings, datetime], Snapshot | None] | None = None
    deletion_snapshot: Callable[[Obj, DialectSettings], Snapshot | None] | None = None  # a job or pod that is gone
    scale_patch: Callable[[Obj, Mapping[str, int]], list[Obj]] | None = None  # a JSON patch
    stop_patch: Callable[[Obj], list[Obj]] | None = None
    start_patch: Callable[[Obj], list[Obj]] | None = None
    validate_in_cluster: Callable[[Obj, Lookup], list[Cause]] | None = None  # a new one, among what else there is
    validated_against: tuple[Kind, ...] = ()  # the kinds that `validate_in_cluster` looks at
    status_state: Callable[[Obj], JobState] | None = None  # the ledger with what the status shows of living tasks
    # None: its tasks are all there is to count
    completion_progress: Callable[[Obj], CompletionProgress | None] | None = None
    # how many of its jobs are looked at side by side; None: as usual
    workers: Callable[[DialectSettings], int] | None = None
    # that were written in vain, each with why
    idle_settings: Callable[[DialectSettings], Mapping[str, str]] | None = None
    admit_change: Callable[[Obj, Obj], list[Cause]] | None = None  # what may not become of what is stored (new, old)
    other_versions: tuple[Kind, ...] = ()  # other versions the same objects are written in
    embedded_only: bool = False  # on Kubernetes its own controllers run these jobs
    never_completes: bool = False  # its jobs have no end of their own
    stop_holds: bool = False  # a stop keeps completed work, and a start resumes the job
    # display name of a pod; '' where its number identifies it
    display_name: Callable[[Obj, Obj], str] | None = None
    finalizer: str = ""  # holds a pod until its end is counted
    orphans: Callable[[Obj], str] | None = None  # labels of orphaned pods that a new job adopts; '': none
    adopt_patch: Callable[[Obj, Obj], Obj | None] | None = None  # the strategic patch that makes such a pod its own
    status_model: Callable[[], Obj] | None = None  # a schema of the status, where the definition leaves that open

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        """Every mistake of a manifest that is written, and of the change where one is stored already."""
        changes = self.admit_change(new, old) if self.admit_change is not None and old is not None else []
        return [*self.admit(new), *changes]


def definitions_of(dialect: Dialect) -> tuple[Obj, ...]:
    """The CRDs of the job kind and of every kind that belongs to its dialect."""
    own = (dialect.crd(),) if dialect.crd is not None else ()
    return (*own, *(dialect.owned_objects.definitions() if dialect.owned_objects is not None else ()))
