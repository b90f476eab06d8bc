"""What is decoded of lists, watches and other answers: everything, or only the fields a program reads.

A decoded object costs several times its JSON, in time and in memory. A program that keeps many of a kind gives a
shape: a TypedDict whose fields are decoded into plain dictionaries while all others are skipped unread. What came
through a shape is for reading; it never travels back.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, Generic, TypedDict, TypeVar, cast

import msgspec

from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_LARGE_BYTES = 1_000_000
Shape = TypeVar("Shape")


class Metadata(TypedDict, total=False):
    """All but managedFields, which is a large share of every object and which few read."""

    name: str
    generateName: str
    namespace: str
    uid: str
    resourceVersion: str
    generation: int
    creationTimestamp: str
    deletionTimestamp: str
    deletionGracePeriodSeconds: int
    labels: dict[str, str]
    annotations: dict[str, str]
    ownerReferences: list[dict[str, Any]]
    finalizers: list[str]


class WithoutManagedFields(TypedDict, total=False):
    """An object made of metadata, spec and status, without the record of who wrote what."""

    apiVersion: str
    kind: str
    metadata: Metadata
    spec: Any
    status: Any


class MetadataOnly(TypedDict, total=False):
    """An object's name and owners. Nothing else is requested from the server."""

    apiVersion: str
    kind: str
    metadata: Metadata


class ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_token: str = msgspec.field(default="", name="continue")
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _Items(msgspec.Struct, Generic[Shape]):
    metadata: ListMeta
    items: list[Shape] | None = None


class _WatchEvent(msgspec.Struct, Generic[Shape]):
    type: str
    object: Shape


_ALL: Any = dict[str, Any]


class Decoder:
    """For one kind. What is no JSON, or not a list or a change at all, raises msgspec.DecodeError."""

    def __init__(self, shape: Any) -> None:
        self.reads_metadata_only = shape is MetadataOnly
        self._one: msgspec.json.Decoder[Any] | None = None if shape is _ALL else msgspec.json.Decoder(shape)
        self._items: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Items[shape])
        self._event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_WatchEvent[shape])

    def object(self, body: bytes) -> Obj | None:
        """A single object; None where the answer is something else, or has to be read whole."""
        if self._one is None:
            return None
        try:
            found = cast(Obj, self._one.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return None if found.get("kind") == "Status" else found

    def items(self, body: bytes) -> tuple[list[Obj], ListMeta]:
        # Decoded JSON holds no cycles; looking for them costs more than a large list's decoding itself.
        pauses_gc = len(body) > _LARGE_BYTES and gc.isenabled()
        if pauses_gc:
            gc.disable()
        try:
            found = self._items.decode(body)
        except msgspec.ValidationError:  # an odd object, such as one with a null for its labels
            found = _ALL_ITEMS.decode(body)
        finally:
            if pauses_gc:
                gc.enable()
        return cast(list[Obj], found.items or []), cast(ListMeta, found.metadata)

    def event(self, line: bytes) -> tuple[str, Obj]:
        """The type of a change and its object, whole where it is a bookmark or an error."""
        if line.startswith((b'{"type":"BOOKMARK"', b'{"type":"ERROR"')):
            return _decode_whole(line)
        try:
            found = self._event.decode(line)
        except msgspec.ValidationError:
            return _decode_whole(line)
        return _decode_whole(line) if found.type in ("BOOKMARK", "ERROR") else (found.type, cast(Obj, found.object))


def set_type_meta(obj: Obj, kind: Kind) -> Obj:
    """Metadata sent alone has the kind PartialObjectMetadata: here it gets the kind of its object."""
    if obj.get("kind") == "PartialObjectMetadata":
        obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    return obj


_ALL_ITEMS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Items[dict[str, Any]])


def _decode_whole(line: bytes) -> tuple[str, Obj]:
    found = _ANY_EVENT.decode(line)
    return found.type, found.object


_ANY_EVENT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_WatchEvent[dict[str, Any]])
_EVERYTHING = Decoder(_ALL)


class Decoders:
    def __init__(self, shapes: Mapping[Kind, Any]) -> None:
        self._by_resource = {kind.resource: Decoder(shape) for kind, shape in shapes.items()}

    def of(self, kind: Kind) -> Decoder:
        """The same for every version of a kind."""
        return self._by_resource.get(kind.resource, _EVERYTHING) if self._by_resource else _EVERYTHING
