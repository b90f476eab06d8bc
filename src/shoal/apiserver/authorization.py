"""Authorization: a fixed rule, because the embedded cluster has no Roles.

The administrator may do everything. A pod may read, in its own namespace, the objects by which the members of a job
find each other, and what the server publishes about itself to every client. It may not read Secrets, and it may not
write: with the right to create pods it would be the account that started the cluster.
"""

from __future__ import annotations

from shoal.apiserver import request_info
from shoal.apiserver.auth import User
from shoal.apiserver.discovery import REVIEW_KINDS
from shoal.apiserver.request import Request
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE

READ_VERBS = ("get", "list", "watch")
READABLE = (
    *((kind.group, kind.plural) for kind in (POD, SERVICE, ENDPOINTS, ENDPOINT_SLICE, CONFIG_MAP)),
    ("frameworkcontroller.microsoft.com", "frameworks"),
)
SERVER_RESOURCES = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")

_REVIEWS = frozenset((kind.group, kind.plural) for kind in REVIEW_KINDS)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def check(user: User, request: Request) -> None:
    """Raises 403 where the user may not make the request."""
    if user.namespace is None:
        return
    info = request_info.read(request.path)
    if info is None or not info.plural:
        verb = "get" if request.method in ("GET", "HEAD", "OPTIONS") else request.method.lower()
        if not may_use_path(user, verb, request.path):
            raise ApiError(403, "Forbidden", f'forbidden: User "{user.name}" cannot {verb} path "{request.path}"', {})
        return
    if request.method in ("GET", "HEAD", "OPTIONS"):
        is_watch = info.watched or request.query.get("watch")
        verb = "get" if info.name else "watch" if is_watch else "list"
    elif request.method == "DELETE":
        verb = "delete" if info.name else "deletecollection"
    else:
        verb = _VERBS.get(request.method, request.method.lower())
    if (info.group, info.plural) in _REVIEWS and verb == "create":
        return  # every user may ask what it may do
    resource = f"{info.plural}/{info.subresource}" if info.subresource else info.plural
    if not may_use_resource(user, verb, info.group, resource, info.namespace or ""):
        where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
        plural = f"{info.plural}.{info.group}" if info.group else info.plural
        target = f'{plural} "{info.name}"' if info.name else plural
        message = (
            f'{target} is forbidden: User "{user.name}" cannot {verb} resource "{resource}" in API group '
            f'"{info.group}" {where}'
        )
        details = {"name": info.name, "group": info.group, "kind": info.plural}
        raise ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})


def may_use_path(user: User, verb: str, path: str) -> bool:
    if user.namespace is None:
        return True
    return verb == "get" and any(path == each or path.startswith(f"{each}/") for each in SERVER_RESOURCES)


def may_use_resource(user: User, verb: str, group: str, resource: str, namespace: str) -> bool:
    """`resource` with its subresource, `pods/log`; `namespace` '' means all of them."""
    if user.namespace is None:
        return True
    return verb in READ_VERBS and (group, resource) in READABLE and bool(namespace) and namespace == user.namespace
