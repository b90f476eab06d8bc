"""Laying an applied configuration over the live object, and taking away what its manager stopped applying.

Both follow the places of the schema: fields are joined, keyed lists are joined item by item, everything owned
whole is replaced.
"""

from __future__ import annotations

from typing import Any

from shoal.kube.apply.fieldsets import FieldSet, is_member
from shoal.kube.apply.typed_schema import Duplicates, MergeType, SchemaNode
from shoal.kube.patching.json_values import clone

_EITHER = (MergeType.GRANULAR, MergeType.DEDUCED)
_LISTS = (MergeType.ASSOCIATIVE, MergeType.SET)


def merge(node_schema: SchemaNode, live: Any, applied: Any) -> Any:
    """The live value with the applied one laid over it; shares nothing with either."""
    if node_schema.merge_type in _EITHER and isinstance(live, dict) and isinstance(applied, dict):
        result = {name: value if name in applied else clone(value) for name, value in live.items()}
        for name, value in applied.items():
            result[name] = merge(node_schema.child_of(name)[1], live.get(name), value)
        return result
    if node_schema.merge_type in _LISTS and isinstance(live, list) and isinstance(applied, list):
        return _merged_lists(node_schema, live, applied)
    return clone(applied)


def _merged_lists(node_schema: SchemaNode, live: list[Any], applied: list[Any]) -> list[Any]:
    """Applied items in the order applied; items only the live list has keep their place before the next shared one."""
    old, new = node_schema.steps(live), node_schema.steps(applied)
    if old is None or new is None:
        return [clone(item) for item in applied]
    waiting = list(new)
    result: list[Any] = []
    shared = iter([step for step in new if step in old])
    expected = next(shared, None)
    for step in old:
        if step not in new:
            kept = old[step]
            result.extend([clone(item) for item in kept] if type(kept) is Duplicates else [clone(kept)])
        elif step == expected:
            # Everything applied up to this item is added now, before what follows it in the live list.
            while waiting:
                ready = waiting.pop(0)
                result.append(_merged_item(node_schema, old.get(ready), new[ready]))
                if ready == step:
                    break
            expected = next((s for s in shared if s in waiting), None)
    result.extend(_merged_item(node_schema, old.get(step), new[step]) for step in waiting)
    return result


def _merged_item(node_schema: SchemaNode, old: Any, new: Any) -> Any:
    return clone(new) if old is None or type(old) is Duplicates else merge(node_schema.item(), old, new)


EmptiedFields = list[tuple[dict[str, Any], str]]


def prune(node_schema: SchemaNode, value: Any, last: FieldSet, owned: FieldSet, emptied: EmptiedFields) -> None:
    """Remove, in place, what the manager applied last time and no manager owns now.

    `last` is what it applied then, `owned` what any owns now, itself included. A declared field is removed with all it
    contains once nothing in it is owned; an item or an entry is removed once it has no owner itself. Maps and lists
    that became empty this way are noted in `emptied`: they should be removed as well, but only after ownership is
    settled, because their owners did not lose them.
    """
    if node_schema.merge_type in _EITHER and isinstance(value, dict):
        for name in list(value):
            known = node_schema.field(name)
            step, child_of = known or node_schema.child_of(name)
            is_full = bool(value[name])
            if not _is_kept(step, child_of, value[name], last, owned, emptied, is_declared=known is not None):
                del value[name]
            elif is_full and not value[name]:
                emptied.append((value, name))
    elif node_schema.merge_type in _LISTS and isinstance(value, list):
        item_schema = node_schema.item()
        kept = []
        for item in value:
            item_step = node_schema.step(item)
            if item_step is None or _is_kept(item_step, item_schema, item, last, owned, emptied, is_declared=False):
                kept.append(item)
        value[:] = kept


def _is_kept(
    step: str,
    node_schema: SchemaNode,
    value: Any,
    last: FieldSet,
    owned: FieldSet,
    emptied: EmptiedFields,
    *,
    is_declared: bool,
) -> bool:
    """Whether what is behind this step stays; what is not owned below it is removed on the way."""
    before, now = last.get(step), owned.get(step)
    if before is None:
        return True
    if (is_declared or is_member(before)) and not (now is not None and (is_declared or is_member(now))):
        return False
    prune(node_schema, value, before, now or {}, emptied)
    return True
