"""The Deployment controller of the embedded cluster: carries out `rollout.plan_rollout` for each Deployment that
changed.

A pass writes ReplicaSets first and the status of the Deployment last, each write on the version the plan has seen; a
write to an object that has changed since is rejected, and the change itself triggers the next pass. So a pass may be
cut anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from shoal.cluster.client import Cluster, DeleteOptions, OutcomeUnknown, PatchType, Preconditions
from shoal.cluster.clock import Clock, Timer
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder
from shoal.cluster.informer import Change, Informer, strip_managed_fields
from shoal.controller_runtime.owner_index import OwnerIndex
from shoal.controller_runtime.runnables import subscribe_all
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.controllers.deployments import rollout
from shoal.controllers.deployments import status as progress
from shoal.controllers.deployments.replica_sets import has_template_of
from shoal.dialects.native.adoption import Adopter, adopter_of, adoption_patch, is_released, release_patch
from shoal.kube.errors import ApiError
from shoal.kube.kinds import DEPLOYMENT, REPLICA_SET
from shoal.kube.objects import Key, Obj, annotations_of, at_path, is_terminating, key_of, labels_of, uid_of
from shoal.kube.owners import controller_of, is_controlled_by
from shoal.kube.selectors import from_label_selector

_OUTDATED = (404, 409)  # gone, or changed: the watch reports it, and the next pass sees it


class DeploymentController:
    name = "deployments"

    def __init__(self, cluster: Cluster, *, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._recorder = EventRecorder(cluster, "deployment-controller", clock=clock)
        self._deployments = Informer(cluster, DEPLOYMENT, trim=strip_managed_fields, clock=clock)
        self._sets = Informer(cluster, REPLICA_SET, trim=strip_managed_fields, clock=clock)
        self._index = OwnerIndex()
        self._timers: dict[Key, Timer] = {}
        self._work = WorkQueue(self.name, self.reconcile, clock=clock)

    async def run(self) -> None:
        subscriptions = (
            (self._deployments, lambda change: self._work.add(change.key)),
            (self._sets, self.on_replica_set_change),
        )
        try:
            with subscribe_all(*subscriptions):
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._deployments.run())
                    group.create_task(self._sets.run())
        finally:
            for timer in self._timers.values():
                timer.cancel()
            await self._work.close()

    # Events

    def on_replica_set_change(self, change: Change) -> None:
        self._index.update(change)
        for replica_set in (change.old, change.new):
            controller = controller_of(replica_set) if replica_set is not None else None
            if controller is not None and controller.get("kind") == DEPLOYMENT.kind:
                self._work.add(Key(change.key.namespace, str(controller.get("name"))))
        old, new = change.old, change.new
        if new is None or controller_of(new) is not None:
            return
        # An orphan, and a new one: a Deployment may adopt it.
        if old is None or controller_of(old) is not None or labels_of(old) != labels_of(new):
            for key, deployment in self._deployments.objects.items():
                if key.namespace == change.key.namespace and adopter_of(new, [_claimant(deployment)]):
                    self._work.add(key)

    # One pass

    async def reconcile(self, key: Key) -> None:
        for informer in (self._deployments, self._sets):
            await informer.synced.wait()
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        deployment = self._deployments.objects.get(key)
        if deployment is None:
            return
        try:
            if not await self._adopt_and_release(deployment):
                await self._execute(
                    deployment, rollout.plan_rollout(deployment, self._owned(deployment), self._clock.now())
                )
        except ApiError as refused:
            if refused.code not in _OUTDATED:
                raise

    def _owned(self, deployment: Obj) -> list[Obj]:
        return [self._sets.objects[key] for key in self._index.owned_by(uid_of(deployment))]

    async def _adopt_and_release(self, deployment: Obj) -> bool:
        """Orphans that it selects become its own, and those it does not select any more go free."""
        if is_terminating(deployment):
            return False
        claimant = _claimant(deployment)
        orphans = [self._sets.objects[key] for key in self._index.orphans_in(claimant.key.namespace)]
        patches = [(each, adoption_patch(each, claimant)) for each in orphans if adopter_of(each, [claimant])]
        patches += [
            (each, release_patch(each, claimant)) for each in self._owned(deployment) if is_released(each, claimant)
        ]
        for replica_set, patch in patches:
            await self._patch_set(replica_set, patch, PatchType.STRATEGIC)
        return bool(patches)

    async def _execute(self, deployment: Obj, plan: rollout.RolloutPlan) -> None:
        for write in plan.writes:
            try:
                if not await self._write(deployment, write):
                    return
            except ApiError as refused:
                if refused.code not in _OUTDATED:
                    await self._record(deployment, WARNING, "ReplicaSetUpdateError", refused.message)
                raise
            if not isinstance(write, rollout.DeleteReplicaSet) and write.event:
                await self._record(deployment, NORMAL, "ScalingReplicaSet", write.event)
        await self._write_status(deployment, plan.status, plan.annotations)
        if plan.wake_at is not None:
            key, seconds = key_of(deployment), max((plan.wake_at - self._clock.now()).total_seconds(), 0.0)
            self._timers[key] = self._clock.call_later(seconds, lambda: self._work.add(key))

    async def _write(self, deployment: Obj, write: rollout.Write) -> bool:
        """Whether the plan continues."""
        replica_set = write.replica_set
        if isinstance(write, rollout.CreateReplicaSet):
            return await self._create(deployment, replica_set)
        if isinstance(write, rollout.PatchReplicaSet):
            await self._patch_set(replica_set, write.patch, PatchType.MERGE)
        else:
            seen = Preconditions(uid_of(replica_set), replica_set["metadata"]["resourceVersion"])
            key = key_of(replica_set)
            await self._cluster.delete(REPLICA_SET, key.name, key.namespace, DeleteOptions(preconditions=seen))
        return True

    async def _create(self, deployment: Obj, replica_set: Obj) -> bool:
        key = key_of(replica_set)
        try:
            made = await self._cluster.create(REPLICA_SET, replica_set, key.namespace)
        except ApiError as refused:
            if refused.reason == "AlreadyExists":
                # The name is taken: by the ReplicaSet itself, which the watch is about to show, or by another one.
                found = await self._cluster.get(REPLICA_SET, key.name, key.namespace)
                if not (is_controlled_by(found, deployment) and has_template_of(found, replica_set)):
                    status = deployment.get("status") or {}
                    collisions = int(at_path(status, "collisionCount", default=0)) + 1
                    await self._write_status(deployment, {**status, "collisionCount": collisions})
                return False
            failed = progress.creation_failed(deployment, key.name, refused.message, self._clock.now())
            if failed != deployment.get("status"):
                await self._write_status(deployment, failed)
            raise
        await self._reach(made)
        return True

    async def _patch_set(self, replica_set: Obj, patch: Obj, form: PatchType) -> None:
        key = key_of(replica_set)
        await self._reach(await self._cluster.patch(REPLICA_SET, key.name, key.namespace, patch=patch, patch_type=form))

    async def _reach(self, written: Obj) -> None:
        """The next pass sees this write."""
        await self._sets.wait_for_version(int(written["metadata"]["resourceVersion"]))

    async def _write_status(
        self, deployment: Obj, status: Obj, annotations: Mapping[str, str | None] | None = None
    ) -> None:
        before, stored = deployment.get("status") or {}, annotations_of(deployment)
        changed = {name: text for name, text in (annotations or {}).items() if stored.get(name) != text}
        if status == before and not changed:
            return
        seen = {"uid": uid_of(deployment), "resourceVersion": deployment["metadata"]["resourceVersion"]}
        gone = dict.fromkeys(before.keys() - status.keys())
        patch = {"metadata": {**seen, **({"annotations": changed} if changed else {})}, "status": {**gone, **status}}
        key = key_of(deployment)
        await self._cluster.patch(DEPLOYMENT, key.name, key.namespace, patch=patch, subresource="status")

    async def _record(self, deployment: Obj, severity: str, reason: str, message: str) -> None:
        """An Event helps people; the controller does without where it cannot be written."""
        try:
            await self._recorder.record(deployment, severity, reason, message)
        except (ApiError, OutcomeUnknown, OSError):
            return


def _claimant(deployment: Obj) -> Adopter:
    created = str(deployment["metadata"].get("creationTimestamp") or "")
    selector = from_label_selector(deployment["spec"].get("selector"))
    return Adopter(DEPLOYMENT, key_of(deployment), uid_of(deployment), created, selector)
