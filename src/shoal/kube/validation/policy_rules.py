"""ResourceQuotas, PodDisruptionBudgets and StorageClasses: required fields and immutable fields."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import POD_DISRUPTION_BUDGET, RESOURCE_QUOTA, STORAGE_CLASS
from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity
from shoal.kube.validation import metadata_rules
from shoal.kube.validation.errors import IMMUTABLE, NEGATIVE, forbidden, invalid, required
from shoal.kube.validation.selector_rules import label_selector
from shoal.kube.validation.value_rules import at_most_all, named, number_or_percent, optional_choice

_BINDING = ("Immediate", "WaitForFirstConsumer")
_RECLAIM = ("Delete", "Retain")
_UNHEALTHY = ("AlwaysAllow", "IfHealthyBudget")


# --- ResourceQuota -------------------------------------------------------------------------------------------------


def quota_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(RESOURCE_QUOTA, obj)
    yield from _limits((obj.get("spec") or {}).get("hard"), "spec.hard")


def quota_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(RESOURCE_QUOTA, new, old)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    yield from _limits(spec.get("hard"), "spec.hard")
    for field in ("scopes", "scopeSelector"):
        if (spec.get(field) or None) != (before.get(field) or None):
            yield invalid(f"spec.{field}", spec.get(field), IMMUTABLE)


def quota_on_status(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(RESOURCE_QUOTA, new, old)
    for field in ("hard", "used"):
        yield from _limits((new.get("status") or {}).get(field), f"status.{field}")


def _limits(found: Obj | None, path: str) -> Iterator[Cause]:
    for name, value in (found or {}).items():
        place = f"{path}[{name}]"
        yield from named(names.qualified_name, name.removeprefix("requests.").removeprefix("limits."), place)
        if Quantity.parse(str(value)).milli() < 0:
            yield invalid(place, str(value), NEGATIVE)


# --- PodDisruptionBudget -------------------------------------------------------------------------------------------


def budget_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(POD_DISRUPTION_BUDGET, obj)
    yield from _budget(obj.get("spec") or {})


def budget_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(POD_DISRUPTION_BUDGET, new, old)
    yield from _budget(new.get("spec") or {})


def _budget(spec: Obj) -> Iterator[Cause]:
    minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
    if minimum is not None and maximum is not None:
        yield invalid("spec", "minAvailable and maxUnavailable", "minAvailable and maxUnavailable cannot be both set")
    for field, value in (("minAvailable", minimum), ("maxUnavailable", maximum)):
        if value is not None:
            yield from number_or_percent(value, f"spec.{field}")
            yield from at_most_all(value, f"spec.{field}")
    yield from label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    yield from optional_choice(policy, _UNHEALTHY, "spec.unhealthyPodEvictionPolicy")


# --- StorageClass --------------------------------------------------------------------------------------------------


def storage_class_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(STORAGE_CLASS, obj)
    yield from _storage_class(obj)


def storage_class_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(STORAGE_CLASS, new, old)
    yield from _storage_class(new)
    if (new.get("parameters") or {}) != (old.get("parameters") or {}):
        yield forbidden("parameters", "updates to parameters are forbidden.")
    if new.get("provisioner") != old.get("provisioner"):
        yield forbidden("provisioner", "updates to provisioner are forbidden.")
    if new.get("reclaimPolicy") != old.get("reclaimPolicy"):
        yield forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden.")
    if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
        yield invalid("volumeBindingMode", new.get("volumeBindingMode"), IMMUTABLE)


def _storage_class(obj: Obj) -> Iterator[Cause]:
    if not obj.get("provisioner"):
        yield required("provisioner")
    else:
        yield from named(names.qualified_name, obj["provisioner"].lower(), "provisioner")
    yield from optional_choice(obj.get("reclaimPolicy"), _RECLAIM, "reclaimPolicy")
    yield from optional_choice(obj.get("volumeBindingMode"), _BINDING, "volumeBindingMode")
