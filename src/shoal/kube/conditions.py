"""Conditions: the list in a status with one claim about an object per entry, and since when it holds.

Reading takes the whole object; writing takes and returns the list, so that a caller decides where it is stored. The
invariant kept here is that `lastTransitionTime` changes exactly when `status` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.kube.objects import Obj

CLAIM_MISSING = "ClaimMissing"  # the reason of PodScheduled: a claim of the pod, or of its gang, does not exist
TOO_LARGE = "TooLarge"  # reason: it would not fit the cluster even if all nodes were empty
# Pods have a separate condition, because autoscalers look for one reason only. It describes pods that wait; one that
# has found a node since may still carry it.
POD_TOO_LARGE = "shoal.dev/TooLarge"


def condition_of(obj: Mapping[str, Any], condition_type: str) -> Obj | None:
    """The condition of that type in the object's status, or None where it is not set."""
    return find_condition((obj.get("status") or {}).get("conditions") or (), condition_type)


def find_condition(conditions: Iterable[Obj], condition_type: str) -> Obj | None:
    return next((c for c in conditions if c.get("type") == condition_type), None)


def is_true(obj: Mapping[str, Any], condition_type: str) -> bool:
    return (condition_of(obj, condition_type) or {}).get("status") == "True"


def too_large_message(pod: Mapping[str, Any]) -> str:
    """The message of a pod too large for all existing nodes; '' where it is not, or was not checked."""
    found = condition_of(pod, POD_TOO_LARGE) or {}
    is_too_large = found.get("status") == "True" and not (pod.get("spec") or {}).get("nodeName")
    return _message(found) if is_too_large else ""


def group_too_large_message(group: Mapping[str, Any]) -> str:
    """The same of a group, whose pods need not be there yet."""
    found = condition_of(group, "Unschedulable") or {}
    return _message(found) if (found.get("status"), found.get("reason")) == ("True", TOO_LARGE) else ""


def _message(condition: Obj) -> str:
    return str(condition.get("message") or "it is too large for the nodes there are")


def with_condition(
    conditions: Iterable[Obj] | None,
    condition_type: str,
    status: str | bool,
    *,
    now: str,
    reason: str = "",
    message: str = "",
) -> list[Obj]:
    """The list with this claim made, in its old place or at the end; the input stays as it was.

    `now` is the time in RFC 3339. Where the status did not change, lastTransitionTime stays; other fields of
    the condition (lastProbeTime, observedGeneration) stay too. An empty reason or message removes it.
    """
    kept = list(conditions or ())
    status_text = {True: "True", False: "False"}[status] if isinstance(status, bool) else status
    before = find_condition(kept, condition_type)
    after = {**(before or {}), "type": condition_type, "status": status_text, "reason": reason, "message": message}
    if before is None or before.get("status") != status_text or not before.get("lastTransitionTime"):
        after["lastTransitionTime"] = now
    after = {field: value for field, value in after.items() if value != "" or field not in ("reason", "message")}
    if before is None:
        return [*kept, after]
    return [after if c is before else c for c in kept]
