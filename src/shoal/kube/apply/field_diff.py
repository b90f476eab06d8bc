"""What differs between two objects, and what a configuration speaks of, as sets of field paths.

`everything` is all paths of a value; `differences` the paths a write added or changed and those it removed;
`spoken_of` the paths an applied configuration claims. These three are what ownership is decided from.
"""

from __future__ import annotations

from typing import Any

from shoal.kube.apply.fieldsets import HERE, FieldSet, as_member, paths
from shoal.kube.apply.typed_schema import Doubled, Form, Place
from shoal.kube.patching.json_values import shown

_ABSENT = object()
_EITHER = (Form.FIELDS, Form.FREE)
_LISTS = (Form.KEYED, Form.SET)
_WHOLE = Form.WHOLE
_CONTAINERS = (dict, list)


def everything(place: Place, value: Any) -> FieldSet:
    """The node of a value that is wholly new: itself and every path below it."""
    if place.form is _WHOLE or not value:
        return {}
    if type(value) is dict and place.form in _EITHER:
        return _all_fields(place, value)
    if type(value) is list and place.form in _LISTS:
        return _all_items(place, value)
    return {}


def _all_fields(place: Place, value: dict[str, Any]) -> FieldSet:
    node: FieldSet = {HERE: {}}
    below = place.below
    for name, inner in value.items():
        step, child = below(name)
        node[step] = everything(child, inner) if type(inner) in _CONTAINERS else {}
    return node


def _all_items(place: Place, items: list[Any]) -> FieldSet:
    found = place.steps(items)
    if found is None:
        return {}
    node: FieldSet = {HERE: {}}
    item = place.item()
    for step, one in found.items():
        node[step] = everything(item, one) if type(one) in _CONTAINERS else {}
    return node


def differences(place: Place, old: dict[str, Any], new: dict[str, Any]) -> tuple[FieldSet, FieldSet]:
    """The paths added or changed, and the paths removed, between two objects."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    below, always = place.below, place.always
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if before is _ABSENT:
            if name not in always:
                step, child = below(name)
                changed[step] = everything(child, value)
                continue
            before = None
        if before == value or (before is None and not value and name in always):
            continue
        step, child = below(name)
        _note(step, _compare(child, before, value), changed, removed)
    for name, value in old.items():
        if name in new:
            continue
        step, child = below(name)
        if name in always:
            if value:
                _note(step, _compare(child, value, None), changed, removed)
        else:
            removed[step] = everything(child, value)
    return changed, removed


def _note(step: str, found: tuple[FieldSet | None, FieldSet | None], changed: FieldSet, removed: FieldSet) -> None:
    if found[0] is not None:
        changed[step] = found[0]
    if found[1] is not None:
        removed[step] = found[1]


def _compare(place: Place, old: Any, new: Any) -> tuple[FieldSet | None, FieldSet | None]:
    """The nodes for a value that is there before and after and differs: changed, removed."""
    if not old and not new:
        return {}, None
    if place.form in _EITHER and isinstance(old, dict | None) and isinstance(new, dict | None):
        changed, removed = differences(place, old or {}, new or {})
        return changed or None, removed or None
    if place.form in _LISTS and isinstance(old, list | None) and isinstance(new, list | None):
        before, after = place.steps(old or []), place.steps(new or [])
        if before is not None and after is not None:
            return _compare_items(place.item(), before, after)
    return {}, None


def _compare_items(
    item: Place, before: dict[str, Any], after: dict[str, Any]
) -> tuple[FieldSet | None, FieldSet | None]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    for step, new in after.items():
        old = before.get(step, _ABSENT)
        if type(new) is Doubled or type(old) is Doubled:
            if type(new) is not type(old) or new != old:
                changed[step] = {} if type(new) is Doubled else everything(item, new)
        elif old is _ABSENT:
            changed[step] = everything(item, new)
        elif old != new:
            _note(step, _compare(item, old, new), changed, removed)
    for step, old in before.items():
        if step not in after:
            removed[step] = {} if type(old) is Doubled else everything(item, old)
    return changed or None, removed or None


def spoken_of(place: Place, value: dict[str, Any], problems: list[str]) -> FieldSet:
    """The paths an applied configuration claims; what is wrong with its form is added to `problems`."""
    return {step: node for step, node in _claims(place, value, "", problems).items() if step != HERE}


def _claimed(place: Place, value: Any, path: str, problems: list[str]) -> FieldSet | None:
    """The node a value claims; None where it claims nothing (an empty list)."""
    if place.form in _EITHER and isinstance(value, dict):
        return _claims(place, value, path, problems) if value else {}
    if place.form in _LISTS and isinstance(value, list):
        return _claims_of_items(place, value, path, problems) or None
    expected = {Form.FIELDS: "map", Form.KEYED: "list", Form.SET: "list"}.get(place.form)
    if expected is not None and value is not None:
        problems.append(f"{path}: expected {expected}, got {shown(value)}")
    elif not place.admits(value):
        problems.append(f"{path}: expected {place.plain}, got &value.valueUnstructured{{Value:{shown(value)}}}")
    return {}


def _claims(place: Place, value: dict[str, Any], path: str, problems: list[str]) -> FieldSet:
    node: FieldSet = {}
    for name, inner in value.items():
        known = place.named(name)
        if known is not None:
            claimed = _claimed(known[1], inner, f"{path}.{name}", problems)
            if claimed is not None:
                node[known[0]] = claimed
        elif place.declares_values():
            # An entry of a map is itself something one can own, so its own path counts too.
            node[f"f:{name}"] = as_member(_claimed(place.values(), inner, f"{path}.{name}", problems))
        else:
            problems.append(f"{path}.{name}: field not declared in schema")
    return node


def _claims_of_items(place: Place, items: list[Any], path: str, problems: list[str]) -> FieldSet:
    node: FieldSet = {}
    for position, item in enumerate(items):
        step = place.step(item)
        if step is None:
            problems.append(f"{path}: element {position}: {_no_identity(place, item)}")
        elif step in node:
            problems.append(f"{path}: duplicate entries for key {_in_brackets(step)}")
        else:
            node[step] = as_member(_claimed(place.item(), item, f"{path}{_in_brackets(step)}", problems))
    return node


def _in_brackets(step: str) -> str:
    return next(paths({step: {}}))


def _no_identity(place: Place, item: Any) -> str:
    if place.form is Form.SET:
        return "associative list without keys has an element that is no plain value"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    keys = " ".join(f'"{key}"' for key, _ in place.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] "
        "(and doesn't have default values for any key fields)"
    )
