"""Objects whose status counts pods, in a cluster of our own: what quotas have taken, what disruption budgets allow.

`quota_status` and `budget_status` decide from the object and the pods of its namespace; the loop writes what differs,
on the version it looked at. Budgets count the pods that exist: how many somebody means to have is not looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any

from shoal.cluster.port import Cluster
from shoal.cluster.reflecting import Change, Reflector
from shoal.kube.conditions import is_true
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, at_path, is_leaving, labels_of, name_of, uid_of
from shoal.kube.quotas import OVER, PLAIN, taken, written
from shoal.kube.selectors import from_label_selector
from shoal.operator.loops import subscribed
from shoal.operator.queueing import KeyedWork

Status = Callable[[Obj, Iterable[Obj]], Obj]

BEGINNINGS = ("requests.", "limits.", "hugepages-")  # of what a quota may say about pods, besides plain names


def quota_status(quota: Obj, pods: Iterable[Obj]) -> Obj:
    """What is not asked for by pods is not counted, and left out."""
    hard = at_path(quota, "spec", "hard", default={})
    used = taken(quota, pods)
    return {"hard": dict(hard), "used": {name: written(name, used.get(name, 0)) for name in hard if _is_of_pods(name)}}


def _is_of_pods(name: str) -> bool:
    return name in ("pods", "count/pods", *PLAIN) or (name.startswith(BEGINNINGS) and name != "requests.storage")


def budget_status(budget: Obj, pods: Iterable[Obj]) -> Obj:
    spec, before = budget.get("spec") or {}, budget.get("status") or {}
    selector = spec.get("selector")
    chosen = [] if selector is None else [pod for pod in pods if from_label_selector(selector).matches(labels_of(pod))]
    chosen = [pod for pod in chosen if at_path(pod, "status", "phase") not in OVER]
    going = {name_of(pod) for pod in chosen if not is_leaving(pod)} & (before.get("disruptedPods") or {}).keys()
    healthy = sum(is_true(pod, "Ready") and not is_leaving(pod) and name_of(pod) not in going for pod in chosen)
    expected = len(chosen)
    desired = _desired(spec, expected)
    status: Obj = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": max(healthy - desired, 0),
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation") or 0,
    }
    told = {name: since for name, since in (before.get("disruptedPods") or {}).items() if name in going}
    return {**status, **({"disruptedPods": told} if told else {})}


def _desired(spec: Obj, expected: int) -> int:
    if spec.get("maxUnavailable") is not None:
        return max(expected - _part(spec["maxUnavailable"], expected), 0)
    return _part(spec.get("minAvailable", 1), expected)


def _part(said: int | str, whole: int) -> int:
    """A number, or a percentage, rounded up."""
    return said if isinstance(said, int) else ceil(int(said.removesuffix("%")) * whole / 100)


class CountingLoop:
    def __init__(self, cluster: Cluster, kind: Kind, pods: Reflector, status: Status) -> None:
        self.name = f"{kind.plural} status"
        self._cluster = cluster
        self._kind = kind
        self._pods = pods
        self._status = status
        self._work = KeyedWork(self.name, self._pass)
        self._counting = Reflector(cluster, kind, on_change=lambda change: self._work.add(change.key))

    async def run(self) -> None:
        try:
            with subscribed((self._pods, self._pod_changed)):
                await self._counting.run()
        finally:
            await self._work.close()

    def _pod_changed(self, change: Change) -> None:
        for key in self._counting.objects:
            if key.namespace == change.key.namespace:
                self._work.add(key)

    async def _pass(self, key: Key) -> None:
        await self._pods.synced.wait()
        obj = self._counting.objects.get(key)
        if obj is None or is_leaving(obj):
            return
        there = [pod for each, pod in self._pods.objects.items() if each.namespace == key.namespace]
        before, status = obj.get("status") or {}, self._status(obj, there)
        if before == status:
            return
        seen = {"uid": uid_of(obj), "resourceVersion": obj["metadata"]["resourceVersion"]}
        patch = {"metadata": seen, "status": _changed(before, status)}
        try:
            await self._cluster.patch(self._kind, key.name, key.namespace, patch=patch, subresource="status")
        except ApiError as refused:
            if refused.code not in (404, 409):  # gone, or changed: that comes as news
                raise


def _changed(before: Any, after: Any) -> Any:
    """A merge patch from one to the other."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    return gone | {name: _changed(before.get(name), value) for name, value in after.items()}
