"""Events, in the old form and in the new: an event lives beside what it is about, and a new one is complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import EVENT, EVENT_V1
from shoal.kube.objects import Obj
from shoal.kube.validation import metadata_rules
from shoal.kube.validation.errors import IMMUTABLE, invalid, required
from shoal.kube.validation.value_rules import named

_ELSEWHERE = "does not match event.namespace"
# Fields by their names in the core group, which messages use, and their names in events.k8s.io.
_NEW_NAMES = {
    "involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
    "source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
}  # fmt: skip
_FIXED = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime",
    "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip


def on_create(obj: Obj) -> Iterator[Cause]:
    yield from _common(obj, new_form=False)
    yield from metadata_rules.on_create(EVENT, obj)


def on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    """The old form may be rewritten at will: that is how repeated events are counted."""
    yield from _common(new, new_form=False)
    yield from metadata_rules.on_update(EVENT, new, old)


def v1_on_create(obj: Obj) -> Iterator[Cause]:
    yield from _common(obj, new_form=True)
    yield from metadata_rules.on_create(EVENT_V1, obj)
    yield from _series(obj.get("series"))
    if not obj.get("eventTime"):
        yield required("eventTime")
    if obj.get("type") not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {obj.get('type') or ''}")
    for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if obj.get(_NEW_NAMES[field]):
            yield invalid(field, "", "needs to be unset")


def v1_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from _common(new, new_form=True)
    yield from metadata_rules.on_update(EVENT_V1, new, old)
    if new.get("series") != old.get("series"):
        yield from _series(new.get("series"))
    for field in _FIXED:
        kept = _NEW_NAMES.get(field, field)
        if (new.get(kept) or None) != (old.get(kept) or None):
            shown = "reportingController" if field == "reportingComponent" else field
            yield invalid(shown, new.get(kept), IMMUTABLE)


def _series(series: Any) -> Iterator[Cause]:
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        yield invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


def _common(obj: Obj, *, new_form: bool) -> Iterator[Cause]:
    namespace = (obj.get("metadata") or {}).get("namespace") or ""
    about = (obj.get("regarding" if new_form else "involvedObject") or {}).get("namespace") or ""
    if obj.get("eventTime"):
        if not about and namespace not in ("default", "kube-system"):
            yield invalid("involvedObject.namespace", about, _ELSEWHERE)
        # An event with an exact time names its reporter, the action and the reason.
        reporter = "reportingController" if new_form else "reportingComponent"
        if not obj.get(reporter):
            yield required(reporter)
        yield from named(names.qualified_name, obj.get(reporter) or "", reporter)
        for field in ("reportingInstance", "action", "reason"):
            if not obj.get(field):
                yield required(field)
            yield from _limited(obj.get(field), 128, field)
        yield from _limited(obj.get("note" if new_form else "message"), 1024, "message")
    elif namespace != about and not (not about and namespace == "default"):
        yield invalid("involvedObject.namespace", about, _ELSEWHERE)
    yield from named(names.dns_subdomain, namespace, "namespace")


def _limited(value: Any, limit: int, field: str) -> Iterator[Cause]:
    if len((value or "").encode()) > limit:
        yield invalid(field, "", f"can have at most {limit} characters")
