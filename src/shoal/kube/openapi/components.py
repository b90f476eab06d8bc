"""The shared section of an OpenAPI document: one component for each named type, referenced where it is used.

`Components` collects while it describes: requesting a reference adds the type, and all it refers to, to the document. A
custom resource has its schema as OpenAPI already; only what every object has is added.
"""

from __future__ import annotations

from typing import Any

from shoal.kube.kinds import Kind
from shoal.kube.schema import Schema
from shoal.kube.schemas import named, schema_of

_PREFIX = "#/components/schemas/"
_PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"


class Components:
    def __init__(self) -> None:
        self._schemas: dict[str, dict[str, Any]] = {}

    def schemas(self) -> dict[str, Any]:
        return dict(sorted(self._schemas.items()))

    def of_kind(self, kind: Kind) -> dict[str, str]:
        """A reference to the objects of a kind."""
        name = component_name(kind)
        if name not in self._schemas:
            self._schemas[name] = {}  # seen: a type may refer to itself
            if kind.openapi is None:
                described = self._described(schema_of(kind))
            else:
                declared = kind.openapi.get("properties") or {}
                metadata = self._field_schema(named("Pod").fields["metadata"])
                properties = {**self._type_fields(), **declared, "metadata": metadata}
                described = {**kind.openapi, "properties": properties}
            described["x-kubernetes-group-version-kind"] = [gvk(kind)]
            self._schemas[name] = described
        return {"$ref": _PREFIX + name}

    def of_list(self, kind: Kind) -> dict[str, str]:
        """A reference to lists of a kind."""
        name = f"{component_name(kind)}List"
        if name not in self._schemas:
            self._schemas[name] = {
                "description": f"A list of {kind.kind} objects.",
                "type": "object",
                "required": ["items"],
                "properties": {
                    **self._type_fields(),
                    "items": {"type": "array", "items": self.of_kind(kind), "description": "The objects."},
                    "metadata": self._field_schema(named("Status", "meta").fields["metadata"]),
                },
                "x-kubernetes-group-version-kind": [{**gvk(kind), "kind": kind.list_kind}],
            }
        return {"$ref": _PREFIX + name}

    def of_type(self, name: str, group: str, version: str = "v1") -> dict[str, str]:
        """A reference to a type that is sent or answered but not stored, such as Status or Scale."""
        schema = named(name, group)
        reference = self._reference(schema)
        shown_group = "" if group == "meta" else group
        marks = [{"group": shown_group, "version": version, "kind": name}]
        self._schemas[schema.component].setdefault("x-kubernetes-group-version-kind", marks)
        return reference

    def of_patch(self) -> dict[str, str]:
        self._schemas[_PATCH] = {"description": "A change to an object, in the form of its content type."}
        return {"$ref": _PREFIX + _PATCH}

    def _type_fields(self) -> dict[str, Any]:
        fields = named("Pod").fields
        return {name: self._field_schema(fields[name]) for name in ("apiVersion", "kind")}

    def _reference(self, schema: Schema) -> dict[str, str]:
        if schema.component not in self._schemas:
            self._schemas[schema.component] = {}
            self._schemas[schema.component] = self._described(schema)
        return {"$ref": _PREFIX + schema.component}

    def _described(self, schema: Schema) -> dict[str, Any]:
        """A component in full."""
        described: dict[str, Any] = {"description": schema.about} | _scalar(schema)
        if schema.fields:
            described["properties"] = {name: self._field_schema(below) for name, below in sorted(schema.fields.items())}
        if schema.required:
            described["required"] = list(schema.required)
        return described | _merging(schema)

    def _field_schema(self, schema: Schema) -> dict[str, Any]:
        """One use of a type: its own description, and a reference where the type is shared."""
        description = {"description": schema.description} if schema.description else {}
        if schema.component:
            reference = self._reference(schema)
            shared = self._schemas[schema.component].get("x-kubernetes-map-type", "granular")
            marks = {"x-kubernetes-map-type": schema.map_type} if schema.map_type != shared else {}
            return {**description, "allOf": [reference], **marks} if description else {**reference}
        described = description | _scalar(schema)
        if schema.items is not None:
            described["items"] = self._field_schema(schema.items)
        if schema.values is not None:
            described["additionalProperties"] = self._field_schema(schema.values)
        return described | _merging(schema)


def component_name(kind: Kind) -> str:
    """`io.k8s.api.core.v1.Pod` for built-in kinds; custom ones begin with the reversed group."""
    if kind.openapi is None:
        return schema_of(kind).component
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _scalar(schema: Schema) -> dict[str, Any]:
    if schema.format == "quantity":
        return {"oneOf": [{"type": "string"}, {"type": "number"}]}
    if schema.format == "int-or-string":
        return {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    if schema.type == "any":
        return {}
    described: dict[str, Any] = {"type": schema.type}
    if schema.format:
        described["format"] = "date-time" if schema.format == "micro-time" else schema.format
    if schema.enum:
        described["enum"] = sorted(schema.enum)
    if schema.default is not None:
        described["default"] = schema.default
    return described


def _merging(schema: Schema) -> dict[str, Any]:
    marks: dict[str, Any] = {}
    if schema.type == "array":
        marks["x-kubernetes-list-type"] = schema.list_type
        if schema.list_keys:
            marks["x-kubernetes-list-map-keys"] = list(schema.list_keys)
    if schema.map_type == "atomic" and schema.type == "object":
        marks["x-kubernetes-map-type"] = "atomic"
    if schema.patch_strategy:
        marks["x-kubernetes-patch-strategy"] = ",".join(sorted(schema.patch_strategy))
    if schema.patch_key:
        marks["x-kubernetes-patch-merge-key"] = schema.patch_key
    return marks


def as_v2(part: Any) -> Any:
    """The same schemas in Swagger 2.0, which has neither allOf around references nor oneOf."""
    if isinstance(part, list):
        return [as_v2(child) for child in part]
    if not isinstance(part, dict):
        return part
    if len(part.get("allOf") or ()) == 1 and "$ref" in part["allOf"][0]:
        part = {**{name: child for name, child in part.items() if name != "allOf"}, **part["allOf"][0]}
    if "oneOf" in part and "properties" not in part:
        part = {**{name: child for name, child in part.items() if name not in ("oneOf", "anyOf")}, "type": "string"}
    converted: dict[str, Any] = {}
    for name, child in part.items():
        if name == "properties":  # its keys are fields of an object, whatever they are called
            converted[name] = {field: as_v2(schema) for field, schema in child.items()}
        elif name == "$ref":
            converted[name] = child.replace(_PREFIX, "#/definitions/")
        elif name != "nullable":
            converted[name] = as_v2(child)
    return converted
