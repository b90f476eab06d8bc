"""Which taints a pod bears and which labels a requirement means: one pod, one node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.scheduler.planner.node_and_pod_types import Node, Pod


def untolerated(pod: Pod, node: Node) -> Mapping[str, Any] | None:
    for taint in node.taints:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            return taint
    return None


def shown_taint(taint: Mapping[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def tolerates(pod: Pod, taint: Mapping[str, Any]) -> bool:
    return any(_matches(toleration, taint) for toleration in pod.tolerations)


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, wanted = labels.get(requirement["key"]), requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                difference = int(value or "") - int(wanted[0] if wanted else "")
            except ValueError:
                return False
            return difference > 0 if operator == "Gt" else difference < 0
    return False
