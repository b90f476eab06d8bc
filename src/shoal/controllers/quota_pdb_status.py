"""Objects whose status counts pods, in a cluster of our own: what quotas have taken, what disruption budgets allow.

`PodCounts` hold the pods of each namespace and compute what an object should report of them; the loop writes what
differs, on the version it read. What is taken of a quota follows the pods one by one: adding all of them up for each
change of one would cost the square of their number. Budgets count the pods that exist: how many are desired is not
looked up. A pod that was evicted and still exists some minutes later was kept by another component, or is another of
the same name: the budget drops its record of the eviction, as in Kubernetes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock, Timer
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.runnables import subscribe_all
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.conditions import is_true
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, at_path, is_terminating, labels_of, name_of, uid_of
from shoal.kube.pod_resources import Amounts, amounts
from shoal.kube.quotas import TERMINAL_PHASES, UNPREFIXED, QuotaTally, format_amount
from shoal.kube.selectors import from_label_selector
from shoal.kube.times import parse

EVICTION_TIMEOUT = timedelta(minutes=2)  # how long a budget counts an evicted pod as gone
_PLAIN = ("pods", "count/pods", *UNPREFIXED)
PREFIXES = ("requests.", "limits.", "hugepages-")  # of what a quota may say about pods, besides plain names


def quota_status(quota: Obj, used: Amounts) -> Obj:
    """Resources that pods do not request are not counted, and left out."""
    hard = at_path(quota, "spec", "hard", default={})
    reported = at_path(quota, "status", "used", default={})
    known = amounts(reported)
    shown = {
        # The server may write the same amount in another form: those are not changed.
        name: reported[name] if known.get(name) == used.get(name, 0) else format_amount(name, used.get(name, 0))
        for name in hard
        if name in _PLAIN or (name.startswith(PREFIXES) and name != "requests.storage")
    }
    return {"hard": dict(hard), "used": shown}


def budget_status(budget: Obj, pods: Iterable[Obj], now: datetime) -> Obj:
    spec, before = budget.get("spec") or {}, budget.get("status") or {}
    evicted = {
        name: at for name, at in (before.get("disruptedPods") or {}).items() if parse(at) + EVICTION_TIMEOUT > now
    }
    selector = spec.get("selector")
    matching = from_label_selector(selector) if selector is not None else None
    chosen = [pod for pod in pods if matching is not None and matching.matches(labels_of(pod))]
    chosen = [pod for pod in chosen if at_path(pod, "status", "phase") not in TERMINAL_PHASES]
    going = {name_of(pod) for pod in chosen if not is_terminating(pod)} & evicted.keys()
    healthy = sum(is_true(pod, "Ready") and not is_terminating(pod) and name_of(pod) not in going for pod in chosen)
    expected = len(chosen)
    if spec.get("maxUnavailable") is not None:
        desired = max(expected - _part(spec["maxUnavailable"], expected), 0)
    else:
        desired = _part(spec.get("minAvailable", 1), expected)
    status: Obj = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": max(healthy - desired, 0),
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation") or 0,
    }
    disrupted = {name: at for name, at in evicted.items() if name in going}
    return {**status, **({"disruptedPods": disrupted} if disrupted else {})}


def lapse_of(status: Obj) -> datetime | None:
    """When the figures change by time alone."""
    return min((parse(at) + EVICTION_TIMEOUT for at in (status.get("disruptedPods") or {}).values()), default=None)


def _part(number: int | str, whole: int) -> int:
    """A number, or a percentage, rounded up."""
    return number if isinstance(number, int) else ceil(int(number.removesuffix("%")) * whole / 100)


class PodCounts(ABC):
    """The pods that exist, by namespace, and what an object reports of those of its own."""

    def __init__(self) -> None:
        self._pods_in: dict[str, dict[Key, Obj]] = {}

    def put(self, key: Key, pod: Obj | None) -> None:
        """The pod of that name as it is now; None where it is gone."""
        pods = self._pods_in.setdefault(key.namespace, {})
        if pod is not None:
            pods[key] = pod
        else:
            pods.pop(key, None)
        if not pods:
            del self._pods_in[key.namespace]

    @abstractmethod
    def status(self, key: Key, obj: Obj, now: datetime) -> Obj:
        """Of the object of that name, as it is now."""

    def forget(self, key: Key) -> None:  # noqa: B027 - most keep nothing
        """The object was deleted."""


class BudgetCounts(PodCounts):
    def status(self, key: Key, obj: Obj, now: datetime) -> Obj:
        return budget_status(obj, self._pods_in.get(key.namespace, {}).values(), now)


class QuotaCounts(PodCounts):
    def __init__(self) -> None:
        super().__init__()
        self._tallies: dict[str, dict[Key, QuotaTally]] = {}  # by namespace and quota

    def put(self, key: Key, pod: Obj | None) -> None:
        super().put(key, pod)
        for tally in self._tallies.get(key.namespace, {}).values():
            tally.put(key, pod)

    def status(self, key: Key, obj: Obj, now: datetime) -> Obj:
        del now
        tally = self._tallies.get(key.namespace, {}).get(key)
        if tally is None or tally.quota.get("spec") != obj.get("spec"):
            tally = self._tallies.setdefault(key.namespace, {})[key] = QuotaTally(obj)
            for each, pod in self._pods_in.get(key.namespace, {}).items():
                tally.put(each, pod)
        return quota_status(obj, tally.used)

    def forget(self, key: Key) -> None:
        beside = self._tallies.get(key.namespace, {})
        if beside.pop(key, None) is not None and not beside:
            del self._tallies[key.namespace]


class PodCountController:
    def __init__(self, cluster: Cluster, kind: Kind, pods: Informer, counts: PodCounts, *, clock: Clock) -> None:
        self.name = f"{kind.plural} status"
        self._cluster = cluster
        self._kind = kind
        self._pods = pods
        self._counts = counts
        self._clock = clock
        self._lapses: dict[Key, Timer] = {}
        self._work = WorkQueue(self.name, self.reconcile, clock=clock)
        self._counting = Informer(cluster, kind, on_change=lambda change: self._work.add(change.key), clock=clock)

    async def run(self) -> None:
        try:
            with subscribe_all((self._pods, self.on_pod_change)):
                await self._counting.run()
        finally:
            for timer in self._lapses.values():
                timer.cancel()
            await self._work.close()

    def on_pod_change(self, change: Change) -> None:
        self._counts.put(change.key, change.new)
        for key in self._counting.objects:
            if key.namespace == change.key.namespace:
                self._work.add(key)

    async def reconcile(self, key: Key) -> None:
        await self._pods.synced.wait()
        if (timer := self._lapses.pop(key, None)) is not None:
            timer.cancel()
        obj = self._counting.objects.get(key)
        if obj is None or is_terminating(obj):
            self._counts.forget(key)
            return
        now = self._clock.now()
        before, status = obj.get("status") or {}, self._counts.status(key, obj, now)
        if (lapse := lapse_of(status)) is not None:
            self._lapses[key] = self._clock.call_later((lapse - now).total_seconds(), lambda: self._work.add(key))
        if before == status:
            return
        seen = {"uid": uid_of(obj), "resourceVersion": obj["metadata"]["resourceVersion"]}
        patch = {"metadata": seen, "status": _changed(before, status)}
        try:
            await self._cluster.patch(self._kind, key.name, key.namespace, patch=patch, subresource="status")
        except ApiError as refused:
            if refused.code not in (404, 409):  # gone, or changed: an event follows
                raise


def _changed(before: Any, after: Any) -> Any:
    """A merge patch from one to the other."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    return gone | {name: _changed(before.get(name), value) for name, value in after.items()}
