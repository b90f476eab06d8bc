"""Pods of a node that is no longer in the cluster end: no agent is left to run or to stop them."""

from __future__ import annotations

from shoal.cluster.client import Cluster, DeleteOptions, Preconditions
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.runnables import subscribe_all, wait_forever
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj, at_path, uid_of


def failed_status(pod: Obj) -> Obj | None:
    """The status of a pod whose node went away; None where it had ended before."""
    if at_path(pod, "status", "phase") in ("Succeeded", "Failed"):
        return None
    node = pod["spec"]["nodeName"]
    return {"phase": "Failed", "reason": "NodeLost", "message": f"Node {node} is no longer part of the cluster."}


class PodGCController:
    name = "absent nodes"

    def __init__(self, cluster: Cluster, nodes: Informer, pods: Informer) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._pods = pods
        self._work = WorkQueue(self.name, self.reconcile)

    async def run(self) -> None:
        with subscribe_all((self._nodes, self.on_node_change), (self._pods, self.on_pod_change)):
            try:
                await wait_forever()
            finally:
                await self._work.close()

    def on_node_change(self, change: Change) -> None:
        if change.new is None:
            for key, pod in self._pods.objects.items():
                if at_path(pod, "spec", "nodeName") == change.key.name:
                    self._work.add(key)

    def on_pod_change(self, change: Change) -> None:
        node = at_path(change.new or {}, "spec", "nodeName")
        if node and (not self._nodes.synced.is_set() or Key("", node) not in self._nodes.objects):
            self._work.add(change.key)

    async def reconcile(self, key: Key) -> None:
        await self._nodes.synced.wait()
        pod = self._pods.objects.get(key)
        if pod is None or Key("", at_path(pod, "spec", "nodeName", default="")) in self._nodes.objects:
            return
        if status := failed_status(pod):
            patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
            await self._cluster.patch(POD, key.name, key.namespace, patch=patch, subresource="status")
        try:
            now = DeleteOptions(grace_seconds=0, preconditions=Preconditions(uid=uid_of(pod)))
            await self._cluster.delete(POD, key.name, key.namespace, now)
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise
