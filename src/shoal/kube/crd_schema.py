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
        # X or null becomes X with a flag; the models have no other unions.
        (choice,) = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
        if "$ref" in choice:
            choice = named[choice["$ref"].rpartition("/")[2]]
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _structural({**choice, **rest, "nullable": True}, named, defaults=defaults)
    dropped = {"title", "$defs"} if defaults else {"title", "$defs", "default", "required"}
    result: Obj = {key: value for key, value in schema.items() if key not in dropped}
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if "properties" in result:
        fields = result["properties"].items()
        result["properties"] = {name: _structural(child, named, defaults=defaults) for name, child in fields}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _structural(result[key], named, defaults=defaults)
    if result.get("default") is not None:
        result["default"] = _without_absent(result["default"])
    else:
        result.pop("default", None)  # absent and null mean the same here
    if "enum" in result:
        result.setdefault("type", "string")
    return result


def _without_absent(value: Any) -> Any:
    """A default without its null fields."""
    if not isinstance(value, dict):
        return value
    return {name: _without_absent(child) for name, child in value.items() if child is not None}
