"""The kinds whose rules fit in a few lines: Namespace, Node, volumes, slices, classes, leases, events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cluster.strategies.base import Generation, Rules, carry
from shoal.kube import kinds
from shoal.kube.errors import forbidden
from shoal.kube.objects import Obj, name_of

if TYPE_CHECKING:
    from shoal.cluster.registry import Core


def _namespace_begins(core: Core, namespace: Obj) -> None:
    del core
    namespace["status"] = {"phase": "Active"}


def _namespace_keeps(core: Core, new: Obj, old: Obj) -> None:
    """Only the finalize subresource takes away what holds a namespace."""
    del core
    carry(new.setdefault("spec", {}), old.get("spec") or {}, "finalizers")


def _volume_begins(core: Core, volume: Obj) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": core.now()}


def _volume_keeps_beside_status(core: Core, new: Obj, old: Obj) -> None:
    carry(new, old, "spec")
    status, before = new.setdefault("status", {}), old.get("status") or {}
    since = before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if since and not status.get("lastPhaseTransitionTime"):
            status["lastPhaseTransitionTime"] = since
    elif status.get("lastPhaseTransitionTime") in (None, since):
        status["lastPhaseTransitionTime"] = core.now()


def _claim_begins(core: Core, claim: Obj) -> None:
    del core
    claim["status"] = {"phase": "Pending"}


def _budget_begins(core: Core, budget: Obj) -> None:
    """Nobody may go before somebody has counted."""
    del core
    budget["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def _one_default_class(core: Core, new: Obj, old: Obj | None) -> None:
    del old
    if not new.get("globalDefault"):
        return
    default = core.default_priority()
    if default is not None and name_of(default) != name_of(new):
        why = f"PriorityClass {name_of(default)} is already marked as default. Only one default can exist"
        raise forbidden(kinds.PRIORITY_CLASS, name_of(new), why)


NAMESPACE = Rules(begin=_namespace_begins, keep=_namespace_keeps)
NODE = Rules(keeps_first_status=True)
VOLUME = Rules(begin=_volume_begins, keep_beside_status=_volume_keeps_beside_status)
CLAIM = Rules(begin=_claim_begins)
PRIORITY_CLASS = Rules(Generation.FIXED, admit=_one_default_class)
BUDGET = Rules(Generation.SPEC, begin=_budget_begins)
ENDPOINT_SLICE = Rules(Generation.CONTENT_AND_LABELS)
ENDPOINTS = Rules(create_on_update=True)
EVENT = Rules(create_on_update=True)
LEASE = Rules(create_on_update=True, unconditional_update=False)
