"""The plain records that pass between the API machinery and its callers.

An object is stored as it was written: encoded JSON. The few values that selections need (labels and selectable fields)
are stored beside the bytes, so that lists and watches decode nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.cluster.client import WatchEventType
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj

SCALE = Kind("autoscaling", "v1", "Scale", "scales")

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """One version of one object. `created_revision` is the revision of its first version."""

    kind: Kind
    key: Key
    uid: str
    revision: int
    raw: bytes  # JSON with apiVersion, kind and metadata.resourceVersion
    labels: dict[str, str]
    fields: dict[str, str]  # what field selectors of the kind can match
    created_revision: int = 0
    owners: tuple[str, ...] = ()  # the uids of its ownerReferences
    finalizers: tuple[str, ...] = ()
    terminating: bool = False  # whether it has a deletionTimestamp

    def obj(self) -> Obj:
        """The object, decoded afresh: the caller may change it."""
        decoded: Obj = _decode(self.raw)
        return decoded


@dataclass(frozen=True, slots=True)
class WriteOptions:
    field_manager: str = "unknown"
    dry_run: bool = False
    field_validation: str = "Warn"  # Ignore, Warn, Strict
    force: bool = False  # of a server-side apply: take fields from their other managers


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A selection, and which version of the state to serve it from."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""  # '', Exact, NotOlderThan


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`initial_events` None: as Kubernetes decides by the version ('' and '0' begin with what exists)."""

    resource_version: str = ""
    labels: str = ""
    fields: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_seconds: float | None = None
    resource_version_match: str = ""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The version a write made. With `dry_run` nothing was stored.

    `decoded_object` is the object the bytes were encoded from, where it is returned in its storage version; watches
    share it.
    """

    stored: Stored
    created: bool = False
    warnings: tuple[str, ...] = ()
    decoded_object: Obj | None = None

    def obj(self) -> Obj:
        """The object, read only."""
        return self.stored.obj() if self.decoded_object is None else self.decoded_object


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """`removed` is False while the object lingers for its grace period or its finalizers."""

    stored: Stored
    removed: bool


@dataclass(frozen=True, slots=True)
class StoredPage:
    items: list[Stored]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(slots=True, eq=False)
class RawEvent:
    """One watch event; shared by every watcher of the same change, so its frame is made once."""

    type: WatchEventType
    stored_raw: bytes
    revision: int
    _frame: bytes = field(default=b"", repr=False)
    _object: Any = field(default=None, repr=False)

    @property
    def frame(self) -> bytes:
        """The event as one line of the watch protocol."""
        if not self._frame:
            self._frame = b"".join((self.frame_head, self.stored_raw, self.frame_tail))
        return self._frame

    @property
    def frame_head(self) -> bytes:
        return b'{"type":"%b","object":' % self.type.value.encode()

    frame_tail = b"}\n"

    def object(self) -> Any:
        """Read only: all watches of the same change share the object."""
        if self._object is None:
            self._object = _decode(self.stored_raw)
        return self._object
