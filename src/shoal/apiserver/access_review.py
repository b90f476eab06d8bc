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


def _access(kind: Kind, review: Obj, user: User) -> Obj:
    spec = review.get("spec")
    review_attributes = [
        name for name in ("resourceAttributes", "nonResourceAttributes") if isinstance(spec, dict) and spec.get(name)
    ]
    if len(review_attributes) != 1:
        reason = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(
            kind, "", [Cause("FieldValueInvalid", f"Invalid value: null: {reason}", "spec.resourceAttributes")]
        )
    allowed = _may(user, review_attributes[0], review["spec"][review_attributes[0]])
    return {"allowed": allowed, "reason": _ADMIN_REASON if user.namespace is None else _NAMESPACE_REASON}


def _may(user: User, attributes: str, review_attributes: Obj) -> bool:
    if attributes == "nonResourceAttributes":
        return authorization.may_use_path(
            user, review_attributes.get("verb") or "", review_attributes.get("path") or ""
        )
    parts = [part for part in (review_attributes.get("resource"), review_attributes.get("subresource")) if part]
    group, namespace = review_attributes.get("group") or "", review_attributes.get("namespace") or ""
    return authorization.may_use_resource(user, review_attributes.get("verb") or "", group, "/".join(parts), namespace)


def _rules(_: Kind, review: Obj, user: User) -> Obj:
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


def _self(_: Kind, __: Obj, user: User) -> Obj:
    return {"userInfo": {"username": user.name, "groups": list(user.groups)}}


_STATUS: dict[str, Callable[[Kind, Obj, User], Obj]] = {
    "SelfSubjectAccessReview": _access,
    "SelfSubjectRulesReview": _rules,
    "SelfSubjectReview": _self,
}
