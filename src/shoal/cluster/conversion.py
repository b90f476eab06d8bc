"""One stored object, several API versions: how each version of a kind looks.

Custom resources of several versions differ in their `apiVersion` only (conversion strategy None). Events are
stored as core/v1 and shown as events.k8s.io/v1 too, where the same facts have other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from shoal.kube import kinds
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class VersionConverter(Protocol):
    """A version that is not, or not always, the one objects are stored in."""

    def from_storage(self, raw: bytes) -> bytes: ...

    def to_storage(self, obj: Obj) -> Obj: ...


class ApiVersionConverter:
    """Only the apiVersion differs. Stored bytes begin with it, so showing another one is a splice."""

    def __init__(self, kind: Kind, storage_kind: Kind) -> None:
        self._prefix = b'{"apiVersion":"%b",' % kind.api_version.encode()
        self._storage_api_version = storage_kind.api_version

    def from_storage(self, raw: bytes) -> bytes:
        if raw.startswith(self._prefix):
            return raw
        return self._prefix + raw[raw.index(b",") + 1 :]

    def to_storage(self, obj: Obj) -> Obj:
        return {**obj, "apiVersion": self._storage_api_version}


class EventConverter:
    """events.k8s.io/v1, stored as core/v1."""

    _TO_STORAGE: Mapping[str, str] = {  # events.k8s.io/v1 -> core/v1
        "regarding": "involvedObject",
        "note": "message",
        "reportingController": "reportingComponent",
        "deprecatedSource": "source",
        "deprecatedFirstTimestamp": "firstTimestamp",
        "deprecatedLastTimestamp": "lastTimestamp",
        "deprecatedCount": "count",
    }
    _FROM_STORAGE: Mapping[str, str] = {old: new for new, old in _TO_STORAGE.items()}

    def from_storage(self, raw: bytes) -> bytes:
        converted = _rename_fields(_decode(raw), self._FROM_STORAGE)
        converted["apiVersion"] = kinds.EVENT_V1.api_version
        for name in ("reportingController", "reportingInstance"):
            if not converted.get(name):
                converted.pop(name, None)
        return _encode(converted)

    def to_storage(self, obj: Obj) -> Obj:
        stored = _rename_fields(obj, self._TO_STORAGE)
        stored["apiVersion"] = kinds.EVENT.api_version
        stored.setdefault("involvedObject", {})
        return stored


def _rename_fields(obj: Mapping[str, Any], names: Mapping[str, str]) -> Obj:
    return {names.get(name, name): value for name, value in obj.items()}
