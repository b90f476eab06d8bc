"""Whether one pod may go to one node, and in which words not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.scheduling.requests import Amounts
from shoal.scheduling.snapshot import Node, Pod


@dataclass(frozen=True, slots=True)
class Short:
    """The node would do but for these resources."""

    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Barred:
    """The node is out whatever is free on it: the reason, as said of one node."""

    why: str


def objection(pod: Pod, node: Node, free: Mapping[str, int]) -> Barred | Short | None:
    """Why not here; None where the pod fits."""
    if not node.ready:
        return Barred("is not ready")
    if node.unschedulable and not tolerates(pod, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}):
        return Barred("is cordoned")
    if taint := untolerated(pod, node):
        return Barred(f"has the taint {shown_taint(taint)}, which the pod does not tolerate")
    if not _selected(pod, node):
        return Barred("does not match the pod's node selector")
    if pod.node_terms is not None and not any(term_matches(term, node) for term in pod.node_terms):
        return Barred("does not match the pod's node affinity")
    short = tuple(name for name, need in pod.requests.items() if need > max(free.get(name, 0), 0) and need > 0)
    return Short(short) if short else None


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


def _selected(pod: Pod, node: Node) -> bool:
    return all(node.labels.get(name) == value for name, value in pod.node_selector.items())


def term_matches(term: Mapping[str, Any], node: Node) -> bool:
    """One node selector term: all its expressions; a term without any selects nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    named = {"metadata.name": node.name}
    return all(holds(e, node.labels) for e in expressions) and all(holds(f, named) for f in fields)


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
            return _compare(value, wanted[0] if wanted else None, larger=operator == "Gt")
    return False


def _compare(value: str | None, bound: str | None, *, larger: bool) -> bool:
    try:
        difference = int(value or "") - int(bound or "")
    except ValueError:
        return False
    return difference > 0 if larger else difference < 0


def take(free: Amounts, requests: Mapping[str, int]) -> None:
    for name, need in requests.items():
        free[name] = free.get(name, 0) - need
