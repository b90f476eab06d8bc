"""Conditions: the list in a status that says, one claim per entry, what holds of an object and since when.

Reading takes the whole object; writing takes and returns the list, so that a caller decides where it goes.
The promise kept here is that `lastTransitionTime` moves exactly when `status` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.kube.objects import Obj


def condition_of(obj: Mapping[str, Any], claim: str) -> Obj | None:
    """The condition of that type in the object's status, or None where nobody has made the claim."""
    return find((obj.get("status") or {}).get("conditions") or (), claim)


def find(conditions: Iterable[Obj], claim: str) -> Obj | None:
    return next((c for c in conditions if c.get("type") == claim), None)


def is_true(obj: Mapping[str, Any], claim: str) -> bool:
    return (condition_of(obj, claim) or {}).get("status") == "True"


def with_condition(
    conditions: Iterable[Obj] | None, claim: str, status: str | bool, *, now: str, reason: str = "", message: str = ""
) -> list[Obj]:
    """The list with this claim made, in its old place or at the end; the input stays as it was.

    `now` is the time in RFC 3339. Where the status did not change, lastTransitionTime stays; other fields of
    the condition (lastProbeTime, observedGeneration) stay too. An empty reason or message removes it.
    """
    kept = list(conditions or ())
    said = {True: "True", False: "False"}[status] if isinstance(status, bool) else status
    before = find(kept, claim)
    after = {**(before or {}), "type": claim, "status": said, "reason": reason, "message": message}
    if before is None or before.get("status") != said or not before.get("lastTransitionTime"):
        after["lastTransitionTime"] = now
    after = {field: value for field, value in after.items() if value != "" or field not in ("reason", "message")}
    if before is None:
        return [*kept, after]
    return [after if c is before else c for c in kept]
