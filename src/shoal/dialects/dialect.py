"""A job language as the operator sees it.

The engine handles roles, tasks and policies; the operator handles clusters. A dialect is between them: it reads a
manifest into the engine's terms, builds the objects the engine requests, and keeps the job state in whatever place the
language has for it. None of its methods has side effects, and none changes what it is given.

What only some languages have is a capability (`capabilities`), found by its class: `dialect.capability(Scaling)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from shoal.dialects.capabilities import (
    Capability,
    ClusterValidation,
    DialectSettings,
    Lookup,
    ManifestWarnings,
    OwnedObjects,
)
from shoal.engine import Create, Job, JobState, Observed, ObservedPod, TaskRef
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, annotations_of

C = TypeVar("C", bound=Capability)


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
    """What users see besides the job state. None: the job state is the status, there is nothing to add."""

    status: Obj | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: tuple[Obj, ...] = ()  # names of children that belong into the spec, as a JSON patch
    wake_at: datetime | None = None  # when the report changes by time alone


class ManifestInvalid(ValueError):
    """A stored manifest that `validate` would have refused; every mistake with its path."""

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
    """A stored job state that no version of Shoal wrote. Starting over could run a finished job twice."""


class Dialect(ABC):
    """One job language."""

    kind: Kind  # of its jobs
    other_versions: tuple[Kind, ...] = ()  # other versions the same objects are written in
    embedded_only: bool = False  # on Kubernetes its own controllers run these jobs
    never_completes: bool = False  # its jobs have no end of their own
    state_in_annotation: bool = False  # not in the status: storing it takes the right to change the job itself
    capabilities: tuple[Capability, ...] = ()  # at most one of each class

    def capability(self, wanted: type[C]) -> C | None:
        """The optional part of that class; None where the language has none."""
        return next((each for each in self.capabilities if isinstance(each, wanted)), None)

    # What people write

    @abstractmethod
    def crd(self) -> Obj | None:
        """The definition of the kind; None where every cluster serves it."""

    @abstractmethod
    def settings(self, written: Mapping[str, Any] | None = None) -> DialectSettings:
        """The settings in a configuration file; `SettingsInvalid` with every mistake."""

    @abstractmethod
    def default(self, manifest: Obj) -> Obj:
        """The manifest with its defaults and canonical names. Of one that has them, an equal one."""

    @abstractmethod
    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        """Every mistake of a manifest, and of the change where one is stored already."""

    @abstractmethod
    def to_job(self, manifest: Obj, settings: DialectSettings) -> Job | None:
        """The job in the engine's terms; None where another controller runs it, `ManifestInvalid` with every
        mistake of a manifest that should not have been stored."""

    # Its pods

    @abstractmethod
    def build_pod(self, manifest: Obj, create: Create) -> Obj:
        """The pod of a task."""

    @abstractmethod
    def pod_name(self, manifest: Obj, task: TaskRef) -> str:
        """The name of that pod; '' where the server generates it."""

    @abstractmethod
    def owner_of(self, obj: Obj) -> Owner | None:
        """The job that a pod, or another object of the language, belongs to."""

    @abstractmethod
    def observe_pod(self, pod: Obj, manifest: Obj) -> ObservedPod | None:
        """A pod as the engine sees it beside the manifest of its job; None where it is not the job's."""

    # Its state

    @abstractmethod
    def load_state(self, manifest: Obj) -> JobState:
        """The stored job state, an empty one for a new job; `StateUnreadable` where no operator wrote it."""

    @abstractmethod
    def save_state(self, job: Job, state: JobState, settings: DialectSettings) -> StatePatch:
        """The write after which `load_state` returns this state."""

    @abstractmethod
    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        """What people see of the job besides its state."""


class DialectWrapper(Dialect):
    """Another dialect, for subclasses that change some of it."""

    def __init__(
        self, inner: Dialect, *, replaced: Iterable[type[Capability]] = (), added: Iterable[Capability] = ()
    ) -> None:
        """Capabilities of the classes `replaced` are left out, those in `added` are there instead."""
        self._inner = inner
        self.kind = inner.kind
        self.other_versions = inner.other_versions
        self.embedded_only = inner.embedded_only
        self.never_completes = inner.never_completes
        self.state_in_annotation = inner.state_in_annotation
        self.capabilities = (
            *(each for each in inner.capabilities if not isinstance(each, tuple(replaced))),
            *added,
        )

    def crd(self) -> Obj | None:
        return self._inner.crd()

    def settings(self, written: Mapping[str, Any] | None = None) -> DialectSettings:
        return self._inner.settings(written)

    def default(self, manifest: Obj) -> Obj:
        return self._inner.default(manifest)

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        return self._inner.validate(new, old)

    def to_job(self, manifest: Obj, settings: DialectSettings) -> Job | None:
        return self._inner.to_job(manifest, settings)

    def build_pod(self, manifest: Obj, create: Create) -> Obj:
        return self._inner.build_pod(manifest, create)

    def pod_name(self, manifest: Obj, task: TaskRef) -> str:
        return self._inner.pod_name(manifest, task)

    def owner_of(self, obj: Obj) -> Owner | None:
        return self._inner.owner_of(obj)

    def observe_pod(self, pod: Obj, manifest: Obj) -> ObservedPod | None:
        return self._inner.observe_pod(pod, manifest)

    def load_state(self, manifest: Obj) -> JobState:
        return self._inner.load_state(manifest)

    def save_state(self, job: Job, state: JobState, settings: DialectSettings) -> StatePatch:
        return self._inner.save_state(job, state, settings)

    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        return self._inner.status(job, state, observed, manifest, now)


def definitions_of(*dialects: Dialect) -> tuple[Obj, ...]:
    """The CRDs of the job kinds and of every kind that belongs to their dialects, each once: of a dialect its own kind
    first."""
    found: dict[str, Obj] = {}
    for dialect in dialects:
        definition, owned = dialect.crd(), dialect.capability(OwnedObjects)
        of_others = owned.definitions() if owned is not None else ()
        for each in (*((definition,) if definition is not None else ()), *of_others):
            found.setdefault(each["metadata"]["name"], each)
    return tuple(found.values())


def write_errors(dialect: Dialect, new: Obj, old: Obj | None, lookup: Lookup) -> list[Cause]:
    """Every mistake of a write; of a new job also those in relation to the other objects."""
    mistakes = dialect.validate(new, old)
    among = dialect.capability(ClusterValidation) if old is None else None
    return [*mistakes, *among.validate(new, lookup)] if among is not None else mistakes


def warnings_of(dialect: Dialect, new: Obj, old: Obj | None) -> list[str]:
    """What is accepted and probably not meant."""
    warnings = dialect.capability(ManifestWarnings)
    return warnings.warn(new, old) if warnings is not None else []
