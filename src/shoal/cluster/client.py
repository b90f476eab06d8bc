"""The client interface: what a program may request of a cluster, whichever cluster it is.

The node agent, the scheduler, the controllers and the operator hold a `Cluster` and nothing else, so the same
program runs against the embedded store, a simulated one and a real API server. A rejected request
raises `shoal.kube.errors.ApiError`; a request whose outcome is unknown raises `OutcomeUnknown`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from shoal.kube.errors import ApiError, conflict
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


class OutcomeUnknown(Exception):
    """The connection broke after the request left: it may or may not have taken effect."""


def uid_error_as_conflict(kind: Kind, name: str, error: ApiError) -> ApiError:
    """Kubernetes calls a patch with another uid invalid; for a program it is a conflict: not its object any more."""
    if error.code == 422 and any(cause.field == "metadata.uid" for cause in error.causes):
        return conflict(kind, name, f"the object has another uid now: {error.message}")
    return error


class WatchEventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class PatchType(StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class DeletionPropagation(StrEnum):
    FOREGROUND = "Foreground"
    BACKGROUND = "Background"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. A BOOKMARK carries no object of interest, only the version reached.

    The object is read only: all watches of the same change share it. `raw` is its JSON, where the cluster has that at
    hand.
    """

    type: WatchEventType
    object: Obj
    raw: bytes = b""

    @property
    def resource_version(self) -> str:
        return str(self.object["metadata"]["resourceVersion"])

    @property
    def ends_initial_list(self) -> bool:
        """Whether this bookmark means: everything that existed has been sent (streaming list)."""
        annotations = self.object.get("metadata", {}).get("annotations") or {}
        return self.type is WatchEventType.BOOKMARK and annotations.get("k8s.io/initial-events-end") == "true"


@dataclass(frozen=True, slots=True)
class Page:
    """A list, or one page of it: `continue_token` is '' on the last."""

    items: list[Obj]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class LogOptions:
    container: str = ""
    follow: bool = False
    previous: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    since_time: str | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Preconditions:
    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_seconds: int | None = None  # None: the object's own
    propagation: DeletionPropagation | None = None  # None: the kind's own
    preconditions: Preconditions = field(default_factory=Preconditions)
    dry_run: bool = False


class Cluster(Protocol):
    """Every call names the kind and, for namespaced kinds, the namespace. `namespace=None` means all.

    The result of a write is read only: watches may share the same object.
    """

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Obj: ...

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Page: ...

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout_seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Changes after `resource_version`; with `initial_events` first an ADDED per existing object and
        a bookmark whose `ends_initial_list` is true. Raises ApiError 410 where the version is no longer
        kept. Ends quietly when the time is up or the server closes: resume from the last version seen."""
        ...

    async def create(
        self, kind: Kind, obj: Obj, namespace: str = "", *, field_manager: str = "shoal", dry_run: bool = False
    ) -> Obj: ...

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        patch: Obj | Sequence[Obj],
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "shoal",
        force: bool = False,
        dry_run: bool = False,
    ) -> Obj:
        """A merge or strategic patch may carry metadata.resourceVersion and metadata.uid: then it is
        conditional and a mismatch raises 409 Conflict."""
        ...

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
        """The object as it was when it went, or as it is while it lingers (grace, finalizers)."""
        ...

    async def bind(self, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
        """Place a pod. 409 Conflict where it already has a node or its uid is another."""
        ...

    async def evict(self, pod: str, namespace: str, options: DeleteOptions | None = None) -> None:
        """Delete a pod if its disruption budget allows it; 429 Too Many Requests where it does not now."""
        ...

    def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]: ...


# What a node serves besides its pods' status: logs, commands and measurements. The embedded API server
# finds the agents of this process by node name; on a real cluster the API server queries the kubelet.


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A command for a running container."""

    container: str
    command: tuple[str, ...]
    tty: bool = False


@dataclass(frozen=True, slots=True)
class Streams:
    """The other end of a command. `stdin` is None where it was not requested; `resize` yields (columns, rows)."""

    stdout: Callable[[bytes], Awaitable[None]]
    stderr: Callable[[bytes], Awaitable[None]]
    stdin: AsyncIterator[bytes] | None = None
    resize: AsyncIterator[tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_cores: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What a node and its containers use now; `window_seconds` is the time the cpu figure spans."""

    node: Usage
    pods: Mapping[str, Mapping[str, Usage]]  # pod uid -> container name -> usage
    window_seconds: float


class NodeServices(Protocol):
    """What an agent offers for its node. A container that is not there raises ApiError 400 or 404."""

    def logs(self, pod: Obj, options: LogOptions) -> AsyncIterator[bytes]: ...

    async def execute(self, pod: Obj, request: ExecRequest, streams: Streams) -> int:
        """Run the command inside the container; its exit code."""
        ...

    async def connect(self, pod: Obj, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a port of the pod; OSError where no program of it listens there."""
        ...

    async def usage(self) -> NodeUsage: ...
