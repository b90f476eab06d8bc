"""Reads the openAPIV3Schema of a definition into a `Schema`.

The keywords every walk needs become attributes; the others stay in `Schema.rules` for `schema_validation`, with nested
schemas (allOf, anyOf, oneOf, not) read too. `rules["types"]` are the JSON types as declared, since a schema
nested in a condition has none and must not be given one. The root, and every embedded resource, has apiVersion, kind
and metadata without having to declare them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shoal.kube.schema import Schema
from shoal.kube.schemas import named

_LIMITS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip
_UNDECLARED = Schema("any", custom=True)  # scalars are kept, fields of objects are not


def schema_from(openapi: dict[str, Any]) -> Schema:
    """The schema of whole objects; a definition that `crd_problems` refuses may be read all the same."""
    return _read(openapi, is_resource=True)


def schema_below(props: dict[str, Any]) -> Schema:
    """The schema of one place within."""
    return _read(props)


def _read(props: dict[str, Any], *, is_resource: bool = False) -> Schema:
    embedded = bool(props.get("x-kubernetes-embedded-resource"))
    keeps_unknown = bool(props.get("x-kubernetes-preserve-unknown-fields"))
    is_int_or_string = bool(props.get("x-kubernetes-int-or-string"))
    fields = {name: _read(below) for name, below in (props.get("properties") or {}).items()}
    if is_resource or embedded:
        fields = _with_resource_fields(fields)
    items, more = props.get("items"), props.get("additionalProperties")
    values = _read(more) if isinstance(more, dict) else None if more is None else _UNDECLARED
    return Schema(
        "string" if is_int_or_string else props.get("type") or ("object" if fields else "any"),
        "int-or-string" if is_int_or_string else props.get("format") or "",
        fields=fields,
        values=values,
        items=_read(items) if isinstance(items, dict) else None,
        required=tuple(props.get("required") or ()),
        description=props.get("description") or "",
        default=props.get("default"),
        enum=tuple(props.get("enum") or ()),
        list_type=props.get("x-kubernetes-list-type") or "atomic",
        list_keys=tuple(props.get("x-kubernetes-list-map-keys") or ()),
        map_type=props.get("x-kubernetes-map-type") or "granular",
        preserve_unknown=keeps_unknown,
        embedded_resource=embedded,
        nullable=bool(props.get("nullable")),
        custom=True,
        rules=_rules_of(props),
    )


def _with_resource_fields(fields: dict[str, Schema]) -> dict[str, Schema]:
    """A definition's schema of metadata can only restrict names, so the real metadata schema replaces it."""
    pod = named("Pod").fields
    declared = fields.get("metadata")
    shared = {name: fields.get(name) or pod[name] for name in ("apiVersion", "kind")}
    metadata = pod["metadata"]
    restricts = declared is not None and declared.fields
    shared["metadata"] = replace(metadata, rules={"restricts": declared}) if restricts else metadata
    return {**shared, **{name: below for name, below in fields.items() if name not in shared}}


def _rules_of(props: dict[str, Any]) -> dict[str, Any]:
    rules: dict[str, Any] = {name: props[name] for name in _LIMITS if props.get(name) is not None}
    if props.get("x-kubernetes-int-or-string"):
        rules["types"] = ("integer", "string")
    elif props.get("type"):
        rules["types"] = (props["type"],)
    for name in ("allOf", "anyOf", "oneOf"):
        if props.get(name):
            rules[name] = tuple(_read(below) for below in props[name])
    if props.get("not"):
        rules["not"] = _read(props["not"])
    if props.get("additionalProperties") is False:
        rules["closed"] = True
    return rules
