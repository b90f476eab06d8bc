"""Rows of quotas, disruption budgets and storage classes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.apiserver.printers.table import AGE, NAME, TablePrinter, age, mapping, name, text
from shoal.kube.kinds import Column
from shoal.kube.objects import Obj

_UNSET_VALUE = "N/A"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"

_QUOTA = (
    NAME,
    text("Request", "How much of what may be requested is taken."),
    text("Limit", "The same of limits."),
    AGE,
)


def quota_cells(quota: Obj, now: datetime) -> list[Any]:
    status = mapping(quota, "status")
    hard, used = status.get("hard") or {}, status.get("used") or {}
    taken = {resource: f"{resource}: {used.get(resource) or 0}/{limit}" for resource, limit in sorted(hard.items())}
    limits = [entries for resource, entries in taken.items() if resource.startswith("limits.")]
    requests = [entries for resource, entries in taken.items() if not resource.startswith("limits.")]
    return [name(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]


_BUDGET = (
    NAME,
    text("Min Available", "How many of its pods have to stay."),
    text("Max Unavailable", "How many of its pods may be away."),
    Column("Allowed Disruptions", "integer", description="How many of its pods may be sent away now."),
    AGE,
)


def budget_cells(budget: Obj, now: datetime) -> list[Any]:
    spec = mapping(budget, "spec")
    value = [
        _UNSET_VALUE if spec.get(field) is None else str(spec[field]) for field in ("minAvailable", "maxUnavailable")
    ]
    return [name(budget), *value, mapping(budget, "status").get("disruptionsAllowed") or 0, age(budget, now)]


_CLASS = (
    NAME,
    text("Provisioner", "Who makes its volumes."),
    text("ReclaimPolicy", "What happens to a volume once its claim is gone."),
    text("VolumeBindingMode", "When a claim gets its volume."),
    text("AllowVolumeExpansion", "Whether volumes may grow."),
    AGE,
)


def storage_class_cells(obj: Obj, now: datetime) -> list[Any]:
    notes = (obj.get("metadata") or {}).get("annotations") or {}
    display_name = f"{name(obj)} (default)" if notes.get(_DEFAULT) == "true" else name(obj)
    policy, mode = obj.get("reclaimPolicy") or "Delete", obj.get("volumeBindingMode") or "Immediate"
    return [
        display_name,
        obj.get("provisioner") or "",
        policy,
        mode,
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("", "ResourceQuota"): TablePrinter(_QUOTA, quota_cells),
    ("policy", "PodDisruptionBudget"): TablePrinter(_BUDGET, budget_cells),
    ("storage.k8s.io", "StorageClass"): TablePrinter(_CLASS, storage_class_cells),
}
