"""OpenAPI over HTTP: an index with a hash per group and version, and the documents behind it.

Documents are built on the first request and kept until a kind of their group changes; the hash in the index allows
clients to keep theirs for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shoal.apiserver import responses
from shoal.apiserver.responses import BytesResponse
from shoal.kube import openapi
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_FOREVER = ((b"cache-control", b"public, immutable"),)


@dataclass(frozen=True, slots=True)
class _Cached:
    kinds: tuple[Kind, ...]
    body: bytes
    hash: str


class Documents:
    def __init__(self, kinds: Callable[[], Iterable[Kind]]) -> None:
        self._kinds = kinds
        self._made: dict[tuple[str, str], _Cached] = {}

    def index(self) -> BytesResponse:
        paths = {}
        for group, version in sorted({(kind.group, kind.version) for kind in self._kinds()}):
            where = f"apis/{group}/{version}" if group else f"api/{version}"
            paths[where] = {"serverRelativeURL": f"/openapi/v3/{where}?hash={self._document(group, version).hash}"}
        return responses.object_bytes_response({"paths": paths})

    def document(self, group: str, version: str) -> BytesResponse | None:
        if not any((kind.group, kind.version) == (group, version) for kind in self._kinds()):
            return None
        made = self._document(group, version)
        return BytesResponse(made.body, headers=(*_FOREVER, (b"etag", f'"{made.hash}"'.encode())))

    def swagger(self) -> Obj:
        """The older form of the same, for clients that still request it."""
        return openapi.v2(tuple(self._kinds()))

    def _document(self, group: str, version: str) -> _Cached:
        members = tuple(kind for kind in self._kinds() if (kind.group, kind.version) == (group, version))
        made = self._made.get((group, version))
        # Kinds compare by name; a definition that was edited brings a new schema under the same name.
        if (
            made is None
            or made.kinds != members
            or any(old.openapi is not new.openapi for old, new in zip(made.kinds, members, strict=True))
        ):
            body = responses.encode(openapi.document(members, group, version))
            made = _Cached(members, body, hashlib.sha256(body).hexdigest().upper())
            self._made[group, version] = made
        return made
