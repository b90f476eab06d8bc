"""The entries of metadata.managedFields, and the error when two managers set one field.

A manager is identified by its name, how it writes (Apply or Update), the subresource it writes through and, for
updates, the version it uses. An entry is that, a set of fields, and the time it last took one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shoal.kube.apply.fieldsets import FieldSet, difference, is_field_set, paths, union
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATERS = 10
ANCIENT_CHANGES = "ancient-changes"


class ManagerIdentity(NamedTuple):
    """The identity of a manager. An applier stays the same whichever version it uses: its `version` is ''."""

    name: str
    operation: str
    version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        name = json.dumps(self.name, ensure_ascii=False)
        if self.subresource:
            name = f'{name} with subresource "{self.subresource}"'
        return f"{name} using {self.version}" if self.operation == UPDATE else name


@dataclass(frozen=True, slots=True)
class ManagedEntry:
    """What one manager owns. `time` is None for an applier that never changed anything."""

    fields: FieldSet
    version: str
    time: str | None


Managers = dict[ManagerIdentity, ManagedEntry]


def are_entries(entries: Any) -> bool:
    """Whether a managedFields list from a client is well formed, and safe to read."""
    if not isinstance(entries, list):
        return False
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            return False
        texts = (
            entry.get("manager", ""), entry.get("apiVersion"), entry.get("subresource", ""), entry.get("time") or "",
        )  # fmt: skip
        if not all(isinstance(text, str) for text in texts) or not is_field_set(entry.get("fieldsV1") or {}):
            return False
    return True


def decode_entries(entries: Iterable[Obj]) -> Managers:
    """The managers in a well-formed managedFields list, such as every stored object has."""
    managers: Managers = {}
    for entry in entries:
        operation, version = entry["operation"], entry["apiVersion"]
        known_version = "" if operation == APPLY else version
        identity = ManagerIdentity(entry.get("manager", ""), operation, known_version, entry.get("subresource", ""))
        managers[identity] = ManagedEntry(entry.get("fieldsV1") or {}, version, entry.get("time"))
    return managers


def encode_entries(managers: Managers) -> list[Obj]:
    """The managedFields list: appliers first, then by time and name."""
    found = [(identity, entry) for identity, entry in managers.items() if entry.fields]
    found.sort(key=lambda one: (one[0].operation, one[1].time or "", one[0].name, one[1].version, one[0].subresource))
    encoded: list[Obj] = []
    for identity, entry in found:
        one: Obj = {"manager": identity.name, "operation": identity.operation, "apiVersion": entry.version}
        if entry.time is not None:
            one["time"] = entry.time
        one["fieldsType"] = "FieldsV1"
        one["fieldsV1"] = entry.fields
        if identity.subresource:
            one["subresource"] = identity.subresource
        encoded.append(one)
    return encoded


def remove_fields(managers: Managers, *field_sets: FieldSet) -> Managers:
    """The managers after they lost these fields; one that owns nothing any more is removed."""
    remaining: Managers = {}
    for identity, entry in managers.items():
        fields = entry.fields
        for removed in field_sets:
            fields = difference(fields, removed)
        if fields:
            remaining[identity] = entry if fields is entry.fields else replace(entry, fields=fields)
    return remaining


def cap_updaters(managers: Managers) -> Managers:
    """At most MAX_UPDATERS: the oldest entries of one version are merged into `ancient-changes`."""
    updaters = sorted(
        (identity for identity in managers if identity.operation == UPDATE),
        key=lambda identity: (managers[identity].time or "", identity),
    )
    # Every client name makes an entry: without a limit they would outgrow the object.
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managers
    result = dict(managers)
    for version in dict.fromkeys(identity.version for identity in updaters):
        oldest = [identity for identity in updaters if identity.version == version][: surplus + 1]
        if surplus <= 0 or len(oldest) < 2:
            continue
        surplus -= len(oldest) - 1
        fields: FieldSet = {}
        for identity in oldest:
            fields = union(fields, result[identity].fields)
        time = result[oldest[-1]].time
        for identity in oldest:
            del result[identity]
        result[ManagerIdentity(ANCIENT_CHANGES, UPDATE, version)] = ManagedEntry(fields, version, time)
    return result


def conflict_error(found: Mapping[ManagerIdentity, FieldSet]) -> ApiError:
    """409: these managers own fields the applied configuration would change."""
    conflicting = [(identity, path) for identity in sorted(found) for path in paths(found[identity])]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {identity}", "field": path}
        for identity, path in conflicting
    ]
    if len(conflicting) == 1:
        identity, path = conflicting[0]
        text = f"Apply failed with 1 conflict: conflict with {identity}: {path}"
    else:
        lines: list[str] = []
        for identity in sorted(found):
            lines += [f"conflicts with {identity}:", *(f"- {path}" for path in paths(found[identity]))]
        text = f"Apply failed with {len(conflicting)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", text, {"causes": causes})


def all_fields(entries: Iterable[ManagedEntry]) -> FieldSet:
    fields: FieldSet = {}
    for entry in entries:
        fields = union(fields, entry.fields)
    return fields
