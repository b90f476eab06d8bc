"""Keywords of a custom schema: which may be used, and which only together with others.

These rules hold at every place of a schema, within conditions too. Whether the schema as a whole is structural
is the question of `structural`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import forbidden, invalid, not_supported, required

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_META_FIELDS = ("apiVersion", "kind", "metadata")


def children(props: Obj, path: str, *, conditions: bool = True) -> Iterator[tuple[str, Any]]:
    """The schemas directly below one, with their paths; those in conditions only where wanted."""
    for name, child in (props.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", child
    for name in ("items", "additionalProperties", "not") if conditions else ("items", "additionalProperties"):
        if isinstance(props.get(name), dict):
            yield f"{path}.{name}", props[name]
    if not conditions:
        return
    for name in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(props.get(name) or ()):
            yield f"{path}.{name}[{index}]", child


def keyword_problems(props: Obj, path: str, *, is_root: bool = False) -> Iterator[Cause]:
    kind = props.get("type") or ""
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    for name in _UNSUPPORTED:
        if props.get(name) not in (None, "", {}):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if isinstance(props.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if props.get("uniqueItems"):
        message = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", message)
    more = props.get("additionalProperties")
    if props.get("properties") and (more is False or isinstance(more, dict)):
        message = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", message)
    if is_root:
        for name in _META_FIELDS:
            if (props.get("properties") or {}).get(name, {}).get("default") is not None:
                yield forbidden(f"{path}.properties[{name}].default", f"must not be set in top-level {name}")
    for below, child in children(props, path):
        yield from keyword_problems(child, below)
    yield from _merging(props, path)


def _merging(props: Obj, path: str) -> Iterator[Cause]:
    kind = props.get("type") or ""
    if props.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    for name, holder, choices in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        chosen = props.get(name)
        if chosen is None:
            continue
        if kind != holder:
            message = f"must be {holder} if {name} is specified"
            yield invalid(f"{path}.type", kind, message) if kind else required(f"{path}.type", message)
        if chosen not in choices:
            yield not_supported(f"{path}.{name}", chosen, choices)
    list_type, keys = props.get("x-kubernetes-list-type"), props.get("x-kubernetes-list-map-keys") or []
    if keys and list_type != "map":
        where, message = f"{path}.x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(where, list_type, message) if list_type else required(where, message)
    if list_type in ("set", "map"):
        yield from _list_items(props.get("items"), path, list_type=list_type, keys=keys)


def _list_items(items: Any, path: str, *, list_type: str, keys: list[str]) -> Iterator[Cause]:
    if list_type == "map" and not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        if list_type == "map":
            yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if list_type == "set":
        message = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
            yield invalid(f"{path}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], message)
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), message)
    elif items.get("type") != "object":
        message = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", message)
    else:
        yield from _map_keys(items, path, keys)
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")


def _map_keys(items: Obj, path: str, keys: list[str]) -> Iterator[Cause]:
    fields = items.get("properties") or {}
    for position, key in enumerate(keys):
        here = f"{path}.items.properties[{key}]"
        known = fields.get(key)
        if known is None:
            message = "entries must all be names of item properties"
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, message)
            continue
        if known.get("type") in ("array", "object"):
            message = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{here}.type", items.get("type"), message)
        if key in keys[:position]:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")
        why = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and known.get("default") is None:
            yield required(f"{here}.default", f"{why} must have a default or be a required property")
        if known.get("nullable"):
            yield forbidden(f"{here}.nullable", f"{why} cannot be nullable")
