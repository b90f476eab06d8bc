"""Pods: the first status, the quality of service, the priority their class gives them, and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.cluster.quota_admission import check_quotas
from shoal.cluster.strategies.strategy import Generation, Strategy, keep_field
from shoal.kube import kinds
from shoal.kube.conditions import with_condition
from shoal.kube.defaults import pod_defaults
from shoal.kube.errors import forbidden
from shoal.kube.objects import Key, Obj, name_of
from shoal.kube.quantity import Quantity

if TYPE_CHECKING:
    from shoal.cluster.registry import Core

_QOS_RESOURCES = ("cpu", "memory")  # the resources that decide the quality of service


def admit(core: Core, pod: Obj, old: Obj | None) -> None:
    """Give a new pod the priority of its priority class, if its namespace may have it."""
    if old is not None:
        return
    spec = pod["spec"]
    if name := spec.get("priorityClassName"):
        stored = core.resource(kinds.PRIORITY_CLASS).table.objects.get(Key("", name))
        if stored is None:
            raise forbidden(kinds.POD, name_of(pod), f"no PriorityClass with name {name} was found")
        priority_class: Obj | None = stored.obj()
    else:
        priority_class = core.default_priority()
    value = priority_class["value"] if priority_class else 0
    policy = (priority_class or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if priority_class:
        spec["priorityClassName"] = name_of(priority_class)
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(kinds.POD, name_of(pod), why)
    if spec.get("preemptionPolicy") not in (None, policy):
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden(kinds.POD, name_of(pod), why)
    spec["priority"] = value
    spec["preemptionPolicy"] = policy
    check_quotas(core, pod)


def prepare_for_create(core: Core, pod: Obj) -> None:
    status: Obj = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = with_condition(
            [], "PodScheduled", False, now=core.now(), reason="SchedulingGated",
            message="Scheduling is blocked due to non-empty scheduling gates",
        )  # fmt: skip
        pod_defaults.conditions(status)
    pod["status"] = status


def qos_class(spec: Obj) -> str:
    """Guaranteed, Burstable or BestEffort, as kubectl shows it."""
    has_any, all_guaranteed = False, True
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        limits, requests = _qos_amounts(resources, "limits"), _qos_amounts(resources, "requests")
        has_any = has_any or bool(limits or requests)
        is_guaranteed = len(limits) == len(_QOS_RESOURCES) and all(
            name not in requests or requests[name] == limit or Quantity.parse(requests[name]) == Quantity.parse(limit)
            for name, limit in limits.items()
        )
        all_guaranteed = all_guaranteed and is_guaranteed
    if not has_any:
        return "BestEffort"
    return "Guaranteed" if all_guaranteed else "Burstable"


def _qos_amounts(resources: Obj, which: str) -> dict[str, str]:
    """The amounts above zero. Only a text that begins like a zero has to be parsed to see that."""
    amounts: dict[str, Any] = resources.get(which) or {}
    texts = {name: str(amounts[name]) for name in _QOS_RESOURCES if name in amounts}
    return {name: text for name, text in texts.items() if text[:1] not in "0+-." or Quantity.parse(text).milli() > 0}


def prepare_for_status_update(core: Core, new: Obj, old: Obj) -> None:
    del core
    keep_field(new, old, "spec")
    keep_field(new["metadata"], old["metadata"], "ownerReferences")
    status = new.setdefault("status", {})
    before = old.get("status") or {}
    if not status.get("qosClass") and before.get("qosClass"):
        status["qosClass"] = before["qosClass"]
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]


STRATEGY = Strategy(
    Generation.SPEC,
    admission_fills=(("tolerations",), ("serviceAccountName", "serviceAccount")),
    admit=admit,
    prepare_for_create=prepare_for_create,
    prepare_for_status_update=prepare_for_status_update,
)
