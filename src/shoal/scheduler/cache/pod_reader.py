"""Reads pods for the planner, with what follows from namespaces, volume claims and the scope of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shoal.cluster.informer import Change
from shoal.kube.errors import ApiError
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, key_of
from shoal.logs import Logger
from shoal.scheduler.cache.volume_claims import VolumeClaims
from shoal.scheduler.planner.from_objects import affinity_terms, pod_from, state_of
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, Pod, PodState
from shoal.scheduler.scope import SchedulerScope

log = Logger(__name__)

MAX_AMOUNT = 1 << 60  # thousandths; the planner counts in 64 bits, and no cluster has so much of anything
READ_OF_METADATA = ("uid", "labels", "annotations", "ownerReferences")
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ApiError)  # an ApiError of a selector


class PodReader:
    def __init__(self, scope: SchedulerScope, claims: VolumeClaims) -> None:
        self.selects_namespaces: set[Key] = set()  # pods with a rule about namespaces with certain labels
        self.protected: dict[Key, str] = {}  # uids of pods that a disruption budget keeps from eviction
        self._scope = scope
        self._claims = claims
        self._namespace_labels: dict[str, Mapping[str, str]] = {}

    def read(self, obj: Obj) -> Pod:
        """A pod that cannot be read waits with a message, so that it blocks no other."""
        changes: dict[str, Any] = {}
        try:
            pod = pod_from(obj, self._namespace_labels)
        except UNREADABLE as wrong:
            log.warning("pod cannot be read", pod=str(key_of(obj)), error=str(wrong))
            meta = {name: obj["metadata"][name] for name in ("name", "namespace", "uid") if name in obj["metadata"]}
            spec = {"nodeName": obj["spec"].get("nodeName"), "containers": []}
            minimal = {"metadata": meta, "spec": spec, "status": {"phase": (obj.get("status") or {}).get("phase")}}
            pod = replace(pod_from(minimal), blocked=Message("Pod.Unreadable", {"error": str(wrong)}))
        if any(term.namespace_selector.requirements for term in (*pod.together, *pod.apart)):
            self.selects_namespaces.add(pod.key)
        if pod.group is None and (implicit := self._scope.implicit_group(obj)) is not None:
            changes["group"] = implicit
        if any(amount > MAX_AMOUNT or amount < 0 for amount in pod.requests.values()):
            changes["requests"] = bounded(pod.requests)
        if self.protected and self.protected.get(pod.key) == pod.uid:
            changes["protected"] = True
        if not self._scope.is_responsible_for(obj):
            changes["preemptable"] = False  # another scheduler placed it and would place its successor
        if not pod.node:
            if not self._scope.is_responsible_for(obj):
                changes["gated"] = True
            blocked, terms = self._claims.of(obj)
            if (blocked or terms) and not pod.blocked:
                changes["blocked"], changes["volume_terms"] = blocked, terms
        return replace(pod, **changes) if changes else pod

    def affinity_terms(self, obj: Obj) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]:
        return affinity_terms(obj, self._namespace_labels)

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Returns whether its labels have changed; None: it was deleted."""
        before = self._namespace_labels.pop(name, None)
        if labels is not None:
            self._namespace_labels[name] = labels
        return before != labels

    def forget(self, pod: Key) -> None:
        self.selects_namespaces.discard(pod)
        self.protected.pop(pod, None)


def bounded(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: min(max(amount, 0), MAX_AMOUNT) for name, amount in amounts.items()}


def moved_pod(known: Pod | None, change: Change) -> Pod | None:
    """The known pod on its new node or in its new state, where nothing else of it changed.
    Nearly every event is about the node or the state of a pod, and reading all of it takes far longer."""
    old, new = change.old, change.new
    if known is None or old is None or new is None or known.blocked or known.gated:
        return None
    if any(old["metadata"].get(part) != new["metadata"].get(part) for part in READ_OF_METADATA):
        return None
    before, after = old["spec"], new["spec"]
    node = after.get("nodeName") or ""
    if {**before, "nodeName": node} != {**after, "nodeName": node}:
        return None
    return known.moved(node=node, state=state_of(new), since=known.since if node else 0.0)


def with_since(pod: Pod, since: float) -> Pod:
    return pod.moved(node=pod.node, state=pod.state, since=since, devices=pod.devices)


def only_started(before: Pod, after: Pod) -> bool:
    """Whether the pod is where it was and as it was: that its processes have started changes no plan."""
    placed = (PodState.BOUND, PodState.RUNNING)
    if before.state not in placed or after.state not in placed:
        return False
    return before == with_since(
        after.moved(node=after.node, state=before.state, since=before.since, devices=before.devices), before.since
    )
