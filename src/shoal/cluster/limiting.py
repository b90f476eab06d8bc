"""Quotas, asked before a pod is stored. What is taken is counted from the pods themselves, so it is never out of date;
only namespaces that have a quota pay for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.kube import kinds
from shoal.kube.amounts import Amounts, amounts
from shoal.kube.errors import forbidden
from shoal.kube.objects import Obj, at_path, name_of
from shoal.kube.quotas import is_for, taken, unsaid, usage_of, written

if TYPE_CHECKING:
    from shoal.cluster.core import Core


def check_quotas(core: Core, pod: Obj) -> None:
    """Raises where the pod asks for more than a quota of its namespace leaves."""
    table = core.resource(kinds.RESOURCE_QUOTA).table
    if not table.objects:
        return
    namespace = pod["metadata"]["namespace"]
    found = [stored.obj() for key, stored in sorted(table.objects.items()) if key.namespace == namespace]
    for quota in found:
        if is_for(quota, pod):
            _check(core, quota, pod, namespace)


def _check(core: Core, quota: Obj, pod: Obj, namespace: str) -> None:
    name = name_of(quota)
    if missing := unsaid(quota, pod):
        raise forbidden(kinds.POD, name_of(pod), f"failed quota: {name}: must specify {'; '.join(missing)}")
    hard, asked = amounts(at_path(quota, "spec", "hard")), usage_of(pod)
    others = (stored.obj() for key, stored in core.pods.table.objects.items() if key.namespace == namespace)
    used = taken(quota, others)
    over = sorted(each for each in hard.keys() & asked.keys() if used.get(each, 0) + asked[each] > hard[each])
    if over:
        told = (
            f"{word}: {_listed(over, of)}" for word, of in (("requested", asked), ("used", used), ("limited", hard))
        )
        raise forbidden(kinds.POD, name_of(pod), f"exceeded quota: {name}, {', '.join(told)}")


def _listed(names: list[str], of: Amounts) -> str:
    return ",".join(f"{name}={written(name, of.get(name, 0))}" for name in names)
