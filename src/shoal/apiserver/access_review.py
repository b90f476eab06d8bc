"""Access reviews: the identity and the permissions of the caller, by the rule in `authorization`.

`kubectl auth can-i` and `kubectl auth whoami` create review objects, which are answered and not stored.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.apiserver import authorization
from shoal.apiserver.auth import User
from shoal.kube.errors import Cause, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_ADMIN_REASON = "the token of this cluster's kubeconfig may do everything"
_NAMESPACE_REASON = (
    "pods may read the pods, services, endpoints, configmaps and frameworks of their own namespace, nothing else"
)


def respond(kind: Kind, review: Obj, user: User) -> Obj:
    """The review with its status filled in."""
    metadata = {**(review.get("metadata") or {}), "creationTimestamp": None}
    response = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    if isinstance(review.get("spec"), dict):
        response["spec"] = review["spec"]
    return {**response, "status": _STATUS[kind.kind](kind, review, user)}


def review_access(kind: Kind, review: Obj, user: User) -> Obj:
    spec = review.get("spec")
    given = [
        name for name in ("resourceAttributes", "nonResourceAttributes") if isinstance(spec, dict) and spec.get(name)
    ]
    if len(given) != 1:
        reason = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(
            kind, "", [Cause("FieldValueInvalid", f"Invalid value: null: {reason}", "spec.resourceAttributes")]
        )
    attributes = review["spec"][given[0]]
    verb = attributes.get("verb") or ""
    if given[0] == "nonResourceAttributes":
        allowed = authorization.may_use_path(user, verb, attributes.get("path") or "")
    else:
        parts = [part for part in (attributes.get("resource"), attributes.get("subresource")) if part]
        group, namespace = attributes.get("group") or "", attributes.get("namespace") or ""
        allowed = authorization.may_use_resource(user, verb, group, "/".join(parts), namespace)
    return {"allowed": allowed, "reason": _ADMIN_REASON if user.namespace is None else _NAMESPACE_REASON}


def review_rules(_: Kind, review: Obj, user: User) -> Obj:
    if user.namespace is not None:
        is_own = ((review.get("spec") or {}).get("namespace") or "") == user.namespace
        verbs = list(authorization.READ_VERBS)
        readable = authorization.READABLE if is_own else ()
        paths = [*authorization.SERVER_RESOURCES, *(f"{path}/*" for path in authorization.SERVER_RESOURCES)]
        return {
            "resourceRules": [{"verbs": verbs, "apiGroups": [group], "resources": [name]} for group, name in readable],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": paths}],
            "incomplete": False,
        }
    return {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }


def review_self(_: Kind, __: Obj, user: User) -> Obj:
    return {"userInfo": {"username": user.name, "groups": list(user.groups)}}


_STATUS: dict[str, Callable[[Kind, Obj, User], Obj]] = {
    "SelfSubjectAccessReview": review_access,
    "SelfSubjectRulesReview": review_rules,
    "SelfSubjectReview": review_self,
}
