"""What a node must be allowed to do in a cluster that runs elsewhere, each right with the reason it is needed for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from shoal.kube.kinds import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    EVENT,
    LEASE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from shoal.node.kubelet.callers import ACCESS_REVIEW, TOKEN_REVIEW


class Need(NamedTuple):
    kind: Kind
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


SEE = ("list", "watch")
NEEDS = (
    Need(NODE, ("get", *SEE, "create", "patch"), "to register this machine"),
    Need(NODE, ("patch",), "to tell what it has and that it is ready", "status"),
    Need(LEASE, ("get", "create", "patch"), "to tell that it is alive"),
    Need(POD, ("get", *SEE, "delete"), "to see which pods are to run here, and let go those that have ended"),
    Need(POD, ("patch",), "to tell how they are", "status"),
    Need(SERVICE, SEE, "for names and addresses"),
    Need(ENDPOINT_SLICE, SEE, "for names and addresses"),
    Need(CONFIG_MAP, SEE, "for volumes and variables"),
    Need(SECRET, SEE, "for volumes and variables"),
    Need(PERSISTENT_VOLUME_CLAIM, SEE, "for volumes"),
    Need(PERSISTENT_VOLUME, SEE, "for volumes"),
    Need(SERVICE_ACCOUNT, ("create",), "for the tokens of pods", "token"),
    Need(EVENT, ("create", "patch"), "to say what happens"),
    Need(TOKEN_REVIEW, ("create",), "to know who asks for logs"),
    Need(ACCESS_REVIEW, ("create",), "to know whether he may"),
)

May = Callable[[str, Need], Awaitable[bool]]


async def missing(may: May) -> list[str]:
    """A line for each thing that is not allowed: the verbs, the resource, the reason."""
    asked = [(verb, need) for need in NEEDS for verb in need.verbs]
    answers = await asyncio.gather(*(may(verb, need) for verb, need in asked))
    refused: dict[Need, list[str]] = {}
    for (verb, need), allowed in zip(asked, answers, strict=True):
        if not allowed:
            refused.setdefault(need, []).append(verb)
    return [f"{', '.join(verbs)} {need.resource}, {need.why}" for need, verbs in refused.items()]
