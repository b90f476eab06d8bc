"""Rows of the remaining built-in kinds: each a line or two."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.apiserver import durations
from shoal.apiserver.printers.table import AGE, NAME, TablePrinter, age, mapping, name, text
from shoal.kube.kinds import Column
from shoal.kube.objects import Obj


def namespace_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), mapping(obj, "status").get("phase") or "", age(obj, now)]


def config_map_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def secret_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), obj.get("type") or "", len(obj.get("data") or ()), age(obj, now)]


def name_and_age_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), age(obj, now)]


def priority_class_cells(obj: Obj, now: datetime) -> list[Any]:
    policy = obj.get("preemptionPolicy") or ""
    return [name(obj), obj.get("value") or 0, bool(obj.get("globalDefault")), age(obj, now), policy]


def lease_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), mapping(obj, "spec").get("holderIdentity") or "", age(obj, now)]


def definition_cells(obj: Obj, _: datetime) -> list[Any]:
    return [name(obj), (obj.get("metadata") or {}).get("creationTimestamp")]


_EVENT = (
    text("Last Seen", "Time since it last happened."),
    text("Type", "Normal or Warning."),
    text("Reason", "What happened, in a word."),
    text("Object", "What it happened to."),
    text("Subobject", "Which part of that object.", wide=True),
    text("Source", "Who reported it.", wide=True),
    text("Message", "What happened."),
    text("First Seen", "Time since it first happened.", wide=True),
    text("Count", "How often it happened.", wide=True),
    text("Name", "Name of the event.", wide=True),
)


def event_cells(event: Obj, now: datetime) -> list[Any]:
    """An event of core/v1 or events.k8s.io/v1, which have different names for the same fields."""
    regarding = event.get("involvedObject") or event.get("regarding") or {}
    source = event.get("source") or event.get("deprecatedSource") or {}
    first_at = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last_at = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first_at
    count = event.get("count") or event.get("deprecatedCount") or 1
    series = event.get("series")
    if series:
        last_at, count = series.get("lastObservedTime"), series.get("count") or count
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    kind, target = str(regarding.get("kind") or "").lower(), regarding.get("name") or ""
    return [
        durations.age_since(last_at, now),
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{target}" if target else kind,
        regarding.get("fieldPath") or "",
        f"{component}, {instance}" if instance else component,
        str(event.get("message") or event.get("note") or "").strip(),
        durations.age_since(first_at, now),
        count,
        name(event),
    ]


_CREATED_AT = Column("Created At", "date", description="When the object was created.")
_DATA = text("Data", "How many entries it holds.")
_PRIORITY = (
    NAME,
    Column("Value", "integer", description="Priority of pods in this class; higher is scheduled first."),
    Column("Global-Default", "boolean", description="Whether pods that name no class get this one."),
    AGE,
    text("PreemptionPolicy", "Whether pods of this class may push out others.", wide=True),
)

PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("", "Namespace"): TablePrinter(
        (NAME, text("Status", "Active, or Terminating while it is emptied."), AGE), namespace_cells
    ),
    ("", "ConfigMap"): TablePrinter((NAME, _DATA, AGE), config_map_cells),
    ("", "Secret"): TablePrinter((NAME, text("Type", "What the data is for."), _DATA, AGE), secret_cells),
    ("", "ServiceAccount"): TablePrinter((NAME, AGE), name_and_age_cells),
    ("", "Event"): TablePrinter(_EVENT, event_cells),
    ("events.k8s.io", "Event"): TablePrinter(_EVENT, event_cells),
    ("scheduling.k8s.io", "PriorityClass"): TablePrinter(_PRIORITY, priority_class_cells),
    ("coordination.k8s.io", "Lease"): TablePrinter((NAME, text("Holder", "Who holds the lease."), AGE), lease_cells),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): TablePrinter((NAME, _CREATED_AT), definition_cells),
}
