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
class Right:
    """One verb on one resource; `names` limits it to objects of those names."""

    group: str
    resource: str  # with its subresource: frameworks/status
    verb: str
    why: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}"


def lease_rights(names: Iterable[str]) -> list[Right]:
    """In the operator's own namespace. Who may create cannot be told by name."""
    limited = tuple(names)
    return [
        *rights_on(LEASE, ("create",), "to be the first to lead"),
        *rights_on(LEASE, (*INFORMER_VERBS, "patch"), "to lead, and to see who does", limited),
    ]


def rules(rights: Iterable[Right]) -> list[Obj]:
    """The rules of a Role: verbs of the same resource together."""

    def place(right: Right) -> tuple[str, str, tuple[str, ...]]:
        return right.group, right.resource, right.names

    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(dict.fromkeys(right.verb for right in members)),
        }
        for (group, resource, names), members in groupby(sorted(rights, key=place), place)
    ]


def rights_on(kind: Kind, verbs: Iterable[str], why: str, names: tuple[str, ...] = ()) -> list[Right]:
    return [Right(kind.group, kind.plural, verb, why, names) for verb in verbs]
