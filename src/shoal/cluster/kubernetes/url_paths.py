"""The paths of an API server, and the query parameters and bodies of requests."""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import quote, urlencode

from shoal.cluster.client import DeleteOptions
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_is_plain = re.compile(r"[a-z0-9][a-z0-9.-]*").fullmatch  # nearly every name there is


@cache
def root_of(kind: Kind) -> str:
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


def path_of(kind: Kind, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """Where objects of the kind are; `namespace` None or '' means all of them. A name may be any text."""
    path = root_of(kind)
    if kind.namespaced and namespace:
        path = f"{path}/namespaces/{quote_segment(namespace)}"
    path = f"{path}/{kind.plural}"
    if name:
        path = f"{path}/{quote_segment(name)}"
    return f"{path}/{subresource}" if subresource else path


def quote_segment(name: str) -> str:
    """The name as quoted in a path: `..` would mean the folder above, so it becomes a name that nothing can have."""
    if _is_plain(name):
        return name
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def with_query(path: str, **parameters: str | None) -> str:
    """The path with the parameters that are not empty."""
    query = {name: value for name, value in parameters.items() if value}
    return f"{path}?{urlencode(query)}" if query else path


def bool_param(value: bool) -> str:
    return "true" if value else ""


def int_param(value: int | None) -> str:
    return "" if value is None else str(value)


@cache
def write_query(manager: str, *, dry_run: bool, force: bool = False) -> str:
    """The query of a write, with its question mark."""
    return with_query("", fieldManager=manager, dryRun="All" if dry_run else "", force=bool_param(force))


def delete_options_body(options: DeleteOptions | None) -> Obj:
    """The body of a delete."""
    body: Obj = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if options is None:
        return body
    if options.grace_seconds is not None:
        body["gracePeriodSeconds"] = options.grace_seconds
    if options.propagation is not None:
        body["propagationPolicy"] = options.propagation.value
    preconditions = {"uid": options.preconditions.uid, "resourceVersion": options.preconditions.resource_version}
    if any(preconditions.values()):
        body["preconditions"] = {name: value for name, value in preconditions.items() if value}
    if options.dry_run:
        body["dryRun"] = ["All"]
    return body
