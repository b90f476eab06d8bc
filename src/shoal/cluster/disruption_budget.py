"""Disruption budgets, checked before a pod is evicted: what they allow is taken from them in the same moment.

The component that maintains a budget's figures (a loop of the operator's) counts pods; here they are only spent.
"""

from __future__ import annotations

from shoal.cluster.registry import Core
from shoal.cluster.types import Stored
from shoal.kube import kinds
from shoal.kube.conditions import is_true
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj, labels_of, name_of
from shoal.kube.selectors import from_label_selector

UNCOUNTED_PHASES = ("Pending", "Succeeded", "Failed")  # phases of pods whose removal disturbs no job


def check_and_decrement(core: Core, pod: Obj, *, dry_run: bool) -> None:
    """Raises where a budget keeps the pod."""
    meta, status = pod["metadata"], pod.get("status") or {}
    if meta.get("deletionTimestamp") or status.get("phase") in UNCOUNTED_PHASES:
        return
    budgets_of_pod = []
    for key, stored in core.resource(kinds.POD_DISRUPTION_BUDGET).table.objects.items():
        if key.namespace == meta["namespace"]:
            selector = (stored.obj().get("spec") or {}).get("selector")
            if selector is not None and from_label_selector(selector).matches(labels_of(pod)):
                budgets_of_pod.append(stored)
    if len(budgets_of_pod) > 1:
        raise ApiError(
            500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    for stored in budgets_of_pod:
        _decrement(core, stored, pod, dry_run=dry_run)


def _decrement(core: Core, stored: Stored, pod: Obj, *, dry_run: bool) -> None:
    budget = stored.obj()
    status = budget.setdefault("status", {})
    if not is_true(pod, "Ready"):
        # A pod that is not ready may go where enough others are ready, or where the budget allows it anyway.
        policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy")
        if policy == "AlwaysAllow" or status["currentHealthy"] >= status["desiredHealthy"] > 0:
            return
    name = name_of(budget)
    if (status.get("observedGeneration") or 0) < budget["metadata"]["generation"]:
        raise _eviction_denied(
            f"The disruption budget {name} is still being processed by the server.", retryAfterSeconds=10
        )
    if status["disruptionsAllowed"] <= 0:
        counts = f"needs {status['desiredHealthy']} healthy pods and has {status['currentHealthy']} currently"
        raise _eviction_denied(f"The disruption budget {name} {counts}")
    if not dry_run:
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[name_of(pod)] = core.now()
        core.put(core.resource(kinds.POD_DISRUPTION_BUDGET), budget, stored)


def _eviction_denied(why: str, **extra: int) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}], **extra}
    return ApiError(429, "TooManyRequests", message, details)
