"""Strategic merge patch: a merge patch whose schema marks which lists are sets and which are maps.

A list whose field is marked `merge` is joined by its merge key (or by value, for plain values) instead of replaced.
Directives inside the patch control the rest: `$patch: delete | replace`, `$deleteFromPrimitiveList/<list>`,
`$setElementOrder/<list>`, `$retainKeys`. Both inputs are copied once at the start and consumed after that.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from shoal.kube.errors import ApiError, bad_request
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone, json_type, shown
from shoal.kube.schema import Schema

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ORDER = "$setElementOrder"

_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_DELETION = "invalid patch format of primitive list"
_UNKNOWN = Schema()


def strategic_merge(schema: Schema, obj: Obj, patch: Any) -> Obj:
    """The object with the patch laid over it, lists joined as the schema requires.

    400 where a directive is malformed, 422 where the patch does not fit (an item without its merge key).
    """
    if not isinstance(patch, dict):
        into = "Go value of type map[string]interface {}"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {json_type(patch)} into {into}")
    return _merge_map(schema, clone(obj), clone(patch))


def _error(why: str) -> ApiError:
    return ApiError(422, "Invalid", why)


def _merge_map(schema: Schema, live: Obj, patch: Obj) -> Obj:
    directive = patch.pop(DIRECTIVE, "merge")
    if directive == "replace":
        return _map_without_directives(patch)
    if directive == "delete":
        return {}
    if directive != "merge":
        raise _unknown_directive(directive, patch)
    # Order matters: retained keys are removed first, then lists are ordered, which consumes their changes.
    _retain_keys(live, patch)
    for name in [key for key in patch if key.startswith(ORDER)]:
        _merge_ordered(schema, live, patch, name)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM):
            _delete_values(live, _field(name, _BAD_DELETION), value)
            continue
        if value is None:
            live.pop(name, None)
            continue
        before, below = live.get(name), schema.field(name) or _UNKNOWN
        if isinstance(value, dict) and isinstance(before, dict):
            live[name] = _merge_map(below, before, value)
        elif isinstance(value, list) and isinstance(before, list):
            live[name] = _merge_list(below, before, value)
        elif isinstance(value, dict) and DIRECTIVE in value:
            live.pop(name, None)  # a directive about something that is not there
        else:
            live[name] = _without_directives(value)
    return live


def _unknown_directive(directive: Any, patch: Obj) -> ApiError:
    return _error(f"unknown patch type: {shown(directive)} in map: {shown({**patch, DIRECTIVE: directive})}")


def _field(directive: str, problem: str) -> str:
    """The field a parallel directive (`$setElementOrder/containers`) is about."""
    prefix, slash, name = directive.partition("/")
    if not slash or prefix not in (DELETE_FROM, ORDER):
        raise bad_request(problem)
    return name


def _retain_keys(live: Obj, patch: Obj) -> None:
    if RETAIN_KEYS not in patch:
        return
    kept = patch.pop(RETAIN_KEYS)
    if not isinstance(kept, list):
        raise bad_request(_BAD_RETAIN_KEYS)
    for name, value in patch.items():
        if value is not None and name not in kept and not name.startswith((DELETE_FROM, ORDER)):
            raise bad_request(_BAD_RETAIN_KEYS)
    for name in [key for key in live if key not in kept]:
        del live[name]


def _delete_values(live: Obj, name: str, values: Any) -> None:
    if values is None:
        live.pop(name, None)
        return
    if not isinstance(values, list):
        raise bad_request(_BAD_DELETION)
    if isinstance(live.get(name), list):
        plain = {
            value for value in values if not isinstance(value, dict | list)
        }  # a set, because there may be thousands
        odd = [value for value in values if isinstance(value, dict | list)]
        live[name] = [value for value in live[name] if value not in (odd if isinstance(value, dict | list) else plain)]


def _without_directives(value: Any) -> Any:
    """A value of the patch as it would be stored: without nulls, without directives."""
    if isinstance(value, dict):
        return _map_without_directives(value)
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and DIRECTIVE in item)]
    return value


def _map_without_directives(value: Obj) -> Obj:
    directives = (DELETE_FROM, ORDER, RETAIN_KEYS)
    return {
        name: _without_directives(below)
        for name, below in value.items()
        if below is not None
        and not name.startswith(directives)
        and not (isinstance(below, dict) and DIRECTIVE in below)
    }


def _merge_list(schema: Schema, live: list[Any], patch: list[Any]) -> list[Any]:
    if "merge" not in schema.patch_strategy:
        return patch
    items = (*live, *patch)
    if any(isinstance(item, list) for item in items):
        raise _error("lists of lists are not supported")
    objects = sum(isinstance(item, dict) for item in items)
    if 0 < objects < len(items):
        raise _error(f"list element types are not identical: [{shown(live)} {shown(patch)}]")
    if not objects:
        return _ordered(list(dict.fromkeys(items)), patch, live, key="")
    return _merge_items(schema, live, patch)


def _merge_items(schema: Schema, live: list[Obj], patch: list[Obj]) -> list[Any]:
    """Join two lists of objects: same key, same item."""
    key = schema.patch_key
    if not key:
        raise _error(f"cannot merge lists without merge key for {schema.go_type or schema.type}")
    changes = [item for item in patch if item.get(DIRECTIVE, "merge") == "merge"]
    deleted = set()
    for item in patch:
        directive = item.get(DIRECTIVE, "merge")
        if directive == "delete":
            deleted.add(_identity(item, key))
        elif directive not in ("merge", "replace"):
            raise _unknown_directive(directive, item)
    if any(item.get(DIRECTIVE) == "replace" for item in patch):
        return [_map_without_directives(item) for item in changes]
    # Deleted before anything is joined: the same patch may delete an item and add one with its key.
    live = [item for item in live if _known_by(item, key) not in deleted] if deleted else live
    result = list(live)
    positions: dict[Any, int] = {}
    for at, item in enumerate(result):
        positions.setdefault(_known_by(item, key), at)
    for change in changes:
        same_key = positions.setdefault(_identity(change, key), len(result))
        if same_key == len(result):
            result.append(_map_without_directives({name: value for name, value in change.items() if name != DIRECTIVE}))
        else:
            result[same_key] = _merge_map(schema.items or _UNKNOWN, result[same_key], change)
    return _ordered(result, changes, live, key)


def _identity(item: Any, key: str) -> Any:
    """What an item of a joined list is known by: itself, or the value of its merge key."""
    if not key and isinstance(item, dict | list):
        raise _error(f"expected a plain value, but received a {json_type(item)}: {shown(item)}")
    if not key:
        return item
    if not isinstance(item, dict):
        raise _error(f"expected a map[string]interface {{}}, but received a {json_type(item)}")
    if key not in item:
        raise _error(f"map: {shown(item)} does not contain declared merge key: {key}")
    if isinstance(item[key], dict | list):
        raise _error(f"map: {shown(item)} has no plain value under its merge key: {key}")
    return item[key]


def _known_by(item: Obj, key: str) -> Any:
    """The same of an item that is stored: None where it has no plain value there."""
    value = item.get(key)
    return None if isinstance(value, dict | list) else value


def _ordered(items: list[Any], target_order: list[Any], before: list[Any], key: str) -> list[Any]:
    """The items in the order the patch names them; those it does not name stay near their old neighbours."""
    first, old = _places(target_order, key), _places(before, key)
    named = sorted(
        (item for item in items if _identity(item, key) in first), key=lambda item: first[_identity(item, key)]
    )
    others = deque(item for item in items if _identity(item, key) not in first)
    arranged: list[Any] = []
    for item in named:
        at = old.get(_identity(item, key), -1)
        while others and old.get(_identity(others[0], key), len(old)) < at:
            arranged.append(others.popleft())
        arranged.append(item)
    return [*arranged, *others]


def _places(items: list[Any], key: str) -> dict[Any, int]:
    """The first index of each identity."""
    return {_identity(item, key): at for at, item in reversed(list(enumerate(items)))}


def _merge_ordered(schema: Schema, live: Obj, patch: Obj, directive: str) -> None:
    """Join the list a `$setElementOrder` is about, then put it in that order; both are consumed from the patch."""
    order, name = patch.pop(directive), _field(directive, _BAD_ORDER)
    before, change = live.get(name), patch.get(name)
    if not isinstance(order, list) or not isinstance(change, list | None) or not isinstance(before, list | None):
        raise bad_request(_BAD_ORDER)
    below = schema.field(name) or _UNKNOWN
    key = below.patch_key if any(isinstance(item, dict) for item in (*(before or ()), *(change or ()))) else ""
    if change:
        # Every item the patch sets must be named in the order, and in the same order.
        named = _places(order, key)
        kept = [item for item in change if not (isinstance(item, dict) and DIRECTIVE in item)]
        places = [named.get(_identity(item, key), -1) for item in kept]
        if order and (-1 in places or places != sorted(places)):
            raise _error(f"The order in patch list:\n{shown(change)}\n doesn't match {ORDER} list:\n{shown(order)}\n")
    if before is None and change is None:
        return
    if name in patch and change is None:
        return  # an explicit null removes the list: its order does not matter
    if change is None:
        items = before or []
    else:
        items = _merge_list(below, before, change) if before is not None else _without_directives(change)
        del patch[name]
    live[name] = _ordered(items, order, before or [], key)
