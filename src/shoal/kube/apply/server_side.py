"""Server-side apply and the ownership of fields (metadata.managedFields).

`apply` merges a partial object into the live one, field by field, and records each field's manager: a field another
manager set to a different value is a conflict unless forced, a field its last applier omits is removed. `track` does
the bookkeeping of every other write: what a write changed now belongs to its writer.

Both are pure; the time is passed as text. Checking versions, defaulting and validating the result is the caller's.
"""

from __future__ import annotations

from typing import Any

from shoal.kube.apply import client_side
from shoal.kube.apply.field_diff import applied_fields, diff
from shoal.kube.apply.fieldsets import FieldSet, difference, intersection, union
from shoal.kube.apply.managed_fields import (
    APPLY,
    UPDATE,
    ManagedEntry,
    ManagerIdentity,
    Managers,
    all_fields,
    are_entries,
    cap_updaters,
    conflict_error,
    decode_entries,
    encode_entries,
    remove_fields,
)
from shoal.kube.apply.merge import EmptiedFields, merge, prune
from shoal.kube.apply.typed_schema import SchemaNode, schema_node
from shoal.kube.errors import bad_request
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import json_equal, without_nulls
from shoal.kube.schema import Schema

BEFORE_FIRST_APPLY = "before-first-apply"

# What the system itself writes has no owner.
_UNOWNED_AT_ROOT = ("f:apiVersion", "f:kind")
_UNOWNED_METADATA = frozenset(
    (
        ".", "f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:clusterName", "f:generation",
        "f:managedFields", "f:resourceVersion",
    )
)  # fmt: skip


def track(schema: Schema, live: Obj | None, new: Obj, *, manager: str, now: str, subresource: str = "") -> Obj:
    """`new` with its managedFields as they are after an ordinary create, update or patch by `manager`.

    `live` is None for a create. Inputs are not changed; the result shares unchanged values with them. An object whose
    managedFields were emptied stays untracked until it is applied to.
    """
    version = str(new.get("apiVersion", ""))
    if live is None and not new["metadata"].get("managedFields"):
        fields = _without_unowned(diff(schema_node(schema), {}, new)[0])
        own_identity = {ManagerIdentity(manager, UPDATE, version, subresource): ManagedEntry(fields, version, now)}
        return _with_entries(new, encode_entries(own_identity))
    # The entries a write starts from: those it sent, if it sent well-formed ones, else those of the live object.
    entries = (live or {}).get("metadata", {}).get("managedFields") or []
    sent = new["metadata"].get("managedFields")
    if sent is not None and sent != entries and not subresource:
        if sent in ([], [{}]):
            entries = []
        elif are_entries(sent):
            entries = sent
    if not entries:
        # Emptied managedFields switch tracking off until the next apply.
        return _with_entries(new, [])
    changed, removed = diff(schema_node(schema), _without_managed_fields(live or {}), _without_managed_fields(new))
    if not changed and not removed:
        return _with_entries(new, entries)
    managers = remove_fields(decode_entries(entries), changed, removed)
    owned = _without_unowned(changed)
    if owned:
        update_identity = ManagerIdentity(manager, UPDATE, version, subresource)
        before = managers.get(update_identity)
        managers[update_identity] = ManagedEntry(union(before.fields, owned) if before else owned, version, now)
    return _with_entries(new, encode_entries(cap_updaters(managers)))


def apply(
    schema: Schema, live: Obj | None, applied: Obj, *, manager: str, force: bool, now: str, subresource: str = ""
) -> Obj:
    """The live object (None: not there yet) with the configuration applied to it by `manager`.

    Raises 409 with a cause per field where another manager owns what would change and `force` is not given; 400
    where the configuration has unknown fields, doubled list items or its own managedFields. A field given as
    null is a field not given.
    """
    node_schema = schema_node(schema)
    config = without_nulls(applied)
    applied_paths = _applied_fields(node_schema, config)
    base = _without_managed_fields(live) if live is not None else {}
    managers = _managers_before(node_schema, live, base, now=now, subresource=subresource)
    own_identity = ManagerIdentity(manager, APPLY, "", subresource)
    last = managers.pop(own_identity, None)
    result: Obj = merge(node_schema, base, config)
    emptied: EmptiedFields = []
    if last is not None:
        # Only what this manager applied before and no manager owns now may go: unowned fields stay.
        prune(node_schema, result, last.fields, union(all_fields(managers.values()), applied_paths), emptied)
    changed, removed = diff(node_schema, base, result)
    if not force:
        _check_conflicts(node_schema, base, managers, changed, manager)
    managers = remove_fields(managers, changed, removed)
    if emptied:
        for holder, name in emptied:
            del holder[name]
        result = merge(node_schema, result, config)  # what is applied as empty stays
    # A repeated apply keeps its time: an operator that applies every few seconds must not change the object.
    is_change = not json_equal(result, base)
    time = now if is_change else last.time if last else None
    fields = _without_unowned(applied_paths)
    if fields:
        managers[own_identity] = ManagedEntry(fields, str(config.get("apiVersion", "")), time)
    client_side.refresh(result, config, manager)
    return _with_entries(result, encode_entries(managers))


def check(schema: Schema, applied: Obj) -> None:
    """400 where a configuration does not fit: unknown fields, values of another type, doubled list items."""
    _applied_fields(schema_node(schema), without_nulls(applied))


def _managers_before(node_schema: SchemaNode, live: Obj | None, base: Obj, *, now: str, subresource: str) -> Managers:
    if live is None:
        return {}
    managers = decode_entries(live.get("metadata", {}).get("managedFields") or [])
    if managers:
        return managers
    # Nothing was tracked so far: all existing fields belong to the earlier manager.
    version = str(live.get("apiVersion", ""))
    fields = _without_unowned(diff(node_schema, {}, base)[0])
    return (
        {ManagerIdentity(BEFORE_FIRST_APPLY, UPDATE, version, subresource): ManagedEntry(fields, version, now)}
        if fields
        else {}
    )


def _applied_fields(node_schema: SchemaNode, config: Obj) -> FieldSet:
    if (config.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    problems: list[str] = []
    fields = applied_fields(node_schema, config, problems)
    if problems:
        detail = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
        meta = config.get("metadata") or {}
        group, _, version = str(config.get("apiVersion", "")).rpartition("/")
        obj = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {group}/{version}, Kind={config.get('kind', '')}"
        raise bad_request(f"failed to create typed patch object ({obj}): {detail}")
    return fields


def _check_conflicts(node_schema: SchemaNode, base: Obj, managers: Managers, changed: FieldSet, manager: str) -> None:
    found = {
        identity: fields for identity, entry in managers.items() if (fields := intersection(entry.fields, changed))
    }
    if found and manager == client_side.KUBECTL:
        # What `kubectl apply` set client-side before, kubectl may take over.
        allowed = client_side.fields_of_last_applied(node_schema, base)
        found = {identity: left for identity, fields in found.items() if (left := difference(fields, allowed))}
    if found:
        raise conflict_error(found)


def _without_unowned(fields: FieldSet) -> FieldSet:
    """The fields without those that have no owner."""
    result = {step: node for step, node in fields.items() if step not in _UNOWNED_AT_ROOT}
    if "f:metadata" in result:
        metadata = {step: node for step, node in result["f:metadata"].items() if step not in _UNOWNED_METADATA}
        if metadata:
            result["f:metadata"] = metadata
        else:
            del result["f:metadata"]
    return result


def _without_managed_fields(obj: Obj) -> Obj:
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def _with_entries(obj: Obj, entries: list[Any]) -> Obj:
    meta = dict(obj.get("metadata") or {})
    meta.pop("managedFields", None)
    if entries:
        meta["managedFields"] = entries
    return {**obj, "metadata": meta}
