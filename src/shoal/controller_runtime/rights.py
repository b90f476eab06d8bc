"""Rights as data: one verb on one resource with the reason it is needed, and the RBAC rules made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from shoal.kube.kinds import (
    LEASE,
    Kind,
)
from shoal.kube.objects import Obj

INFORMER_VERBS = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource; `names` limits it to objects of those names."""

    group: str
    resource: str  # with its subresource: frameworks/status
    verb: str
    why: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}"


def lease_permissions(names: Iterable[str]) -> list[Permission]:
    """In the operator's own namespace. The right to create cannot be limited by name."""
    limited = tuple(names)
    return [
        *permissions_on(LEASE, ("create",), "to be the first to lead"),
        *permissions_on(LEASE, (*INFORMER_VERBS, "patch"), "to lead, and to see who does", limited),
    ]


def policy_rules(permissions: Iterable[Permission]) -> list[Obj]:
    """The rules of a Role: verbs of the same resource together."""

    def group_key(permission: Permission) -> tuple[str, str, tuple[str, ...]]:
        return permission.group, permission.resource, permission.names

    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(dict.fromkeys(permission.verb for permission in members)),
        }
        for (group, resource, names), members in groupby(sorted(permissions, key=group_key), group_key)
    ]


def permissions_on(kind: Kind, verbs: Iterable[str], why: str, names: tuple[str, ...] = ()) -> list[Permission]:
    return [Permission(kind.group, kind.plural, verb, why, names) for verb in verbs]
