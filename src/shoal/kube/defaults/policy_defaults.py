"""Defaults of ResourceQuota, PodDisruptionBudget and StorageClass."""

from __future__ import annotations

from shoal.kube.defaults.field_access import amounts, below, fill_missing
from shoal.kube.objects import Obj


def quota(obj: Obj) -> None:
    amounts(below(obj, "spec"), "hard")
    status = below(obj, "status")
    amounts(status, "hard")
    amounts(status, "used")


def budget(obj: Obj) -> None:
    below(obj, "spec")
    status = below(obj, "status")
    for name in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"):
        fill_missing(status, name, 0)


def storage_class(obj: Obj) -> None:
    fill_missing(obj, "reclaimPolicy", "Delete")
    fill_missing(obj, "volumeBindingMode", "Immediate")
