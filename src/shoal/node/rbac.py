"""What a node needs in a cluster that runs elsewhere, beyond what the Node authorizer allows every node.

The Node authorizer lets a node register itself, renew its Lease, and read and update what belongs to its own pods. It
does what kube-proxy does too, and verifies client certificates, for which RBAC has to allow two reads (docs/node.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from shoal.kube.kinds import CONFIG_MAP, ENDPOINT_SLICE, LEASE, Kind
from shoal.node import lease
from shoal.node.kubelet_api.authorization import AUTHORITIES


class Need(NamedTuple):
    kind: Kind
    verbs: tuple[str, ...]
    why: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        named = f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{', '.join(self.verbs)} {self.kind.plural}{named}{place}, {self.why}"


NEEDS = (
    Need(ENDPOINT_SLICE, ("list", "watch"), "for names and addresses"),
    Need(CONFIG_MAP, ("list", "watch"), "to verify the client certificates of API servers", *AUTHORITIES),
)

May = Callable[[str, Need], Awaitable[bool]]


def lease_need(node: str) -> Need:
    """Of the rights that the Node authorizer gives, the one to recognize it by."""
    return Need(LEASE, ("get", "patch"), "to report that the node is alive", lease.NAMESPACE, node)


async def missing(may: May, needs: tuple[Need, ...] = NEEDS) -> list[str]:
    """A line for each need of which a verb is not allowed, with those verbs."""
    asked = [(verb, need) for need in needs for verb in need.verbs]
    answers = await asyncio.gather(*(may(verb, need) for verb, need in asked))
    refused: dict[Need, list[str]] = {}
    for (verb, need), allowed in zip(asked, answers, strict=True):
        if not allowed:
            refused.setdefault(need, []).append(verb)
    return [str(need._replace(verbs=tuple(verbs))) for need, verbs in refused.items()]
