"""Quotas, checked before a pod is stored. Usage is computed from the pods themselves, so it is never out of date.

`QuotaUsage` follows the store: every write, and every write that is rolled back, marks a pod whose share is
recomputed once, before the next check. Pods are therefore not recounted for each new one, and only namespaces
that have a quota incur any cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.cluster.store import Table
from shoal.cluster.types import Stored
from shoal.kube import kinds
from shoal.kube.errors import forbidden
from shoal.kube.objects import Key, Obj, at_path, name_of
from shoal.kube.pod_resources import amounts
from shoal.kube.quotas import QuotaTally, applies_to, format_amount, missing_resources, usage_of

if TYPE_CHECKING:
    from shoal.cluster.registry import Core


@dataclass(slots=True)
class _NamespaceUsage:
    """One namespace: its quotas in the order of their names, and the pods written since the last check."""

    quotas: list[QuotaTally]
    changed: set[Key] = field(default_factory=set)


class QuotaUsage:
    """Usage of each quota; counted from all pods when first requested, then updated by each write."""

    def __init__(self, quotas: Table, pods: Table) -> None:
        self._quotas = quotas
        self._pods = pods
        self._keys: dict[str, set[Key]] = {}  # of the quotas, by namespace
        self._namespaces: dict[str, _NamespaceUsage] = {}

    def observe(self, table: Table, before: Stored | None, after: Stored | None) -> None:
        written = after or before
        if written is None:
            return
        key = written.key
        if table is self._pods:
            if key.namespace in self._namespaces:
                self._namespaces[key.namespace].changed.add(key)
            return
        if table is not self._quotas:
            return
        # The status of a quota changes with the pods; only its spec matters here.
        if before is not None and after is not None and before.obj().get("spec") == after.obj().get("spec"):
            return
        keys = self._keys.setdefault(key.namespace, set())
        keys.discard(key)
        if after is not None:
            keys.add(key)
        if not keys:
            del self._keys[key.namespace]
        self._namespaces.pop(key.namespace, None)

    def values(self, namespace: str) -> list[QuotaTally]:
        if namespace not in self._keys:
            return []
        usage = self._namespaces.get(namespace)
        if usage is None:
            quotas = (self._quotas.objects[key].obj() for key in sorted(self._keys[namespace]))
            pods = {key for key in self._pods.objects if key.namespace == namespace}
            usage = self._namespaces[namespace] = _NamespaceUsage([QuotaTally(quota) for quota in quotas], pods)
        for key in usage.changed:
            stored = self._pods.objects.get(key)
            pod = stored.obj() if stored is not None else None
            for quota_tally in usage.quotas:
                quota_tally.put(key, pod)
        usage.changed.clear()
        return usage.quotas


def check_quotas(core: Core, pod: Obj) -> None:
    """Raises where the pod requests more than a quota of its namespace leaves."""
    for quota_tally in core.quotas.values(pod["metadata"]["namespace"]):
        quota, used = quota_tally.quota, quota_tally.used
        if not applies_to(quota, pod):
            continue
        name = name_of(quota)
        if missing := missing_resources(quota, pod):
            raise forbidden(kinds.POD, name_of(pod), f"failed quota: {name}: must specify {'; '.join(missing)}")
        hard, requested = amounts(at_path(quota, "spec", "hard")), usage_of(pod)
        exceeded = sorted(
            each for each in hard.keys() & requested.keys() if used.get(each, 0) + requested[each] > hard[each]
        )
        if exceeded:
            parts = []
            for label, values in (("requested", requested), ("used", used), ("limited", hard)):
                shown = (f"{each}={format_amount(each, values.get(each, 0))}" for each in exceeded)
                parts.append(f"{label}: {','.join(shown)}")
            raise forbidden(kinds.POD, name_of(pod), f"exceeded quota: {name}, {', '.join(parts)}")
