"""Plain-dictionary objects and their common accessors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Obj = dict[str, Any]


class Key(NamedTuple):
    """Where an object lives within its kind. Cluster-scoped objects have the namespace ''."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Mapping[str, Any]) -> Key:
    meta = obj.get("metadata") or {}
    return Key(meta.get("namespace") or "", meta.get("name") or "")


def name_of(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def namespace_of(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("namespace") or "")


def uid_of(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("uid") or "")


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def is_terminating(obj: Mapping[str, Any]) -> bool:
    """Whether the object's deletion was requested and it is not gone yet."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def without_managed_fields(obj: Obj) -> Obj:
    """Everything but managedFields: a large share of each object, and few readers need it."""
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"}}


def at_path(obj: Mapping[str, Any], *path: str, default: Any = None) -> Any:
    """The value below `path`, or `default` where any step is missing or null."""
    here: Any = obj
    for step in path:
        if not isinstance(here, Mapping) or here.get(step) is None:
            return default
        here = here[step]
    return here
