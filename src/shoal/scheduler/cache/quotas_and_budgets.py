"""ResourceQuotas and PodDisruptionBudgets in the planner's view.

Their amounts change with every pod that is created or deleted, in step with events of the pods themselves. Another plan
is worth making only where they leave more than before: the return value of both handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cluster.informer import Change
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj
from shoal.kube.selectors import from_label_selector
from shoal.logs import Logger
from shoal.scheduler.planner.disruption_budgets import DisruptionBudget
from shoal.scheduler.planner.from_objects import namespace_quota
from shoal.scheduler.planner.gang_types import NamespaceQuota

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView

log = Logger(__name__)

UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ApiError)


class LimitsUpdater:
    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._quotas: dict[Key, NamespaceQuota] = {}

    def quota_changed(self, change: Change) -> bool:
        key, known = change.key, self._quotas.get(change.key)
        try:
            quota = namespace_quota(change.new) if change.new is not None else None
        except UNREADABLE as wrong:
            log.warning("quota cannot be read and stays as it was", quota=str(key), error=str(wrong))
            return False
        if quota is not None:
            self._quotas[key] = quota
            self._view.set_quota(key, quota)
        elif known is not None:
            del self._quotas[key]
            self._view.remove_quota(key)
        if known is None:
            return False
        if quota is None or known.hard.keys() - quota.hard.keys():
            return True
        is_raised = any(amount > known.hard.get(name, amount) for name, amount in quota.hard.items())
        return is_raised or any(quota.used.get(name, 0) < amount for name, amount in known.used.items())

    def budget_changed(self, change: Change) -> bool:
        key, budgets = change.key, self._view.budgets
        known = budgets.get(key)
        try:
            budget = budget_from(change.new) if change.new is not None else None
        except UNREADABLE as wrong:
            log.warning("disruption budget cannot be read and stays as it was", budget=str(key), error=str(wrong))
            return False
        if budget is not None:
            budgets.set(key, budget)
        else:
            budgets.remove(key)
        if known is None:
            return False
        return budget is None or budget.allowed > known.allowed or budget.selector != known.selector


def budget_from(obj: Obj) -> DisruptionBudget | None:
    """None where it selects no pods. One whose status is older than its last change allows nothing."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if spec.get("selector") is None:
        return None
    is_counted = (status.get("observedGeneration") or 0) >= (obj["metadata"].get("generation") or 0)
    allowed = int(status.get("disruptionsAllowed") or 0) if is_counted else 0
    return DisruptionBudget(from_label_selector(spec["selector"]), max(allowed, 0))
