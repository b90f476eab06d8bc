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


class Face(Protocol):
    """A version that is not, or not always, the one objects are stored in."""

    def show(self, raw: bytes) -> bytes: ...

    def to_home(self, obj: Obj) -> Obj: ...


class VersionFace:
    """Only the apiVersion differs. Stored bytes begin with it, so showing another one is a splice."""

    def __init__(self, kind: Kind, home: Kind) -> None:
        self._shown = b'{"apiVersion":"%b",' % kind.api_version.encode()
        self._home = home.api_version

    def show(self, raw: bytes) -> bytes:
        if raw.startswith(self._shown):
            return raw
        return self._shown + raw[raw.index(b",") + 1 :]

    def to_home(self, obj: Obj) -> Obj:
        return {**obj, "apiVersion": self._home}


class EventFace:
    """events.k8s.io/v1, stored as core/v1."""

    _NAMES: Mapping[str, str] = {  # events.k8s.io/v1 -> core/v1
        "regarding": "involvedObject",
        "note": "message",
        "reportingController": "reportingComponent",
        "deprecatedSource": "source",
        "deprecatedFirstTimestamp": "firstTimestamp",
        "deprecatedLastTimestamp": "lastTimestamp",
        "deprecatedCount": "count",
    }
    _BACK: Mapping[str, str] = {old: new for new, old in _NAMES.items()}

    def show(self, raw: bytes) -> bytes:
        shown = _renamed(_decode(raw), self._BACK)
        shown["apiVersion"] = kinds.EVENT_V1.api_version
        for name in ("reportingController", "reportingInstance"):
            if not shown.get(name):
                shown.pop(name, None)
        return _encode(shown)

    def to_home(self, obj: Obj) -> Obj:
        stored = _renamed(obj, self._NAMES)
        stored["apiVersion"] = kinds.EVENT.api_version
        stored.setdefault("involvedObject", {})
        return stored


def _renamed(obj: Mapping[str, Any], names: Mapping[str, str]) -> Obj:
    return {names.get(name, name): value for name, value in obj.items()}
