"""Quotas of namespaces: what all pods of one may request together, and what the observed ones do request.

A quota reports itself how much is taken. That figure arrives by a watch of its own, later than the pods it counts, so
the larger of the two counts: otherwise two groups could be admitted for the same amount. Names have aliases in quotas,
and in what groups request: `requests.cpu` is `cpu`, `count/pods` is `pods`. Limits are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.from_objects import PODS, plain_name
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.gang_types import NamespaceQuota
from shoal.scheduler.planner.node_and_pod_types import OVER, Pod
from shoal.scheduler.planner.resource_vectors import RequestTally, Vector

ONE_POD = 1000  # thousandths


class NamespaceQuotas:
    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, NamespaceQuota]] = {}  # and their quotas, by name
        self._seen: dict[str, RequestTally] = {}  # of the same namespaces
        self._pods: dict[str, int] = {}

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.namespaces

    def set(self, key: Key, quota: NamespaceQuota, pods: Iterable[tuple[Pod, Vector]]) -> None:
        """`pods` are all there are; looked at where this is the first quota of its namespace."""
        if key.namespace not in self.namespaces:
            self.namespaces[key.namespace], self._seen[key.namespace], self._pods[key.namespace] = {}, RequestTally(), 0
            for pod, vector in pods:
                if pod.key.namespace == key.namespace:
                    self.count(pod, vector, 1)
        self.namespaces[key.namespace][key.name] = quota

    def remove(self, key: Key) -> None:
        found = self.namespaces.get(key.namespace, {})
        found.pop(key.name, None)
        if not found:
            for table in (self.namespaces, self._seen, self._pods):
                table.pop(key.namespace, None)

    def count(self, pod: Pod, vector: Vector, sign: int) -> None:
        """A pod that has come or gone; one that is over takes nothing."""
        namespace = pod.key.namespace
        if namespace in self.namespaces and pod.state not in OVER:
            self._seen[namespace].add(vector, sign)
            self._pods[namespace] += sign

    def of(self, namespace: str) -> list[tuple[str, NamespaceQuota]]:
        return sorted(self.namespaces.get(namespace, {}).items())

    def taken(self, namespace: str, quota: NamespaceQuota, resource: str) -> int:
        seen = self._pods[namespace] * ONE_POD if resource == PODS else self._seen[namespace].amounts.get(resource, 0)
        return max(quota.used.get(resource, 0), seen)


def asked_of_cluster(least: Mapping[str, int] | None) -> Amounts:
    """What a group requests from the nodes: without the names that only quotas use."""
    found = {name: amount for name, amount in (least or {}).items() if amount and name != PODS}
    return {name: amount for name, amount in found.items() if not name.startswith(("requests.", "limits.", "count/"))}


def asked_of_namespace(gang: Gang) -> Amounts:
    """What the group will request beyond the pods it already has, so that it can start."""
    least = gang.group.min_resources
    if least is None:
        return {}
    found: Amounts = {PODS: gang.group.min_member * ONE_POD}
    for name, amount in least.items():
        if plain := plain_name(name):
            found[plain] = max(found.get(plain, 0), amount)
    has = _existing(gang)
    return {name: amount - has.get(name, 0) for name, amount in found.items() if amount > has.get(name, 0)}


def _existing(gang: Gang) -> Amounts:
    found: Amounts = {}
    rest = [*gang.gated.values(), *gang.terminating.values()]
    for part in (gang.held.amounts, gang.wanted.amounts, *(pod.requests for pod in rest)):
        for name, amount in part.items():
            found[name] = found.get(name, 0) + amount
    found[PODS] = ONE_POD * (len(rest) + len(gang.placed) + len(gang.waiting))
    return found
