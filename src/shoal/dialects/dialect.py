"""A job language as the operator sees it: one value made of plain functions.

The engine knows roles, tasks and policies; the operator knows clusters. A dialect stands between them: it reads a
manifest into the engine's words, dresses what the engine asks for, and keeps the ledger in whatever place the
language has for it. None of its functions touches the world, and none changes what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shoal.engine import Anchor, Body, Create, Job, JobState, Notice, Observed, TaskRef
from shoal.engine.model import Guard
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj

Settings = Any  # each dialect has its own record


@dataclass(frozen=True, slots=True)
class Owner:
    """Which job an object says it belongs to: where that job lives, and its uid."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class LedgerPatch:
    """How a ledger is stored: a JSON patch, so that nulls are kept, on the object or one of its subresources.

    Whoever sends it adds the condition (metadata.resourceVersion).
    """

    operations: tuple[Obj, ...]
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What people see besides the ledger. None: the ledger is the status, there is nothing to add."""

    status: Obj | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole object as it was before somebody forgot it; one line of the history log."""

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


class LedgerUnreadable(ValueError):
    """A stored ledger no version of ours has written. Starting over could run a finished job twice."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One job language."""

    kind: Kind
    crd: Callable[[], Obj]
    settings: Callable[[Mapping[str, Any] | None], Settings]  # from what a configuration file says
    default: Callable[[Obj], Obj]  # a manifest with its defaults and canonical names
    admit: Callable[[Obj], list[Cause]]  # every mistake
    foresee: Callable[[Obj], list[Cause]]  # what is let in, and refused as soon as a pod is made of it
    warn: Callable[[Obj, Obj | None], list[str]]  # what is accepted and probably not meant (new, old)
    read: Callable[[Obj, Settings], Job | None]  # None: not ours
    render: Callable[[Obj, Create], Obj]  # the pod of a task
    pod_name: Callable[[Obj, TaskRef], str]  # its name, known without rendering it
    restore: Callable[[Obj], JobState]
    record: Callable[[Job, JobState, Settings], LedgerPatch]
    owner: Callable[[Obj], Owner | None]  # of a pod or an anchor
    body: Callable[[Obj, Obj], Body | None]  # a pod beside the manifest of the job it is looked at for
    report: Callable[[Job, JobState, Observed, Obj, datetime], Report]
    dress_anchor: Callable[[Obj, Create], Obj] | None = None
    anchor_name: Callable[[Obj], str] | None = None
    anchor: Callable[[Obj, Obj], Anchor] | None = None  # the object found under the anchor's name
    companions: Callable[[Obj, Any, Any], Obj] | None = None
    snapshot: Callable[[Obj, JobState, Notice, Settings, datetime], Snapshot | None] | None = None
    deletion_snapshot: Callable[[Obj, Settings], Snapshot | None] | None = None  # a job or pod that is gone
    scale_patch: Callable[[Obj, Mapping[str, int]], list[Obj]] | None = None  # a JSON patch
    stop_patch: Callable[[Obj], list[Obj]] | None = None
    start_patch: Callable[[Obj], list[Obj]] | None = None
    guard: Guard | None = None
