"""What a server is and serves: its version, its kinds, and what we may do there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.cluster.kubernetes.api_request import ApiRequest
from shoal.cluster.kubernetes.failures import Unreachable, not_json
from shoal.cluster.kubernetes.transport import Transport
from shoal.cluster.kubernetes.url_paths import quote_segment
from shoal.kube.errors import ApiError
from shoal.kube.kinds import BUILT_IN, Kind
from shoal.kube.objects import Obj

OLDEST_SUPPORTED = (1, 28)
_REVIEWS = "selfsubjectaccessreviews"
_REVIEW = f"/apis/authorization.k8s.io/v1/{_REVIEWS}"


@dataclass(frozen=True, slots=True)
class Version:
    major: int
    minor: int
    text: str  # as the server reports it: v1.36.0

    @property
    def is_supported(self) -> bool:
        return (self.major, self.minor) >= OLDEST_SUPPORTED

    @property
    def is_shoal(self) -> bool:
        """Whether it is the server inside `shoal up`."""
        return "+shoal-" in self.text


@dataclass(frozen=True, slots=True)
class AccessReview:
    """Whether something is allowed; `reason` is the server's, and often empty."""

    is_allowed: bool
    reason: str = ""


async def server_version(transport: Transport) -> Version:
    document = await _get(transport, "/version")
    major, minor = (re.match(r"\d+", str(document.get(name))) for name in ("major", "minor"))
    if major is None or minor is None:
        url = transport.connection.url
        raise Unreachable(f"{url} does not say which version of Kubernetes it is. Check the address")
    return Version(int(major[0]), int(minor[0]), str(document.get("gitVersion") or f"v{major[0]}.{minor[0]}"))


async def require_supported(transport: Transport) -> Version | None:
    """Its version; Unreachable if it is too old. None if it may not be read, which need not stop the caller."""
    try:
        version = await server_version(transport)
    except ApiError as refused:
        if refused.code in (401, 403):
            return None
        raise
    if not version.is_supported:
        oldest = ".".join(map(str, OLDEST_SUPPORTED))
        raise Unreachable(
            f"{transport.connection.url} is Kubernetes {version.text}, which is too old: Shoal needs {oldest} or "
            f"newer. Update the cluster"
        )
    return version


async def require_unserved(transport: Transport) -> Version | None:
    """The same; Unreachable also where jobs are served already: two who serve the same undo each other's work."""
    version = await require_supported(transport)
    if version is not None and version.is_shoal:
        raise Unreachable(
            f"{transport.connection.url} is a cluster of `shoal up`, which serves its jobs and places its pods itself. "
            f"Nothing has to be added to it; for another cluster give --kubeconfig or --context"
        )
    return version


async def find_kind(transport: Transport, api_version: str, kind: str) -> Kind | None:
    """The kind of such manifests, as the server serves it; None where it does not."""
    known = next((each for each in BUILT_IN if (each.api_version, each.kind) == (api_version, kind)), None)
    if known is not None:
        return known
    group, _, version = api_version.rpartition("/")
    return next((each for each in await _kinds(transport, group, version) if each.kind == kind), None)


async def served_versions(transport: Transport, group: str, kind: str) -> list[Kind]:
    """The kind in every version the server serves it in, the preferred one first; none where it serves none."""
    try:
        document = await _get(transport, f"/apis/{quote_segment(group)}")
    except ApiError as refused:
        if refused.code == 404:
            return []
        raise
    preferred = (document.get("preferredVersion") or {}).get("version")
    versions = sorted((each["version"] for each in document.get("versions") or ()), key=lambda v: v != preferred)
    return [found for version in versions for found in await _kinds(transport, group, version) if found.kind == kind]


async def _kinds(transport: Transport, group: str, version: str) -> list[Kind]:
    try:
        served = await _get(
            transport,
            f"/apis/{quote_segment(group)}/{quote_segment(version)}" if group else f"/api/{quote_segment(version)}",
        )
    except ApiError as refused:
        if refused.code == 404:
            return []
        raise
    entries: list[dict[str, Any]] = served.get("resources") or []
    subresources: dict[str, set[str]] = {}
    for entry in entries:
        plural, slash, subresource = entry["name"].partition("/")
        if slash:
            subresources.setdefault(plural, set()).add(subresource)
    return [
        Kind(
            group, version, entry["kind"], entry["name"], entry["namespaced"],
            tuple(entry.get("shortNames") or ()), singular=entry.get("singularName") or "",
            subresources=frozenset(subresources.get(entry["name"], ())), custom=True,
        )
        for entry in entries
        if "/" not in entry["name"]
    ]  # fmt: skip


async def review_access(
    transport: Transport, verb: str, kind: Kind, namespace: str = "", name: str = "", subresource: str = ""
) -> AccessReview:
    """Whether we may do this; `namespace` '' means everywhere."""
    wanted = {
        "verb": verb, "group": kind.group, "version": kind.version, "resource": kind.plural,
        "namespace": namespace, "name": name, "subresource": subresource,
    }  # fmt: skip
    attributes = {key: value for key, value in wanted.items() if value}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    request = ApiRequest("POST", _REVIEW, msgspec.json.encode(body), repeatable=True, verb="create", resource=_REVIEWS)
    response = await transport.send(request)
    status = msgspec.json.decode(response).get("status") or {}
    return AccessReview(bool(status.get("allowed")), str(status.get("reason") or ""))


async def _get(transport: Transport, path: str) -> Obj:
    return decode_response(await transport.send(ApiRequest("GET", path, repeatable=True, urgent=True)), transport, path)


def decode_response(body: bytes, transport: Transport, what: object) -> Obj:
    """An answer of a server that may not be one of ours."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict):
        raise not_json(transport.connection, str(what))
    return found
