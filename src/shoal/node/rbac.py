"""The permissions a node needs in a cluster that runs elsewhere, beyond those the Node authorizer gives every node.

The Node authorizer permits a node to register itself, renew its Lease, and read and update what belongs to its own
pods. A node does what kube-proxy does too, and verifies client certificates, for which RBAC has to allow two reads
(docs/node.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from shoal.kube.kinds import CONFIG_MAP, ENDPOINT_SLICE, LEASE, Kind
from shoal.node import lease
from shoal.node.kubelet_api.authorization import CLIENT_CA_CONFIG_MAP


class NodePermission(NamedTuple):
    kind: Kind
    verbs: tuple[str, ...]
    why: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        named = f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{', '.join(self.verbs)} {self.kind.plural}{named}{place}, {self.why}"


REQUIRED_PERMISSIONS = (
    NodePermission(ENDPOINT_SLICE, ("list", "watch"), "for names and addresses"),
    NodePermission(
        CONFIG_MAP, ("list", "watch"), "to verify the client certificates of API servers", *CLIENT_CA_CONFIG_MAP
    ),
)

CanI = Callable[[str, NodePermission], Awaitable[bool]]


def lease_permission(node: str) -> NodePermission:
    """Of the rights that the Node authorizer gives, the one to recognize it by."""
    return NodePermission(LEASE, ("get", "patch"), "to report that the node is alive", lease.NAMESPACE, node)


async def missing_permissions(can_i: CanI, permissions: tuple[NodePermission, ...] = REQUIRED_PERMISSIONS) -> list[str]:
    """A line for each need of which a verb is not allowed, with those verbs."""
    checks = [(verb, permission) for permission in permissions for verb in permission.verbs]
    answers = await asyncio.gather(*(can_i(verb, permission) for verb, permission in checks))
    refused: dict[NodePermission, list[str]] = {}
    for (verb, permission), allowed in zip(checks, answers, strict=True):
        if not allowed:
            refused.setdefault(permission, []).append(verb)
    return [str(permission._replace(verbs=tuple(verbs))) for permission, verbs in refused.items()]
