"""The node's own objects: the Node and its Lease.

The Lease is renewed every ten seconds and shows that the agent lives; the Node's status is written when it changes and
every few minutes. A Node that is deleted while its agent runs is registered again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from shoal.cluster.client import Cluster, OutcomeUnknown, PatchType
from shoal.cluster.informer import Change, Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE, NODE
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj
from shoal.kube.owners import owner_reference
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.node.config import NodeConfig
from shoal.node.lease import NAMESPACE, held_message, new_lease, other_holder, renewal
from shoal.node.messages import MessageError
from shoal.node.node_object import node_object, node_status, stopped_condition
from shoal.node.status_manager import find_bound_pod

log = Logger(__name__)

RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 30.0

Refused = (ApiError, OutcomeUnknown, OSError)
FINAL = (400, 403, 422)  # the object itself is wrong or forbidden, and will be the next time


class NodeRefused(MessageError):
    """The API will never accept the Node as it is set up; the message has the reason."""


class Heartbeat:
    def __init__(self, cluster: Cluster, config: NodeConfig, pod_cidr: str) -> None:
        self._cluster = cluster
        self._config = config
        self._pod_cidr = pod_cidr
        self._node: Obj = {}
        self._holder = config.holder or config.name
        self._lease: Obj = {}  # as written last; empty: unknown
        self._deleted = asyncio.Event()

        def on_change(change: Change) -> None:
            if change.new is None:
                self._deleted.set()

        self._own = Informer(cluster, NODE, fields=f"metadata.name={config.name}", on_change=on_change)

    async def register(self) -> None:
        """Make the Node, or take over the one that is there; patient with an API that is not up yet. NodeRefused
        where patience would not help."""

        async def register_or_give_up() -> None:
            try:
                await self._register()
            except ApiError as refused:
                if refused.code not in FINAL:
                    raise
                parameters = {"node": self._config.name, "error": refused.message}
                raise NodeRefused(Message("NodeRefused.Rejected", parameters)) from refused

        await self._retry(register_or_give_up)
        await self._retry(self._renew)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._own.run())
            group.create_task(self._repeat(self._config.renew_seconds, self._renew))
            group.create_task(self._repeat(self._config.heartbeat_seconds, self._register))
            while True:
                await self._deleted.wait()
                self._deleted.clear()
                await self.register()

    async def set_not_ready(self) -> None:
        """Report once that the node is not ready; an API that does not respond is not retried."""
        patch = {"status": {"conditions": [stopped_condition(rfc3339(self._now()))]}}
        try:
            await self._cluster.patch(
                NODE, self._config.name, patch=patch, patch_type=PatchType.STRATEGIC, subresource="status",
                field_manager="shoal-node",
            )  # fmt: skip
        except Refused as refused:
            log.warning("the node could not resign", node=self._config.name, error=str(refused))

    async def find_pod(self, key: Key) -> Obj | None:
        """The pod as the API has it now, where it is bound to this node; retried until the API answers."""
        found: Obj | None = None

        async def find() -> None:
            nonlocal found
            found = await find_bound_pod(self._cluster, key, self._config.name)

        await self._retry(find)
        return found

    # The Node

    async def _register(self) -> None:
        config = self._config
        desired = node_object(config.name, config.machine, config.labels, self._pod_cidr, config.taints)
        labels = {"metadata": {"labels": desired["metadata"]["labels"]}}
        try:
            self._node = await self._cluster.patch(NODE, self._config.name, patch=labels)
        except ApiError as refused:
            if refused.code != 404:
                raise
            self._node = await self._cluster.create(NODE, desired)
        status = node_status(
            self._config.name,
            self._config.machine,
            self._config.allocatable,
            now=rfc3339(self._now()),
            known=self._node,
            kubelet_port=self._config.kubelet_port,
        )
        self._node = await self._cluster.patch(
            NODE, self._config.name, patch={"status": status}, subresource="status", field_manager="shoal-node"
        )

    # The Lease

    async def _renew(self) -> None:
        """Under the version seen last, so that of two agents that start at once only one gets the Lease."""
        known = self._lease
        if not known:
            try:
                known = await self._cluster.get(LEASE, self._config.name, NAMESPACE)
            except ApiError as refused:
                if refused.code != 404:
                    raise
        if other := other_holder(known, self._holder, self._now()):
            raise NodeRefused(held_message(self._config.name, other))
        spec = renewal(self._holder, self._config.lease_seconds, self._now())
        self._lease = {}  # a write without an answer leaves the version unknown: the next renewal reads it
        if known:
            patch = {"metadata": {"resourceVersion": known["metadata"]["resourceVersion"]}, "spec": spec}
            self._lease = await self._cluster.patch(LEASE, self._config.name, NAMESPACE, patch=patch)
            return
        lease = new_lease(self._config.name, spec)
        if self._node:
            owner = {"apiVersion": "v1", "kind": "Node", **self._node}
            lease["metadata"]["ownerReferences"] = [owner_reference(owner, controller=False, block=False)]
        self._lease = await self._cluster.create(LEASE, lease, NAMESPACE)

    # Patience

    async def _repeat(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)  # a lease is renewed by the clock, by its nature
            await self._retry(do)

    async def _retry(self, do: Callable[[], Awaitable[None]]) -> None:
        pause = RETRY_SECONDS
        while True:
            try:
                await do()
                return
            except Refused as refused:
                log.warning("the API did not take the node's word", node=self._config.name, error=str(refused))
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_RETRY_SECONDS)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._config.clock(), UTC)
