"""Whether the schema of a custom resource is structural, with the messages of Kubernetes.

Structural means: every place declares its type outside of any condition, so that a program can see from the schema
alone which fields exist. Conditions (allOf, anyOf, oneOf, not) may then restrict values, and nothing else. The rules
for single keywords, which hold within conditions too, are in `keywords`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.re2 import BadPattern, compiled
from shoal.kube.schema import unknown_fields
from shoal.kube.structural_schema.keywords import children, keyword_problems
from shoal.kube.structural_schema.schema_parser import schema_below
from shoal.kube.structural_schema.schema_validation import validate
from shoal.kube.validation.errors import forbidden, invalid, required

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
# With a status subresource the status is validated by properties.status alone: conditions at the root would be lost.
_AT_ROOT = {
    "description": "Description", "type": "Type", "format": "Format", "title": "Title", "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum", "minimum": "Minimum", "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength", "minLength": "MinLength", "pattern": "Pattern", "maxItems": "MaxItems",
    "minItems": "MinItems", "uniqueItems": "UniqueItems", "multipleOf": "MultipleOf", "required": "Required",
    "items": "Items", "properties": "Properties", "externalDocs": "ExternalDocs", "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields", "x-kubernetes-validations": "XValidations",
}  # fmt: skip
# Keywords that a condition must not have, each with the message.
_NOT_IN_CONDITIONS = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def schema_problems(schema: Obj, path: str, *, has_status: bool) -> list[Cause]:
    """Every error in the openAPIV3Schema at `path` of its definition."""
    unstructured = [*_structure(schema, path, level="root"), *_completeness(schema, schema, path, path)]
    if any(props.get("$ref") for _, props in _places(schema, path)):
        unstructured = []  # the target of a reference is not known, so neither is what is missing there
    found: list[Cause] = []
    if has_status and any(value and name not in _AT_ROOT for name, value in schema.items()):
        listed = " ".join(_AT_ROOT.values())
        message = f"only [{listed}] fields are allowed at the root of the schema if the status subresource is enabled"
        found.append(invalid(path, schema, message))
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    found += sorted(unstructured, key=str) or _defaults(schema, path)
    found += keyword_problems(schema, path, is_root=True)
    return found


def _defaults(props: Obj, path: str) -> Iterator[Cause]:
    """A default is an ordinary value: it holds no unknown fields and is valid."""
    default = props.get("default")
    if default is not None:
        schema = schema_below(props)
        if unknown_fields(schema, default):
            yield invalid(f"{path}.default", default, "must not have unknown fields")
        for cause in validate(schema, default):
            where = f"{path}.default.{cause.field}" if cause.field else f"{path}.default"
            yield Cause(cause.reason, cause.message, where)
    for below, child in children(props, path, conditions=False):
        yield from _defaults(child, below)


def _places(props: Any, path: str) -> Iterator[tuple[str, Obj]]:
    if not isinstance(props, dict):
        return
    yield path, props
    for below, child in children(props, path):
        yield from _places(child, below)


# --- structure: every place outside of conditions ------------------------------------------------------------------


def _structure(props: Obj, path: str, *, level: str) -> Iterator[Cause]:
    items, more = props.get("items"), props.get("additionalProperties")
    if props.get("type") == "array" and not isinstance(items, dict | list):
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _structure(items, f"{path}.items", level="item")
    for name, child in (props.get("properties") or {}).items():
        yield from _structure(child, f"{path}.properties[{name}]", level="field")
    if more is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(more, dict):
        yield from _structure(more, f"{path}.additionalProperties", level="field")
    yield from _extensions(props, path)
    yield from _conditions(props, path)
    yield from _type(props, path, level=level)
    yield from _metadata(props, path, level=level)


def _extensions(props: Obj, path: str) -> Iterator[Cause]:
    if props.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if props.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
    if props.get("x-kubernetes-embedded-resource"):
        if props.get("additionalProperties") is not None:
            message = "must not be used if x-kubernetes-embedded-resource is set"
            yield forbidden(f"{path}.additionalProperties", message)
        if not props.get("x-kubernetes-preserve-unknown-fields") and not props.get("properties"):
            message = "must not be empty if x-kubernetes-embedded-resource is true without "
            yield required(f"{path}.properties", f"{message}x-kubernetes-preserve-unknown-fields")


def _type(props: Obj, path: str, *, level: str) -> Iterator[Cause]:
    kind = props.get("type") or ""
    if props.get("x-kubernetes-embedded-resource") and kind != "object":
        message = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, message) if kind else required(f"{path}.type", message)
    elif not kind:
        if not props.get("x-kubernetes-int-or-string") and not props.get("x-kubernetes-preserve-unknown-fields"):
            where = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
            yield required(f"{path}.type", f"must not be empty {where[level]}")
    elif level == "root" and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _metadata(props: Obj, path: str, *, level: str) -> Iterator[Cause]:
    fields = props.get("properties") or {}
    if level != "root" and not props.get("x-kubernetes-embedded-resource"):
        return
    for name in ("kind", "apiVersion"):
        if name in fields and fields[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", fields[name].get("type") or "", "must be string")
    metadata = fields.get("metadata")
    if metadata is None:
        return
    if metadata.get("type") != "object":
        yield invalid(f"{path}.properties[metadata].type", metadata.get("type") or "", "must be object")
    others = set(metadata) - {"type", "properties", "description", "default"}
    names = set(metadata.get("properties") or {})
    if level == "root" and (others or not names <= {"name", "generateName"} or metadata.get("description")):
        message = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", message)


def _conditions(props: Obj, path: str, *, skip_any_of: bool = False) -> Iterator[Cause]:
    """The conditions at one place. Naming both types is allowed once, next to x-kubernetes-int-or-string."""
    # The first allOf may hold the anyOf of both types, as Kubernetes writes it for IntOrString.
    first_of_all = (props.get("allOf") or [{}])[0]
    if not skip_any_of and props.get("anyOf") != _INT_OR_STRING:
        for index, part in enumerate(props.get("anyOf") or ()):
            yield from _condition(part, f"{path}.anyOf[{index}]")
    for index, part in enumerate(props.get("allOf") or ()):
        both = index == 0 and first_of_all.get("anyOf") == _INT_OR_STRING
        yield from _condition(part, f"{path}.allOf[{index}]", skip_any_of=both)
    for index, part in enumerate(props.get("oneOf") or ()):
        yield from _condition(part, f"{path}.oneOf[{index}]")
    if props.get("not"):
        yield from _condition(props["not"], f"{path}.not")
    if props.get("pattern"):
        try:
            compiled(props["pattern"])
        except BadPattern as problem:
            message = f"must be a valid regular expression, but isn't: {problem}"
            yield invalid(f"{path}.pattern", props["pattern"], message)


def _condition(props: Obj, path: str, *, skip_any_of: bool = False) -> Iterator[Cause]:
    yield from _conditions(props, path, skip_any_of=skip_any_of)
    if isinstance(props.get("items"), dict):
        yield from _condition(props["items"], f"{path}.items")
    for name, child in (props.get("properties") or {}).items():
        yield from _condition(child, f"{path}.properties[{name}]")
    for name, message in _NOT_IN_CONDITIONS.items():
        if props.get(name) not in (None, "", False, []):
            yield forbidden(f"{path}.{name}", message)
    if "metadata" in (props.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(condition: Obj, target_schema: Obj | None, schema_path: str, path: str) -> Iterator[Cause]:
    """Every field a condition refers to exists outside of it."""
    parts = []
    for name in ("allOf", "anyOf", "oneOf"):
        parts += [(f"{path}.{name}[{index}]", part) for index, part in enumerate(condition.get(name) or ())]
    if condition.get("not"):
        parts.append((f"{path}.not", condition["not"]))
    for here, part in parts:
        yield from _completeness(part, target_schema, schema_path, here)
        yield from _completechildren(part, target_schema or {}, schema_path, here)


def _completechildren(part: Obj, target_schema: Obj, schema_path: str, path: str) -> Iterator[Cause]:
    if isinstance(part.get("items"), dict):
        yield from _complete_child(part["items"], target_schema.get("items"), f"{schema_path}.items", f"{path}.items")
    for name, child in (part.get("properties") or {}).items():
        step = f"properties[{name}]"
        known = (target_schema.get("properties") or {}).get(name)
        yield from _complete_child(child, known, f"{schema_path}.{step}", f"{path}.{step}")


def _complete_child(part: Obj, target_schema: Any, schema_path: str, path: str) -> Iterator[Cause]:
    if not isinstance(target_schema, dict):
        yield required(schema_path, f"because it is defined in {path}")
        return
    yield from _completeness(part, target_schema, schema_path, path)
    yield from _completechildren(part, target_schema, schema_path, path)
