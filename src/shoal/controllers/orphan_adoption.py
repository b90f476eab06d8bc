"""Keeps pods and the owners that select them together: orphans are adopted by a ReplicaSet or Job, others released.

The rules are those of `shoal.dialects.native.adoption`; here is decided which objects are checked, and when: a pod
when its labels or its owner change, the orphans of a namespace when an owner that may select them appears, and the
pods of an owner when it appears or selects others. So nothing depends on which informer is synced first. How the new
owner reacts to its number of pods is the work of its own reconciler.
"""

from __future__ import annotations

import asyncio

from shoal.cluster.client import Cluster, PatchType
from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.owner_index import OwnerIndex
from shoal.controller_runtime.runnables import subscribe_all, wait_forever
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.dialects.native.adoption import (
    Adopter,
    adopter_from,
    adopter_of,
    adoption_patch,
    is_released,
    release_patch,
    slim,
)
from shoal.kube.errors import ApiError
from shoal.kube.kinds import JOB, POD, REPLICA_SET
from shoal.kube.objects import Key, Obj, labels_of, uid_of
from shoal.kube.owners import controller_of
from shoal.logs import Logger

log = Logger(__name__)


class OrphanAdoptionController:
    """`pods` caches pods with their owner references."""

    name = "adoption"

    def __init__(self, cluster: Cluster, pods: Informer, *, clock: Clock) -> None:
        self._cluster = cluster
        self._pods = pods
        self._owners = [
            Informer(cluster, kind, trim=lambda event: slim(event.object), clock=clock) for kind in (REPLICA_SET, JOB)
        ]
        self._claimants: dict[str, dict[str, Adopter]] = {}  # by namespace and uid
        self._index = OwnerIndex()
        self._work = WorkQueue(self.name, self.reconcile, clock=clock)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._owners:
                group.create_task(informer.run())
            subscriptions = [(informer, self.on_owner_change) for informer in self._owners]
            with subscribe_all(*subscriptions, (self._pods, self.on_pod_change)):
                try:
                    await wait_forever()
                finally:
                    await self._work.close()

    # Events

    def on_owner_change(self, change: Change) -> None:
        namespace = change.key.namespace
        claimants = self._claimants.setdefault(namespace, {})
        before = claimants.pop(uid_of(change.old), None) if change.old is not None else None
        now = adopter_from(change.kind, change.new) if change.new is not None else None
        if now is not None:
            claimants[now.uid] = now
        if not claimants:
            del self._claimants[namespace]
        if now is not None and now != before:
            for key in (*self._index.orphans_in(namespace), *self._index.owned_by(now.uid)):
                self._work.add(key)

    def on_pod_change(self, change: Change) -> None:
        key, old, new = change.key, change.old, change.new
        self._index.update(change)
        if new is None or key.namespace not in self._claimants:
            return
        # Another owner may select it now.
        if old is None or labels_of(old) != labels_of(new) or controller_of(old) != controller_of(new):
            self._work.add(key)

    # One pod

    async def reconcile(self, key: Key) -> None:
        for informer in self._owners:
            await informer.synced.wait()
        pod = self._pods.objects.get(key)
        if pod is None:
            return
        claimants = self._claimants.get(key.namespace, {})
        controller = controller_of(pod)
        if controller is not None:
            owner = claimants.get(str(controller.get("uid")))
            if owner is not None and is_released(pod, owner):
                await self._patch(key, release_patch(pod, owner), "let go", owner)
        elif (owner := adopter_of(pod, claimants.values())) is not None:
            await self._patch(key, adoption_patch(pod, owner), "taken", owner)

    async def _patch(self, key: Key, patch: Obj, what: str, owner: Adopter) -> None:
        try:
            await self._cluster.patch(POD, key.name, key.namespace, patch=patch, patch_type=PatchType.STRATEGIC)
        except ApiError as refused:
            if refused.code not in (404, 409, 422):  # gone, another by now, or leaving: its next change is looked at
                raise
        else:
            log.info(f"pod {what}", pod=str(key), owner=f"{owner.kind.kind} {owner.key.name}")
