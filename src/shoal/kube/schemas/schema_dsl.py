"""A small notation for declaring the fields of objects, and the builder that reads it.

The declarations are text, so importing them costs nothing; a `Schema` is built when its kind is first requested, and
each named type is built once. A family module holds one text such as

    Container: One process of a pod, started from one image.
      name!        string                                Name, unique within the pod.
      command      []string                              What to run instead of the image's entrypoint.
      env          []EnvVar @map(name) +merge(name)      Environment variables, in order.
      limits       [string]Quantity                      The most of each resource it may use.
      ...ProbeHandler
    Protocol = string of TCP UDP SCTP
    ResourceList = [string]Quantity: An amount for each resource.

A line at the margin starts a type; `(atomic)` behind its name means that server-side apply owns it as a whole. An
indented line is a field, in three columns two or more spaces apart: the name (`!` where it is required), the type with
its marks, the description. `...T` includes the fields of T. The marks are @map(keys), @set, @atomic and @granular for
how server-side apply merges, +merge(key) and +retainKeys for strategic merge patch, and =value for the default that the
schema itself carries. `either(T)` is a T or a list, `either(T|bool)` a T or a boolean. Without a mark, a list is atomic
and a map granular.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shoal.kube.schema import Schema

_SCALARS: dict[str, Schema] = {
    "string": Schema("string", go_type="string"),
    "bool": Schema("boolean", go_type="bool"),
    "int32": Schema("integer", "int32", go_type="int32"),
    "int64": Schema("integer", "int64", go_type="int64"),
    "float64": Schema("number", "double", go_type="float64"),
    "bytes": Schema("string", "byte", go_type="[]uint8"),
    "any": Schema("any", go_type="interface {}"),
}
_HEADER = re.compile(r"([\w-]+)(?: \((atomic)\))?(?: = (\S+(?: of .*?)?))?(?:: (.*))?")
_COLUMNS = re.compile(r"\s{2,}")


class FieldLine(NamedTuple):
    name: str
    is_required: bool
    type: str
    marks: tuple[str, ...]
    description: str
    inside: str = ""  # the type it was taken in from


@dataclass(frozen=True, slots=True)
class Declaration:
    """One type as written; its lines are not parsed before they are needed."""

    name: str
    about: str
    alias: str  # the type this is another name for, with its values
    is_atomic: bool
    lines: list[str]


class Package:
    """Types that share a prefix in OpenAPI component names and a package name in Go."""

    def __init__(self, prefix: str, go: str, *, texts: Iterable[str], uses: Iterable[Package] = ()) -> None:
        self.prefix = prefix
        self.go = go
        self._uses = tuple(uses)
        self._declared = {d.name: d for text in texts for d in _declarations(text)}
        self._built: dict[str, Schema] = dict(_SCALARS)

    def names(self) -> tuple[str, ...]:
        return tuple(self._declared)

    def add(self, name: str, schema: Schema) -> None:
        """Add a type that the notation cannot express."""
        self._built[name] = schema

    def schema(self, name: str) -> Schema:
        """The schema of a type named here or in a package this one uses."""
        for package in (self, *self._uses):
            if name in package._built:
                return package._built[name]
            if name in package._declared:
                return package._build(package._declared[name])
        raise KeyError(f"{self.prefix} declares no type {name}")

    def _build(self, declared: Declaration) -> Schema:
        go_type, component = f"{self.go}.{declared.name}", f"{self.prefix}.{declared.name}"
        if declared.alias:
            base, _, values = declared.alias.partition(" of ")
            schema = replace(self._typed(base), go_type=go_type, enum=tuple(v.strip('"') for v in values.split()))
            if schema.type == "any":
                schema = replace(schema, component=component, about=declared.about)
            self._built[declared.name] = schema
            return schema
        lines = list(self._lines(declared))
        fields: dict[str, Schema] = {}
        # Known before its fields are built: a type may hold itself.
        self._built[declared.name] = schema = Schema(
            "object",
            fields=fields,
            required=tuple(line.name for line in lines if line.is_required),
            map_type="atomic" if declared.is_atomic else "granular",
            go_type=go_type,
            component=component,
            about=declared.about,
        )
        for line in lines:
            field = self._typed(line.type)
            marks: dict[str, Any] = {}
            for mark in line.marks:
                marks |= _apply_mark(mark, field, marks)
            fields[line.name] = replace(field, description=line.description, go_inside=line.inside, **marks)
        return schema

    def _lines(self, declared: Declaration) -> Iterator[FieldLine]:
        for text in declared.lines:
            if text.startswith("..."):
                name, _, known_as = text[3:].partition(" as ")
                for line in self._lines(self._declared[name]):
                    yield line._replace(inside=known_as or name)
            else:
                name, typed, description = _COLUMNS.split(text, maxsplit=2)
                type_name, *marks = typed.split(" ")
                yield FieldLine(name.rstrip("!"), name.endswith("!"), type_name, tuple(marks), description)

    def _typed(self, name: str) -> Schema:
        if name.startswith("[]"):
            item = self._typed(name[2:])
            return Schema("array", items=item, go_type=f"[]{item.go_type}")
        if name.startswith("[string]"):
            value = self._typed(name[8:])
            return Schema("object", values=value, go_type=f"map[string]{value.go_type}")
        if name.startswith("either("):
            other, _, simpler = name[7:-1].partition("|")
            return Schema("any", "object-or-boolean" if simpler else "", values=self._typed(other))
        return self.schema(name)


def _declarations(text: str) -> Iterator[Declaration]:
    current: Declaration | None = None
    for line in text.strip("\n").split("\n"):
        if line.startswith("    ") and current is not None:
            current.lines[-1] += " " + line.strip()
        elif line.startswith(" ") and current is not None:
            current.lines.append(line.strip())
        elif line:
            match = _HEADER.fullmatch(line)
            if match is None:
                raise ValueError(f"not a declaration: {line}")
            name, atomic, alias, about = match.groups()
            current = Declaration(name, about or "", alias or "", atomic is not None, [])
            yield current


def _apply_mark(mark: str, base: Schema, partial_schema: Mapping[str, Any]) -> dict[str, Any]:
    item_text, _, argument = mark.rstrip(")").partition("(")
    if item_text == "@map":
        return {"list_type": "map", "list_keys": tuple(argument.split(","))}
    if item_text == "@set":
        return {"list_type": "set"}
    if item_text in ("@atomic", "@granular"):
        return {"map_type": item_text[1:]}
    if item_text.startswith("+"):
        strategy = partial_schema.get("patch_strategy", frozenset()) | {item_text[1:]}
        return {"patch_strategy": strategy} | ({"patch_key": argument} if argument else {})
    if item_text.startswith("="):
        text = mark[1:]
        return {"default": int(text) if base.type == "integer" else text}
    raise ValueError(f"no such mark: {mark}")
