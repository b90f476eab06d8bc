"""Pod templates as users wrote them: the names of fields in any case.

The first controllers of this API read field names without regard to case, and manifests rely on it
(`ActiveDeadlineSeconds: 60`). Names are normalised to those of the Kubernetes API; keys of maps (labels, limits,
selectors) are data and unchanged. Unknown fields are unchanged.

The CRD contains a template's outline only, under its proper names: enough to reject at once the most frequent mistakes,
such as a number for a label or a variable. Code that reads the whole template finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from shoal.kube.objects import Obj
from shoal.kube.schema import Schema
from shoal.kube.schemas import named


def _part(description: str = "", **schema: Any) -> Obj:
    """Schema of a section of a template: null means absent, as everywhere in a pod; unknown fields stay."""
    kept = {"x-kubernetes-preserve-unknown-fields": True} if "properties" in schema else {}
    return {**({"description": description} if description else {}), "nullable": True, **schema, **kept}


def _fields(description: str = "", **below: Obj) -> Obj:
    return _part(description, type="object", properties=below)


def _list(description: str, of: Obj) -> Obj:
    return _part(description, type="array", items=of)


def _texts(description: str) -> Obj:
    return _part(description, type="object", additionalProperties=_part(type="string"))


_TEXT = _part(type="string")
_VARIABLE = _fields(
    name=_part("Name of the variable", type="string"), value=_part("Text; put numbers in quotes", type="string")
)
_CONTAINER = _fields(
    name=_part("Name of the container", type="string"),
    image=_part("What it runs", type="string"),
    command=_list("The program, in place of the image's own", _TEXT),
    args=_list("What the program is given", _TEXT),
    env=_list("Variables; those that identify a task precede them", _VARIABLE),
)
OUTLINE: Obj = {
    "type": "object",
    "properties": {
        "metadata": _fields(
            "Labels and annotations of the pods; their names and namespace are the Framework's business",
            labels=_texts("Labels of the pods"),
            annotations=_texts("Annotations of the pods"),
        ),
        "spec": _fields(
            "A pod's spec, with any field a pod has",
            initContainers=_list("Run one after the other before the containers", _CONTAINER),
            containers=_list("The containers of a task", _CONTAINER),
            volumes=_list("Volumes the containers share", _fields()),
        ),
    },
    "x-kubernetes-preserve-unknown-fields": True,
}


def canonical(template: Obj) -> Obj:
    """Return the template with every field under its proper name; the template itself where nothing changes.

    Where a field is present under both names the proper one wins.
    """
    made: Obj = _canonical(named("PodTemplateSpec"), template)
    return made


def metadata_of(template: Obj) -> Obj:
    """What a template may say about its pods' metadata; all else is the Framework's business or the API server's."""
    written = template.get("metadata") or {}
    return {name: value for name, value in written.items() if name in _METADATA_FIELDS and value}


_METADATA_FIELDS = ("labels", "annotations", "ownerReferences", "finalizers")


def misspelled_fields(template: Obj) -> Iterator[tuple[str, str]]:
    """The paths of fields in another case, each with its proper name."""
    yield from _misspelled(named("PodTemplateSpec"), template, "")


@lru_cache(maxsize=512)
def _proper(schema: Schema) -> dict[str, str]:
    return {name.lower(): name for name in schema.fields}


def _name(schema: Schema, written: str) -> str:
    if not schema.fields or written in schema.fields:
        return written
    return _proper(schema).get(written.lower(), written)


def _canonical(schema: Schema | None, value: Any) -> Any:
    if schema is None:
        return value
    if isinstance(value, list):
        items = schema.items
        changed = [_canonical(items, child) for child in value]
        return changed if any(a is not b for a, b in zip(changed, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    made: Obj = {}
    same = True
    for written, child in value.items():
        name = _name(schema, written)
        below = _canonical(schema.field(name), child)
        same = same and name is written and below is child
        if name == written or name not in value:
            made[name] = below
    return value if same else made


def _misspelled(schema: Schema | None, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if schema is None:
        return
    if isinstance(value, list):
        for index, child in enumerate(value):
            yield from _misspelled(schema.items, child, f"{path}[{index}]")
    elif isinstance(value, dict):
        for written, child in value.items():
            name = _name(schema, written)
            here = f"{path}.{written}" if path else written
            if name != written:
                yield here, name
            yield from _misspelled(schema.field(name), child, here)
