"""Discovery of groups, versions and resources: the first requests of a client.

Two forms of the same facts: one document per group and version, and the aggregated one with everything in two
responses. Responses carry an ETag, so that a repeated request usually gets only a 304.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Iterable
from typing import Any

from shoal import __version__
from shoal.apiserver import responses
from shoal.apiserver.responses import BytesResponse
from shoal.kube.kinds import NAMESPACE, VERBS, Kind
from shoal.kube.objects import Obj

# The release whose behaviour this server keeps to; clients compare it with their own.
KUBERNETES_MAJOR, KUBERNETES_MINOR = "1", "36"

_REVIEWS = ("create",)
_READ_ONLY = ("get", "list")
_WITHOUT_COLLECTIONS = tuple(verb for verb in VERBS if verb != "deletecollection")  # too much would go with them
REVIEW_KINDS = (
    Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    Kind("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
    Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False),
)
METRIC_KINDS = (
    Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False),
    Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True),
)

# What a subresource takes and gives: verbs, and the kind where it is not the parent's.
_SUBRESOURCES: dict[str, tuple[tuple[str, ...], tuple[str, str, str] | None]] = {
    "status": (("get", "patch", "update"), None),
    "scale": (("get", "patch", "update"), ("autoscaling", "v1", "Scale")),
    "log": (("get",), None),
    "exec": (("create", "get"), ("", "v1", "PodExecOptions")),
    "binding": (("create",), ("", "v1", "Binding")),
    "eviction": (("create",), ("policy", "v1", "Eviction")),
    "finalize": (("update",), None),
}


def verbs_of(kind: Kind) -> tuple[str, ...]:
    if kind in REVIEW_KINDS:
        return _REVIEWS
    if kind == NAMESPACE:
        return _WITHOUT_COLLECTIONS
    return _READ_ONLY if kind in METRIC_KINDS else VERBS


def version_info() -> Obj:
    machine = platform.machine()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    return {
        "major": KUBERNETES_MAJOR,
        "minor": KUBERNETES_MINOR,
        "gitVersion": f"v{KUBERNETES_MAJOR}.{KUBERNETES_MINOR}.0+shoal-{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{'.'.join(map(str, sys.version_info[:3]))}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"linux/{architecture}",
    }


def all_kinds(stored: Iterable[Kind]) -> tuple[Kind, ...]:
    """The stored kinds and those that are answered without storing anything."""
    return (*stored, *REVIEW_KINDS, *METRIC_KINDS)


def core_versions(host: str) -> Obj:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    }


def group_list(kinds: Iterable[Kind]) -> Obj:
    groups = [_group(name, versions) for name, versions in _groups(kinds).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Iterable[Kind], name: str) -> Obj | None:
    versions = _groups(kinds).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions and name else None


def _group(name: str, versions: dict[str, list[Kind]]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(kinds: Iterable[Kind], group_name: str, version: str) -> Obj | None:
    members = _groups(kinds).get(group_name, {}).get(version)
    if members is None:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group_name}/{version}" if group_name else version,
        "resources": [entry for kind in members for entry in _resources(kind)],
    }


def _resources(kind: Kind) -> list[Obj]:
    entry: Obj = {
        "name": kind.plural,
        "singularName": _singular(kind),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(verbs_of(kind)),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    entries = [entry]
    for name in _subresources(kind):
        verbs, response_kind = _SUBRESOURCES[name]
        subentry: Obj = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
        if response_kind is not None and response_kind[:2] != (kind.group, kind.version):
            subentry |= {"group": response_kind[0], "version": response_kind[1]}
        shown_kind = response_kind[2] if response_kind else kind.kind
        entries.append({**subentry, "kind": shown_kind, "verbs": list(verbs)})
    return entries


def _subresources(kind: Kind) -> list[str]:
    return [name for name in sorted(kind.subresources) if name in _SUBRESOURCES]


def aggregated(kinds: Iterable[Kind], version: str, *, core: bool) -> Obj:
    """Everything below /api (the core group) or below /apis, in one document."""
    items = []
    for name, versions in _groups(kinds).items():
        if (name == "") == core:
            listed = [
                {"version": v, "resources": [_aggregated_resource(kind) for kind in members], "freshness": "Current"}
                for v, members in versions.items()
            ]
            items.append({"metadata": {"name": name} if name else {}, "versions": listed})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _aggregated_resource(kind: Kind) -> Obj:
    entry: Obj = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": _singular(kind),
        "verbs": list(verbs_of(kind)),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    subresources = []
    for name in _subresources(kind):
        verbs, response_kind = _SUBRESOURCES[name]
        response_kind = response_kind or (kind.group, kind.version, kind.kind)
        shown_kind = _response_kind(kind, *response_kind)
        subresources.append({"subresource": name, "responseKind": shown_kind, "verbs": list(verbs)})
    if subresources:
        entry["subresources"] = subresources
    return entry


def _response_kind(parent: Kind, group_name: str, version: str, kind: str) -> dict[str, str]:
    """Group and version are left empty where they are those of the resource's own place in the document."""
    own = (group_name, version) == (parent.group, parent.version)
    return {"group": "" if own else group_name, "version": "" if own else version, "kind": kind}


def _singular(kind: Kind) -> str:
    return kind.singular or kind.kind.lower()


def _groups(kinds: Iterable[Kind]) -> dict[str, dict[str, list[Kind]]]:
    """Group -> version -> kinds; versions with the most stable and newest first."""
    found: dict[str, dict[str, list[Kind]]] = {}
    for kind in kinds:
        found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return {
        name: {v: sorted(versions[v], key=lambda kind: kind.plural) for v in sorted(versions, key=version_rank)}
        for name, versions in found.items()
    }


_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


def version_rank(version: str) -> tuple[Any, ...]:
    """Sorts v2, v1, v1beta2, v1beta1, v1alpha1, then anything else by name, as Kubernetes prefers them."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return (9, 0, 0, version)
    return (_STABILITY[parts[2]], -int(parts[1]), -int(parts[3] or 0), "")


def with_etag(document: Obj, known: bytes, content_type: bytes = responses.JSON) -> BytesResponse:
    """The document with its ETag, or 304 where the client has it already."""
    body = responses.encode(document)
    tag = b'"%b"' % hashlib.sha256(body).hexdigest().upper().encode()
    headers = ((b"etag", tag), (b"vary", b"Accept"), (b"cache-control", b"public"))
    if known == tag:
        return BytesResponse(b"", 304, content_type, headers)
    return BytesResponse(body, 200, content_type, headers)
