"""Parses a URL path into the place it names: group and version, resource, object, subresource.

`/api/v1/...` is the core group, `/apis/<group>/<version>/...` any other. Below that follow an optional
`namespaces/<name>`, the resource, a name and a subresource. Whether the resource exists is not checked here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class RequestInfo(NamedTuple):
    """`namespace` is None where the path names none: all namespaces, or a cluster-scoped resource."""

    group: str
    version: str
    plural: str = ""
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    watched: bool = False  # by the old paths, `/api/v1/watch/...`


# The two subresources of a Namespace itself; anything else below a namespace is a resource within it.
_NAMESPACE_PARTS = frozenset({"status", "finalize"})


_WORTH_REMEMBERING = 1024  # characters; no path that leads anywhere is longer


def read(path: str) -> RequestInfo | None:
    """The place, or None where the path is no resource path at all."""
    return _remembered(path) if len(path) < _WORTH_REMEMBERING else _read(path)


def _read(path: str) -> RequestInfo | None:
    steps = path.rstrip("/").split("/")[1:]
    if "" in steps:
        return None
    if steps[:1] == ["api"] and len(steps) >= 2:
        return _below("", steps[1], steps[2:])
    if steps[:1] == ["apis"] and len(steps) >= 3:
        return _below(steps[1], steps[2], steps[3:])
    return None


_remembered = lru_cache(maxsize=4096)(_read)


def _below(group: str, version: str, rest: list[str]) -> RequestInfo | None:
    is_watched = rest[:1] == ["watch"] and len(rest) > 1
    if is_watched:
        rest = rest[1:]
    namespace: str | None = None
    if len(rest) >= 3 and rest[0] == "namespaces" and not (len(rest) == 3 and rest[2] in _NAMESPACE_PARTS):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "", "")[:3]
    return RequestInfo(group, version, plural, namespace, name, subresource, is_watched)
