"""Who am I, and what may I do? The answers follow the rule in `authorization`.

`kubectl auth can-i` and `kubectl auth whoami` ask by creating objects that are answered and not kept.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.apiserver import authorization
from shoal.apiserver.auth import User
from shoal.kube.errors import Cause, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_WHY_ALL = "the token of this cluster's kubeconfig may do everything"
_WHY_SOME = (
    "pods may read the pods, services, endpoints, configmaps and frameworks of their own namespace, nothing else"
)


def answer(kind: Kind, review: Obj, user: User) -> Obj:
    """The review with its status filled in."""
    metadata = {**(review.get("metadata") or {}), "creationTimestamp": None}
    filled = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    if isinstance(review.get("spec"), dict):
        filled["spec"] = review["spec"]
    return {**filled, "status": _STATUS[kind.kind](kind, review, user)}


def _access(kind: Kind, review: Obj, user: User) -> Obj:
    spec = review.get("spec")
    asked = [
        name for name in ("resourceAttributes", "nonResourceAttributes") if isinstance(spec, dict) and spec.get(name)
    ]
    if len(asked) != 1:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(kind, "", [Cause("FieldValueInvalid", f"Invalid value: null: {why}", "spec.resourceAttributes")])
    allowed = _may(user, asked[0], review["spec"][asked[0]])
    return {"allowed": allowed, "reason": _WHY_ALL if user.namespace is None else _WHY_SOME}


def _may(user: User, attributes: str, asked: Obj) -> bool:
    if attributes == "nonResourceAttributes":
        return authorization.may_use_path(user, asked.get("verb") or "", asked.get("path") or "")
    parts = [part for part in (asked.get("resource"), asked.get("subresource")) if part]
    group, namespace = asked.get("group") or "", asked.get("namespace") or ""
    return authorization.may_use_resource(user, asked.get("verb") or "", group, "/".join(parts), namespace)


def _rules(_: Kind, review: Obj, user: User) -> Obj:
    if user.namespace is not None:
        is_own = ((review.get("spec") or {}).get("namespace") or "") == user.namespace
        verbs = list(authorization.READ_VERBS)
        readable = authorization.READABLE if is_own else ()
        paths = [*authorization.ABOUT_THE_SERVER, *(f"{path}/*" for path in authorization.ABOUT_THE_SERVER)]
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
