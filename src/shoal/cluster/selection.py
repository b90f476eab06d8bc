"""Which objects a request selects: namespace, label selector and field selector as one predicate over `Stored`.

The fields each kind can be selected by are those of Kubernetes; they are taken out of the object once, when
it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from shoal.cluster.types import Stored
from shoal.kube import kinds, selectors
from shoal.kube.errors import bad_request
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, at_path

Predicate = Callable[[Stored], bool]

_METADATA = ("metadata.name", "metadata.namespace")
_REGARDING = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

# Selectable fields by resource, beyond name and namespace; a kind not listed here has none.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    kinds.POD.resource: (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    kinds.NODE.resource: ("spec.unschedulable",),
    kinds.NAMESPACE.resource: ("status.phase",),
    kinds.SERVICE.resource: ("spec.clusterIP", "spec.type"),
    kinds.SECRET.resource: ("type",),
    kinds.REPLICA_SET.resource: ("status.replicas",),
    kinds.JOB.resource: ("status.succeeded",),
    kinds.EVENT.resource: (
        *(f"involvedObject.{name}" for name in _REGARDING), "reason", "reportingComponent", "source", "type",
    ),
}  # fmt: skip
_FLAGS = frozenset({"spec.hostNetwork", "spec.unschedulable"})
# Other names that a version of the kind has for the same fields.
_RENAMED: Mapping[str, Mapping[str, str]] = {
    kinds.POD.resource: {"spec.host": "spec.nodeName", "status.podIPs": "status.podIP"},
    kinds.JOB.resource: {"status.successful": "status.succeeded"},
    kinds.EVENT_V1.resource: {
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _REGARDING},
        "reportingController": "reportingComponent", "reason": "reason", "type": "type",
    },
}  # fmt: skip


@lru_cache(maxsize=256)
def _paths(resource: str, custom: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    names = _FIELDS.get(resource, ()) + tuple(path.lstrip(".") for path in custom)
    return tuple((name, tuple(name.split("."))) for name in names)


def fields_of(kind: Kind, key: Key, obj: Obj) -> dict[str, str]:
    """The values field selectors can match; `kind` is the version the object is stored in."""
    found = {"metadata.name": key.name}
    if kind.namespaced:
        found["metadata.namespace"] = key.namespace
    for name, path in _paths(kind.resource, kind.selectable):
        value: Any = obj
        # Exact classes instead of isinstance: this runs for every write, and decoded JSON has no subclasses.
        for step in path:
            value = value.get(step) if value.__class__ is dict else None
        if value.__class__ is str:
            found[name] = value
        elif value is None:
            found[name] = "false" if name in _FLAGS else ""
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    if kind.resource == kinds.EVENT.resource:
        found["source"] = str(at_path(obj, "source", "component") or obj.get("reportingComponent") or "")
    return found


def predicate(kind: Kind, namespace: str | None, labels: str, fields: str) -> Predicate | None:
    """None where everything of the kind is selected. 400 where a selector is malformed or not supported."""
    by_label = selectors.parse_labels(labels) if labels else None
    by_field = _field_selector(kind, fields) if fields else None
    if not by_label and not by_field:
        if namespace is None:
            return None
        return lambda stored: stored.key.namespace == namespace

    def selects(stored: Stored) -> bool:
        return (
            (namespace is None or stored.key.namespace == namespace)
            and (not by_label or by_label.matches(stored.labels))
            and (not by_field or by_field.matches(stored.fields))
        )

    return selects


def _field_selector(kind: Kind, text: str) -> selectors.FieldSelector:
    selector = selectors.parse_fields(text)
    known_fields = {name for name, _ in _paths(kind.resource, kind.selectable)}
    known_fields |= {"metadata.name"} if kind == kinds.NODE else {*_METADATA}
    renamed = _RENAMED.get(kind.resource, {})
    for comparison in selector.comparisons:
        if comparison.field not in known_fields and comparison.field not in renamed:
            if kind.custom or kind.resource in _FIELDS or kind.resource in _RENAMED:
                raise bad_request(f"field label not supported: {comparison.field}")
            raise bad_request(
                f'"{comparison.field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
    return selector.renamed(lambda name: renamed.get(name, name)) if renamed else selector
