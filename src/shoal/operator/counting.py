"""Objects whose status counts pods, in a cluster of our own: what quotas have taken, what disruption budgets allow.

`quota_status` and `budget_status` decide from the object and the pods of its namespace; the loop writes what differs,
on the version it looked at. Budgets count the pods that exist: how many somebody means to have is not looked up. A pod
that was evicted and is still there some minutes later was kept by somebody, or is another of the same name: the budget
forgets that it was to go, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from shoal.cluster.clock import Clock, Timer
from shoal.cluster.port import Cluster
from shoal.cluster.reflecting import Change, Reflector
from shoal.kube.amounts import amounts
from shoal.kube.conditions import is_true
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, at_path, is_leaving, labels_of, name_of, uid_of
from shoal.kube.quotas import OVER, PLAIN, taken, written
from shoal.kube.selectors import from_label_selector
from shoal.kube.times import parse
from shoal.operator.loops import subscribed
from shoal.operator.queueing import KeyedWork

Status = Callable[[Obj, Iterable[Obj], datetime], Obj]

GOING = timedelta(minutes=2)  # how long a budget takes an evicted pod's word for it
BEGINNINGS = ("requests.", "limits.", "hugepages-")  # of what a quota may say about pods, besides plain names


def quota_status(quota: Obj, pods: Iterable[Obj], now: datetime) -> Obj:
    """What is not asked for by pods is not counted, and left out."""
    del now
    hard = at_path(quota, "spec", "hard", default={})
    said = at_path(quota, "status", "used", default={})
    known, used = amounts(said), taken(quota, pods)
    told = {
        # The server may write the same amount in other words: those are not changed.
        name: said[name] if known.get(name) == used.get(name, 0) else written(name, used.get(name, 0))
        for name in hard
        if _is_of_pods(name)
    }
    return {"hard": dict(hard), "used": told}


def _is_of_pods(name: str) -> bool:
    return name in ("pods", "count/pods", *PLAIN) or (name.startswith(BEGINNINGS) and name != "requests.storage")


def budget_status(budget: Obj, pods: Iterable[Obj], now: datetime) -> Obj:
    spec, before = budget.get("spec") or {}, budget.get("status") or {}
    evicted = {name: at for name, at in (before.get("disruptedPods") or {}).items() if parse(at) + GOING > now}
    selector = spec.get("selector")
    chosen = [] if selector is None else [pod for pod in pods if from_label_selector(selector).matches(labels_of(pod))]
    chosen = [pod for pod in chosen if at_path(pod, "status", "phase") not in OVER]
    going = {name_of(pod) for pod in chosen if not is_leaving(pod)} & evicted.keys()
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
    told = {name: at for name, at in evicted.items() if name in going}
    return {**status, **({"disruptedPods": told} if told else {})}


def lapse_of(status: Obj) -> datetime | None:
    """When the figures change by time alone."""
    return min((parse(at) + GOING for at in (status.get("disruptedPods") or {}).values()), default=None)


def _desired(spec: Obj, expected: int) -> int:
    if spec.get("maxUnavailable") is not None:
        return max(expected - _part(spec["maxUnavailable"], expected), 0)
    return _part(spec.get("minAvailable", 1), expected)


def _part(said: int | str, whole: int) -> int:
    """A number, or a percentage, rounded up."""
    return said if isinstance(said, int) else ceil(int(said.removesuffix("%")) * whole / 100)


class CountingLoop:
    def __init__(self, cluster: Cluster, kind: Kind, pods: Reflector, status: Status, *, clock: Clock) -> None:
        self.name = f"{kind.plural} status"
        self._cluster = cluster
        self._kind = kind
        self._pods = pods
        self._status = status
        self._clock = clock
        self._there: dict[str, dict[Key, Obj]] = {}  # pods by namespace
        self._lapses: dict[Key, Timer] = {}
        self._work = KeyedWork(self.name, self._pass, clock=clock)
        self._counting = Reflector(cluster, kind, on_change=lambda change: self._work.add(change.key), clock=clock)

    async def run(self) -> None:
        try:
            with subscribed((self._pods, self._pod_changed)):
                await self._counting.run()
        finally:
            for timer in self._lapses.values():
                timer.cancel()
            await self._work.close()

    def _pod_changed(self, change: Change) -> None:
        namespace = change.key.namespace
        there = self._there.setdefault(namespace, {})
        if change.new is not None:
            there[change.key] = change.new
        else:
            there.pop(change.key, None)
        if not there:
            del self._there[namespace]
        for key in self._counting.objects:
            if key.namespace == namespace:
                self._work.add(key)

    async def _pass(self, key: Key) -> None:
        await self._pods.synced.wait()
        if (timer := self._lapses.pop(key, None)) is not None:
            timer.cancel()
        obj = self._counting.objects.get(key)
        if obj is None or is_leaving(obj):
            return
        now = self._clock.now()
        before, status = obj.get("status") or {}, self._status(obj, self._there.get(key.namespace, {}).values(), now)
        if (lapse := lapse_of(status)) is not None:
            self._lapses[key] = self._clock.call_later((lapse - now).total_seconds(), lambda: self._work.add(key))
        if before != status:
            await self._write(key, obj, before, status)

    async def _write(self, key: Key, obj: Obj, before: Obj, status: Obj) -> None:
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
