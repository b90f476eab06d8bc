"""The difference between two objects, and the fields of a configuration, as sets of field paths.

`field_paths` is all paths of a value; `diff` the paths a write added or changed and those it removed;
`applied_fields` the paths an applied configuration claims. Ownership is determined from these three.
"""

from __future__ import annotations

from typing import Any

from shoal.kube.apply.fieldsets import HERE, FieldSet, as_member, paths
from shoal.kube.apply.typed_schema import Duplicates, MergeType, SchemaNode
from shoal.kube.patching.json_values import shown

_ABSENT = object()
_EITHER = (MergeType.GRANULAR, MergeType.DEDUCED)
_LISTS = (MergeType.ASSOCIATIVE, MergeType.SET)
_ATOMIC = MergeType.ATOMIC
_CONTAINERS = (dict, list)


def field_paths(node_schema: SchemaNode, value: Any) -> FieldSet:
    """The node of a value that is wholly new: itself and every path below it."""
    if node_schema.merge_type is _ATOMIC or not value:
        return {}
    node: FieldSet = {HERE: {}}
    if type(value) is dict and node_schema.merge_type in _EITHER:
        child_of = node_schema.child_of
        for name, inner in value.items():
            step, child = child_of(name)
            node[step] = field_paths(child, inner) if type(inner) in _CONTAINERS else {}
        return node
    if type(value) is list and node_schema.merge_type in _LISTS:
        items = node_schema.steps(value)
        if items is None:
            return {}  # an item without identity makes the list one value
        item = node_schema.item()
        for step, inner in items.items():
            node[step] = field_paths(item, inner) if type(inner) in _CONTAINERS else {}
        return node
    return {}


def diff(node_schema: SchemaNode, old: dict[str, Any], new: dict[str, Any]) -> tuple[FieldSet, FieldSet]:
    """The paths added or changed, and the paths removed, between two objects."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    child_of, always_present = node_schema.child_of, node_schema.always_present
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if before is _ABSENT:
            # The typed objects of an API server always have these fields: filling one in does not add it.
            if name not in always_present:
                step, child = child_of(name)
                changed[step] = field_paths(child, value)
                continue
            before = None
        if before == value or (before is None and not value and name in always_present):
            continue
        step, child = child_of(name)
        _record(step, _compare(child, before, value), changed, removed)
    for name, value in old.items():
        if name in new:
            continue
        step, child = child_of(name)
        if name in always_present:
            if value:
                _record(step, _compare(child, value, None), changed, removed)
        else:
            removed[step] = field_paths(child, value)
    return changed, removed


def _record(step: str, found: tuple[FieldSet | None, FieldSet | None], changed: FieldSet, removed: FieldSet) -> None:
    if found[0] is not None:
        changed[step] = found[0]
    if found[1] is not None:
        removed[step] = found[1]


def _compare(node_schema: SchemaNode, old: Any, new: Any) -> tuple[FieldSet | None, FieldSet | None]:
    """The nodes for a value that is there before and after and differs: changed, removed."""
    if not old and not new:
        # One empty value became another: null, an empty map, zero.
        return {}, None
    if node_schema.merge_type in _EITHER and isinstance(old, dict | None) and isinstance(new, dict | None):
        changed, removed = diff(node_schema, old or {}, new or {})
        return changed or None, removed or None
    if node_schema.merge_type not in _LISTS or not isinstance(old, list | None) or not isinstance(new, list | None):
        return {}, None
    before, after = node_schema.steps(old or []), node_schema.steps(new or [])
    if before is None or after is None:
        return {}, None
    changed, removed = {}, {}
    item_schema = node_schema.item()
    for step, item in after.items():
        was = before.get(step, _ABSENT)
        if type(item) is Duplicates or type(was) is Duplicates:
            if type(item) is not type(was) or item != was:
                changed[step] = {} if type(item) is Duplicates else field_paths(item_schema, item)
        elif was is _ABSENT:
            changed[step] = field_paths(item_schema, item)
        elif was != item:
            _record(step, _compare(item_schema, was, item), changed, removed)
    for step, was in before.items():
        if step not in after:
            removed[step] = {} if type(was) is Duplicates else field_paths(item_schema, was)
    return changed or None, removed or None


def applied_fields(node_schema: SchemaNode, value: dict[str, Any], problems: list[str]) -> FieldSet:
    """The paths an applied configuration claims; what is wrong with its form is added to `problems`."""
    return {
        step: node for step, node in _applied_fields_below(node_schema, value, "", problems).items() if step != HERE
    }


def _applied(node_schema: SchemaNode, value: Any, path: str, problems: list[str]) -> FieldSet | None:
    """The node a value claims; None where it claims nothing (an empty list)."""
    if node_schema.merge_type in _EITHER and isinstance(value, dict):
        return _applied_fields_below(node_schema, value, path, problems) if value else {}
    if node_schema.merge_type in _LISTS and isinstance(value, list):
        node: FieldSet = {}
        for position, item in enumerate(value):
            step = node_schema.step(item)
            if step is None:
                problems.append(f"{path}: element {position}: {_missing_key_message(node_schema, item)}")
            elif step in node:
                problems.append(f"{path}: duplicate entries for key {_in_brackets(step)}")
            else:
                node[step] = as_member(_applied(node_schema.item(), item, f"{path}{_in_brackets(step)}", problems))
        return node or None
    expected = {MergeType.GRANULAR: "map", MergeType.ASSOCIATIVE: "list", MergeType.SET: "list"}.get(
        node_schema.merge_type
    )
    if expected is not None and value is not None:
        problems.append(f"{path}: expected {expected}, got {shown(value)}")
    elif not node_schema.accepts(value):
        problems.append(f"{path}: expected {node_schema.plain}, got &value.valueUnstructured{{Value:{shown(value)}}}")
    return {}


def _applied_fields_below(node_schema: SchemaNode, value: dict[str, Any], path: str, problems: list[str]) -> FieldSet:
    node: FieldSet = {}
    for name, inner in value.items():
        known = node_schema.field(name)
        if known is not None:
            applied = _applied(known[1], inner, f"{path}.{name}", problems)
            if applied is not None:
                node[known[0]] = applied
        elif node_schema.declares_values():
            # An entry of a map is itself something one can own, so its own path counts too.
            node[f"f:{name}"] = as_member(_applied(node_schema.values(), inner, f"{path}.{name}", problems))
        else:
            problems.append(f"{path}.{name}: field not declared in schema")
    return node


def _in_brackets(step: str) -> str:
    return next(paths({step: {}}))


def _missing_key_message(node_schema: SchemaNode, item: Any) -> str:
    if node_schema.merge_type is MergeType.SET:
        return "associative list without keys has an element that is no plain value"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    keys = " ".join(f'"{key}"' for key, _ in node_schema.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] "
        "(and doesn't have default values for any key fields)"
    )
