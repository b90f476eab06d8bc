"""Migration from `kubectl apply` to `kubectl apply --server-side` without conflicts with oneself.

Client-side apply leaves its last configuration in an annotation. Fields of that configuration whose live value is
unchanged were kubectl's own: kubectl may take them over without force. From then on the annotation follows what kubectl
applies, so that one can go back.
"""

from __future__ import annotations

import json

from shoal.kube.apply.field_diff import applied_fields, diff
from shoal.kube.apply.fieldsets import FieldSet, difference
from shoal.kube.apply.typed_schema import SchemaNode
from shoal.kube.objects import Obj, annotations_of
from shoal.kube.patching.json_values import clone

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_BYTES = 256 * 1024  # of all annotations together


def fields_of_last_applied(node_schema: SchemaNode, live: Obj) -> FieldSet:
    """The fields client-side apply set and that are unchanged since; none where it was not used."""
    try:
        last = json.loads(annotations_of(live).get(ANNOTATION) or "null")
    except ValueError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return {}
    problems: list[str] = []
    fields = applied_fields(node_schema, last, problems)
    if problems:
        return {}
    changed, removed = diff(node_schema, last, live)
    return difference(difference(fields, changed), removed)


def refresh(result: Obj, config: Obj, manager: str) -> None:
    """Update the annotation, where there is one, to the configuration kubectl has just applied. In place."""
    if manager != KUBECTL or not annotations_of(result).get(ANNOTATION):
        return
    annotation = clone(config)
    annotations = (annotation.get("metadata") or {}).get("annotations") or {}
    annotations.pop(ANNOTATION, None)
    text = json.dumps(annotation, separators=(",", ":"), ensure_ascii=False) + "\n"
    other_managers = sum(
        len(name.encode()) + len(value.encode())
        for name, value in annotations_of(result).items()
        if name != ANNOTATION and isinstance(value, str)
    )
    if other_managers + len(ANNOTATION) + len(text.encode()) > _MOST_BYTES:
        del result["metadata"]["annotations"][ANNOTATION]
    else:
        result["metadata"]["annotations"][ANNOTATION] = text
