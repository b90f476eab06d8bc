"""The kinds a cluster is made of: Namespace, Node, ServiceAccount, PriorityClass, Lease."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import LEASE, NAMESPACE, NODE, PRIORITY_CLASS
from shoal.kube.objects import Obj
from shoal.kube.validation import metadata_rules, resource_rules, scheduling_rules
from shoal.kube.validation.errors import IMMUTABLE, duplicate, entries, forbidden, invalid
from shoal.kube.validation.value_rules import named, network, optional_choice

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREEMPTION = ("PreemptLowerPriority", "Never")


def namespace_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(NAMESPACE, obj)
    yield from _namespace_finalizers(obj, indexed=False)


def namespace_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(NAMESPACE, new, old)
    yield from _namespace_finalizers(new, indexed=False)


def namespace_on_finalize(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(NAMESPACE, new, old)
    yield from _namespace_finalizers(new, indexed=True)


def namespace_on_status(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(NAMESPACE, new, old)
    phase = (new.get("status") or {}).get("phase") or ""
    is_terminating = bool((new.get("metadata") or {}).get("deletionTimestamp"))
    expected = "Terminating" if is_terminating else "Active"
    if phase != expected:
        condition = "is not empty" if is_terminating else "is empty"
        yield invalid("status.Phase", phase, f"may only be '{expected}' if `deletionTimestamp` {condition}")


def _namespace_finalizers(obj: Obj, *, indexed: bool) -> Iterator[Cause]:
    for i, finalizer in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        path = f"spec.finalizers[{i}]" if indexed else "spec.finalizers"
        yield from named(names.qualified_name, finalizer or "", path)
        yield from metadata_rules.standard_finalizer(finalizer or "", path)


def node_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(NODE, obj)
    yield from _node(obj)
    ranges = (obj.get("spec") or {}).get("podCIDRs") or []
    for i, text in enumerate(ranges):
        yield from network(text or "", f"spec.podCIDRs[{i}]")
    if len(ranges) > 2 or (len(ranges) == 2 and (":" in ranges[0]) == (":" in ranges[1])):
        yield invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family")


def node_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    """Also for the status: a node's agent writes both."""
    yield from metadata_rules.on_update(NODE, new, old)
    yield from _node(new)
    seen: list[Obj] = []
    for i, entry in enumerate(entries((new.get("status") or {}).get("addresses"))):
        if entry in seen:
            shown = {"Type": entry.get("type") or "", "Address": entry.get("address") or ""}
            yield duplicate(f"status.addresses[{i}]", shown)
        seen.append(entry)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        yield forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        yield forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')


def _node(obj: Obj) -> Iterator[Cause]:
    taints = (obj.get("spec") or {}).get("taints")
    if taints:
        # An API server reads spec.taints and reports metadata.taints; users search for the message it sends.
        yield from scheduling_rules.taints(entries(taints), "metadata.taints")
    status = obj.get("status") or {}
    yield from resource_rules.amounts(status.get("capacity"), "status.capacity")
    yield from resource_rules.amounts(status.get("allocatable"), "status.allocatable")


def priority_class_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(PRIORITY_CLASS, obj)
    name, value = (obj.get("metadata") or {}).get("name") or "", obj.get("value") or 0
    if name.startswith("system-"):
        problem = ""
        if name not in SYSTEM_PRIORITIES:
            problem = f"{name} is not a known system priority class"
        elif value != SYSTEM_PRIORITIES[name]:
            problem = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
        elif obj.get("globalDefault"):
            problem = f"globalDefault of {name} PriorityClass must be false"
        if problem:
            detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            yield forbidden("metadata.name", detail)
    elif value > HIGHEST_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION:
        yield from optional_choice(policy, _PREEMPTION, "preemptionPolicy")


def priority_class_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(PRIORITY_CLASS, new, old)
    if (new.get("value") or 0) != (old.get("value") or 0):
        yield forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


def lease_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(LEASE, obj)
    yield from _lease(obj.get("spec") or {})


def lease_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(LEASE, new, old)
    yield from _lease(new.get("spec") or {})


def _lease(spec: Obj) -> Iterator[Cause]:
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")
