"""Who am I, and what may I do? There is one user, and that user may do everything.

`kubectl auth can-i` and `kubectl auth whoami` ask by creating objects that are answered and not kept.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.apiserver.auth import GROUPS, USER
from shoal.kube.errors import Cause, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_WHY = "the token of this cluster's kubeconfig may do everything"


def answer(kind: Kind, review: Obj) -> Obj:
    """The review with its status filled in."""
    metadata = {**(review.get("metadata") or {}), "creationTimestamp": None}
    filled = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    if isinstance(review.get("spec"), dict):
        filled["spec"] = review["spec"]
    return {**filled, "status": _STATUS[kind.kind](kind, review)}


def _access(kind: Kind, review: Obj) -> Obj:
    spec = review.get("spec")
    asked = [
        name for name in ("resourceAttributes", "nonResourceAttributes") if isinstance(spec, dict) and spec.get(name)
    ]
    if len(asked) != 1:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(kind, "", [Cause("FieldValueInvalid", f"Invalid value: null: {why}", "spec.resourceAttributes")])
    return {"allowed": True, "reason": _WHY}


def _rules(_: Kind, __: Obj) -> Obj:
    return {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }


def _self(_: Kind, __: Obj) -> Obj:
    return {"userInfo": {"username": USER, "groups": list(GROUPS)}}


_STATUS: dict[str, Callable[[Kind, Obj], Obj]] = {
    "SelfSubjectAccessReview": _access,
    "SelfSubjectRulesReview": _rules,
    "SelfSubjectReview": _self,
}
