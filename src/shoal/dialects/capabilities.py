"""What a job language may have beyond what every language must: one class per capability.

A dialect lists objects of these classes in `Dialect.capabilities`; users call `dialect.capability(Scaling)` and get the
object, or None where the language has no such thing. As everything of a dialect they are pure: no side effects, and
nothing they are given is changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shoal.engine import (
    Apply,
    Command,
    Create,
    GroupRef,
    JobState,
    Notice,
    ObservedGroup,
    ObservedObject,
    ObservedRunOwner,
    OwnedObjectRef,
    Target,
)
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj

if TYPE_CHECKING:
    from shoal.dialects.gang_backends.backend import ClusterLookups
    from shoal.dialects.gang_backends.gang import GangSpec

DialectSettings = Any  # each dialect has its own record
# a group or owned object as observed
ObservedChild = tuple[GroupRef, ObservedGroup] | tuple[OwnedObjectRef, ObservedObject]
Lookup = Callable[[Kind], Iterable[Obj]]  # every object of a kind


class Capability(ABC):  # noqa: B024 - what its subclasses have in common is being found by their class
    """An optional part of a dialect."""


# --- what jobs own besides pods ------------------------------------------------------------------------------------


class RunOwner(Capability):
    """A ConfigMap that owns the pods of one run and goes with it."""

    @abstractmethod
    def name(self, manifest: Obj) -> str:
        """Its name, the same for every run of a job."""

    @abstractmethod
    def build(self, manifest: Obj, create: Create) -> Obj:
        """The object for a new run."""

    @abstractmethod
    def observe(self, found: Obj, manifest: Obj) -> ObservedRunOwner:
        """The object found under that name, whoever owns it."""


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


class OwnedObjects(Capability):
    """Groups and other objects that a job owns besides its pods, and the objects of others it waits for."""

    children: tuple[ChildKind, ...]

    @abstractmethod
    def build_object(self, manifest: Obj, apply: Apply, *, is_new: bool) -> Obj:
        """The object; of one that exists already (not `is_new`) what has to be changed."""

    @abstractmethod
    def locate_object(self, manifest: Obj, target: Target) -> tuple[Kind, str]:
        """Its kind and name."""

    @abstractmethod
    def observe_child(self, obj: Obj, manifest: Obj) -> ObservedChild | None:
        """An object beside its job; None where it is no child of this job."""

    @abstractmethod
    def describe_failure(self, target: Target) -> str:
        """The reason of the Event where the object cannot be had."""

    @abstractmethod
    def required_objects(self, manifest: Obj) -> tuple[RequiredObject, ...]:
        """The objects of others that the job waits for."""

    @abstractmethod
    def definitions(self) -> tuple[Obj, ...]:
        """The CRDs of kinds that come with the language."""


class OwnedObjectsWrapper(OwnedObjects):
    """The owned objects of another dialect, for subclasses that change some of it."""

    def __init__(self, inner: OwnedObjects, children: tuple[ChildKind, ...]) -> None:
        self._inner = inner
        self.children = children

    def build_object(self, manifest: Obj, apply: Apply, *, is_new: bool) -> Obj:
        return self._inner.build_object(manifest, apply, is_new=is_new)

    def locate_object(self, manifest: Obj, target: Target) -> tuple[Kind, str]:
        return self._inner.locate_object(manifest, target)

    def observe_child(self, obj: Obj, manifest: Obj) -> ObservedChild | None:
        return self._inner.observe_child(obj, manifest)

    def describe_failure(self, target: Target) -> str:
        return self._inner.describe_failure(target)

    def required_objects(self, manifest: Obj) -> tuple[RequiredObject, ...]:
        return self._inner.required_objects(manifest)

    def definitions(self) -> tuple[Obj, ...]:
        return self._inner.definitions()


class Gangs(Capability):
    """Tasks that start together or not at all: the owned objects that represent them for a gang scheduler.

    Comes with OwnedObjects. The defaults are those of a scheduler that needs nothing beyond the groups themselves.
    """

    group: Kind  # which of the children represent gangs
    cluster_lookups: ClusterLookups | None = None  # what groups and pods depend on that no job owns
    acknowledges_pods: bool = False  # whether the scheduler reads a status about a group's pods

    @abstractmethod
    def specs(self, manifest: Obj) -> Mapping[str, GangSpec]:
        """What the groups of a job request, by key."""

    @abstractmethod
    def pending_reason(self, group: Obj) -> str:
        """Why a group is not admitted, as its scheduler reports it; '' if admitted."""

    def select_groups(self, found: Sequence[ObservedChild], manifest: Obj) -> Sequence[ObservedChild]:
        """What the engine observes of several children, where one group may hide another."""
        del manifest
        return found

    def replace_group(self, made: Obj, others: Iterable[Obj]) -> None:
        """Complete a group that is about to be created, where it takes over from others."""

    def acknowledge_pods(self, group: Obj, are_up: bool, now: str) -> Obj | None:
        """The status the scheduler expects of a group whose pods are up or not; None where it has it."""
        del group, are_up, now
        return None


# --- what people do to a job ---------------------------------------------------------------------------------------


class JobCommands(Capability):
    """Requests to a job that are objects of their own and are deleted once they have taken effect."""

    kind: Kind

    @abstractmethod
    def target(self, command: Obj) -> Key | None:
        """The job a command is for; None where it is for something else."""

    @abstractmethod
    def read(self, command: Obj, manifest: Obj) -> Command:
        """A command beside the job it is for."""

    @abstractmethod
    def stop(self, manifest: Obj) -> Obj:
        """The command that ends a job for good."""

    @abstractmethod
    def start(self, manifest: Obj) -> Obj:
        """The command that releases a held job."""


class Scaling(Capability):
    """Roles whose size may change while the job runs."""

    @abstractmethod
    def patch(self, manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
        """A JSON patch to these sizes by role; LookupError for a role the job does not have."""


class Suspension(Capability):
    """A field of the manifest that stops a job and starts it."""

    keeps_work: bool = False  # a stop keeps completed work, and a start resumes the job

    @abstractmethod
    def stop_patch(self, manifest: Obj) -> list[Obj]:
        """A JSON patch after which the job has no pods."""

    @abstractmethod
    def start_patch(self, manifest: Obj) -> list[Obj]:
        """A JSON patch after which the job runs."""


# --- what people write ---------------------------------------------------------------------------------------------


class ManifestWarnings(Capability):
    """Remarks on manifests that are accepted and probably not meant."""

    covers_idle_jobs = False  # whether a job without tasks is among them

    @abstractmethod
    def warn(self, new: Obj, old: Obj | None) -> list[str]:
        """One sentence per remark."""


class PodPreview(Capability):
    """Mistakes that the language accepts, and that an API server refuses as soon as a pod is created."""

    @abstractmethod
    def errors(self, manifest: Obj) -> list[Cause]:
        """Every such mistake."""


class ClusterValidation(Capability):
    """Mistakes of a new job that depend on which other objects there are."""

    kinds: tuple[Kind, ...]  # what is looked at

    @abstractmethod
    def validate(self, manifest: Obj, lookup: Lookup) -> list[Cause]:
        """Every such mistake."""


class OperatorSettings(Capability):
    """Settings of the language that concern the operator itself."""

    @abstractmethod
    def workers(self, settings: DialectSettings) -> int:
        """How many jobs are reconciled at the same time."""

    @abstractmethod
    def idle(self, settings: DialectSettings) -> Mapping[str, str]:
        """Settings that were written and have no effect, each with the reason."""


# --- what people see -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole object as it was before it was forgotten; one line of the history log."""

    about: str  # namespace/name of the job
    trigger: str
    object: Obj


class HistorySnapshots(Capability):
    """Snapshots for the history log, instead of the one of every job that has ended."""

    @abstractmethod
    def snapshot(
        self, manifest: Obj, state: JobState, notice: Notice, settings: DialectSettings, now: datetime
    ) -> Snapshot | None:
        """What is logged when the engine gives this notice; None: nothing."""

    @abstractmethod
    def deletion_snapshot(self, gone: Obj, settings: DialectSettings) -> Snapshot | None:
        """What is logged of a job or pod that was deleted; None: nothing."""


@dataclass(frozen=True, slots=True)
class CompletionProgress:
    """The progress of a job that requires a number of successes and has fewer pods at once."""

    wanted: int
    parallelism: int
    succeeded: int
    running: int
    failed: int  # pods, of which others may have taken the place since


class StatusProgress(Capability):
    """What the status shows of running tasks, for languages whose stored state has only what must survive a crash."""

    @abstractmethod
    def status_state(self, manifest: Obj) -> JobState:
        """The stored state, completed by what the status shows."""

    def completion(self, manifest: Obj) -> CompletionProgress | None:
        """The counts of a job that requires a number of successes; None where only its tasks can be counted."""
        del manifest
        return None


class StatusSchema(Capability):
    """A schema of the status, for a definition that leaves it open."""

    @abstractmethod
    def schema(self) -> Obj:
        """The schema, as in a CRD."""


class DisplayNames(Capability):
    """Names for pods that users identify by something else than role and index."""

    @abstractmethod
    def of(self, pod: Obj, manifest: Obj) -> str:
        """The display name; '' where role and index identify the pod."""


# --- the life of pods ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodFinalizer(Capability):
    """A finalizer that holds each pod until the job state has counted its end."""

    name: str


@dataclass(frozen=True, slots=True)
class DeletionMark(Capability):
    """A merge patch that marks a pod before the operator deletes it."""

    patch: Obj


class Adoption(Capability):
    """Pods without an owner that a new job makes its own before it creates others."""

    @abstractmethod
    def orphans(self, manifest: Obj) -> str:
        """A label selector of such pods; '' where the job adopts none."""

    @abstractmethod
    def adopt_patch(self, pod: Obj, manifest: Obj) -> Obj | None:
        """The strategic patch that makes the pod the job's own; None where it is not adopted."""
