"""Quotas, asked before a pod is stored. What is taken is known from the pods themselves, so it is never out of date.

`QuotaTallies` follow the store: every write, and every write that is taken back, names a pod whose share has to be
worked out again, once, before the next question. Pods are therefore not counted afresh for each new one, and only
namespaces that have a quota pay anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.cluster.store import Table
from shoal.cluster.types import Stored
from shoal.kube import kinds
from shoal.kube.errors import forbidden
from shoal.kube.objects import Key, Obj, at_path, name_of
from shoal.kube.pod_resources import Amounts, amounts
from shoal.kube.quotas import Tally, is_for, unsaid, usage_of, written

if TYPE_CHECKING:
    from shoal.cluster.registry import Core


@dataclass(slots=True)
class _Space:
    """One namespace: its quotas in the order of their names, and the pods written since they were last asked."""

    tallies: list[Tally]
    changed: set[Key] = field(default_factory=set)


class QuotaTallies:
    """What is taken of each quota; counted from all pods when first asked for, then kept by what is written."""

    def __init__(self, quotas: Table, pods: Table) -> None:
        self._quotas = quotas
        self._pods = pods
        self._keys: dict[str, set[Key]] = {}  # of the quotas, by namespace
        self._spaces: dict[str, _Space] = {}

    def observe(self, table: Table, before: Stored | None, after: Stored | None) -> None:
        written_one = after or before
        if written_one is None:
            return
        key = written_one.key
        if table is self._pods:
            if key.namespace in self._spaces:
                self._spaces[key.namespace].changed.add(key)
        elif table is self._quotas:
            self._quota_changed(key, before, after)

    def _quota_changed(self, key: Key, before: Stored | None, after: Stored | None) -> None:
        # Its status changes with the pods, and what it is about stays the same.
        if before is not None and after is not None and before.obj().get("spec") == after.obj().get("spec"):
            return
        keys = self._keys.setdefault(key.namespace, set())
        keys.discard(key)
        if after is not None:
            keys.add(key)
        if not keys:
            del self._keys[key.namespace]
        self._spaces.pop(key.namespace, None)

    def of(self, namespace: str) -> list[Tally]:
        if namespace not in self._keys:
            return []
        space = self._spaces.get(namespace)
        if space is None:
            quotas = (self._quotas.objects[key].obj() for key in sorted(self._keys[namespace]))
            there = {key for key in self._pods.objects if key.namespace == namespace}
            space = self._spaces[namespace] = _Space([Tally(quota) for quota in quotas], there)
        for key in space.changed:
            stored = self._pods.objects.get(key)
            pod = stored.obj() if stored is not None else None
            for tally in space.tallies:
                tally.put(key, pod)
        space.changed.clear()
        return space.tallies


def check_quotas(core: Core, pod: Obj) -> None:
    """Raises where the pod asks for more than a quota of its namespace leaves."""
    for tally in core.quotas.of(pod["metadata"]["namespace"]):
        if is_for(tally.quota, pod):
            _check(tally, pod)


def _check(tally: Tally, pod: Obj) -> None:
    quota, used = tally.quota, tally.used
    name = name_of(quota)
    if missing := unsaid(quota, pod):
        raise forbidden(kinds.POD, name_of(pod), f"failed quota: {name}: must specify {'; '.join(missing)}")
    hard, asked = amounts(at_path(quota, "spec", "hard")), usage_of(pod)
    over = sorted(each for each in hard.keys() & asked.keys() if used.get(each, 0) + asked[each] > hard[each])
    if over:
        told = (
            f"{word}: {_listed(over, of)}" for word, of in (("requested", asked), ("used", used), ("limited", hard))
        )
        raise forbidden(kinds.POD, name_of(pod), f"exceeded quota: {name}, {', '.join(told)}")


def _listed(names: list[str], of: Amounts) -> str:
    return ",".join(f"{name}={written(name, of.get(name, 0))}" for name in names)
