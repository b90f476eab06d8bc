"""The controller that gives pods of the scheduler `volcano` a PodGroup where they name none.

The scheduler counts such pods as members of the group before it exists and waits for it, so the order of events does
not matter. A group is deleted with its last pod; the owner reference covers the time when this controller does not run.
"""

from __future__ import annotations

from collections.abc import Awaitable

from shoal.cluster.client import Cluster, DeleteOptions, Preconditions
from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.runnables import subscribe_all, wait_forever
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NAMESPACE, POD, Kind
from shoal.kube.objects import Key, Obj, annotations_of, is_terminating, key_of, name_of, namespace_of, uid_of
from shoal.kube.owners import controller_of, owners_of
from shoal.scheduler.api.implicit_pod_groups import PREFIX, group_name_of, group_of, lacks_group
from shoal.scheduler.api.pod_groups import GROUP_NAME
from shoal.scheduler.planner.from_objects import state_of
from shoal.scheduler.planner.node_and_pod_types import OVER
from shoal.scheduler.rbac import OWNERS_OF_PODS
from shoal.scheduler.scope import SchedulerScope

OWNERS = {(kind.api_version, kind.kind): kind for kind in OWNERS_OF_PODS}


class PodGroupController:
    """`pods` keep the controller of pods without a group."""

    name = "implicit pod groups"

    def __init__(self, cluster: Cluster, pods: Informer, *, scope: SchedulerScope, clock: Clock) -> None:
        self._cluster = cluster
        self._pods = pods
        self._scope = scope
        self._members: dict[Key, set[Key]] = {}  # pods by group
        self._work = WorkQueue(self.name, self._reconcile, clock=clock)

    async def run(self) -> None:
        with subscribe_all((self._pods, self._pod_changed)):
            try:
                await wait_forever()
            finally:
                await self._work.close()

    def _pod_changed(self, change: Change) -> None:
        key, before, after = change.key, self._group_of(change.old), self._group_of(change.new)
        if before is not None and before != after:
            self._members[before].discard(key)
            if not self._members[before]:
                del self._members[before]
                self._work.add(before)
        if after is not None:
            self._members.setdefault(after, set()).add(key)
            if change.new is not None and self._lacks_group(change.new):
                self._work.add(after)

    def _group_of(self, pod: Obj | None) -> Key | None:
        """The implicit group of a pod, whether the pod names it already or not."""
        if pod is None:
            return None
        named = annotations_of(pod).get(GROUP_NAME) or ""
        return Key(namespace_of(pod), named) if named.startswith(PREFIX) else self._scope.implicit_group(pod)

    def _lacks_group(self, pod: Obj) -> bool:
        is_over = is_terminating(pod) or state_of(pod) in OVER
        return not is_over and self._scope.implicit_group(pod) is not None

    async def _reconcile(self, group: Key) -> None:
        members = self._members.get(group)
        if not members:
            # Only a group that was created for the object in its name is deleted.
            found = await self._find(self._scope.group_kind, group)
            if found is not None and any(f"{PREFIX}{owner.get('uid')}" == group.name for owner in owners_of(found)):
                exactly = DeleteOptions(preconditions=Preconditions(uid=uid_of(found)))
                removal = self._cluster.delete(self._scope.group_kind, group.name, group.namespace, exactly)
                await _unless(removal, 404, 409)
            return
        pods = (self._pods.objects.get(key) for key in sorted(members))
        lacking = [pod for pod in pods if pod is not None and self._lacks_group(pod)]
        if lacking:
            await self._create(group, key_of(lacking[0]))
        for pod in lacking:
            patch = {"metadata": {"uid": uid_of(pod), "annotations": {GROUP_NAME: group.name}}}
            # The status subresource takes annotations of pods too, so no right to patch their specs is needed.
            written = self._cluster.patch(POD, name_of(pod), group.namespace, patch=patch, subresource="status")
            await _unless(written, 404, 409)

    async def _create(self, group: Key, member: Key) -> None:
        pod = await self._find(POD, member)
        namespace = await self._find(NAMESPACE, Key("", group.namespace))
        if pod is None or namespace is None or not lacks_group(pod) or group_name_of(pod) != group.name:
            return  # the pod's next change is looked at
        controller = controller_of(pod) or {}
        kind = OWNERS.get((controller.get("apiVersion", ""), controller.get("kind", "")))
        owner = await self._find(kind, Key(namespace_of(pod), controller["name"])) if kind is not None else None
        made = group_of(pod, annotations_of(owner) if owner is not None else {}, annotations_of(namespace))
        await _unless(self._cluster.create(self._scope.group_kind, made, group.namespace), 409)

    async def _find(self, kind: Kind, key: Key) -> Obj | None:
        try:
            return await self._cluster.get(kind, key.name, key.namespace)
        except ApiError as refused:
            if refused.code != 404:
                raise
            return None


async def _unless(request: Awaitable[Obj], *codes: int) -> None:
    """Send the request; an answer with one of these codes is as good."""
    try:
        await request
    except ApiError as refused:
        if refused.code not in codes:
            raise
