"""From models to a CustomResourceDefinition and its schema.

Models produce JSON Schema; a CRD requires its structural form: no references, no titles, null as a flag. Nothing here
depends on a dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.kube.objects import Obj

PRESERVED: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd_manifest(
    openapi: Obj,
    *,
    group: str,
    version: str,
    names: Obj,
    columns: Sequence[Obj],
    scope: str = "Namespaced",
    status: bool = True,
) -> Obj:
    """The CustomResourceDefinition of a kind in one version; `status`: whether that is a subresource."""
    served: dict[str, Any] = {"name": version, "served": True, "storage": True}
    if status:
        served["subresources"] = {"status": {}}
    served["additionalPrinterColumns"] = list(columns)
    served["schema"] = {"openAPIV3Schema": openapi}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [served]},
    }


def structural(schema: Obj, *, defaults: bool = True) -> Obj:
    """A JSON schema with $defs as one structural schema; without `defaults` nothing is filled in or required."""
    return _structural(schema, schema.get("$defs") or {}, defaults=defaults)


def _structural(schema: Obj, named: dict[str, Any], *, defaults: bool) -> Obj:
    if "$ref" in schema:
        target = named[schema["$ref"].rpartition("/")[2]]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    if "anyOf" in schema:
        return _structural(_without_null(schema, named), named, defaults=defaults)
    result: Obj = {}
    for key, value in schema.items():
        if key in ("title", "$defs") or (key in ("default", "required") and not defaults):
            continue
        if key == "default" and value is None:
            continue  # absent and null mean the same here
        result[key] = _keyword(key, value, named, defaults=defaults)
    if "enum" in result:
        result.setdefault("type", "string")
    return result


def _keyword(key: str, value: Any, named: dict[str, Any], *, defaults: bool) -> Any:
    if key == "properties":
        return {name: _structural(property_schema, named, defaults=defaults) for name, property_schema in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return _structural(value, named, defaults=defaults)
    if key == "description":
        return " ".join(value.split())
    return _without_absent(value) if key == "default" else value


def _without_absent(value: Any) -> Any:
    """A default without what it does not say."""
    if not isinstance(value, dict):
        return value
    return {
        name: _without_absent(property_schema) for name, property_schema in value.items() if property_schema is not None
    }


def _without_null(schema: Obj, named: dict[str, Any]) -> Obj:
    """X or null becomes X with a flag; unions of anything else have no place in our models."""
    choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
    (choice,) = choices
    if "$ref" in choice:
        choice = named[choice["$ref"].rpartition("/")[2]]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**choice, **rest, "nullable": True}
