"""What objects of each kind look like: `schema_of(kind)`.

The built-in kinds are declared here, a module per family, in the notation of `shoal.kube.schemas.schema_dsl`. They are
complete: a field no program of ours acts on is declared all the same, so that no manifest is reported as wrong for it.
Nothing is built before it is requested. The schema of a custom resource is read from its definition.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from shoal.kube.kinds import Kind
from shoal.kube.schema import Schema
from shoal.kube.schemas.schema_dsl import Package

# group -> prefix of component names, the texts that declare it (module.NAME), the groups whose types it uses.
_GROUPS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "meta": ("io.k8s.apimachinery.pkg.apis.meta.v1", ("meta_types.TEXT",), ()),
    "": (
        "io.k8s.api.core.v1",
        ("pod_types.TEXT", "container_types.TEXT", "volume_types.TEXT", "service_types.TEXT", "node_types.TEXT",
         "config_types.TEXT", "storage_types.TEXT", "event_types.TEXT", "virtual_kinds.TEXT", "policy_types.TEXT"),
        ("meta",),
    ),
    "discovery.k8s.io": ("io.k8s.api.discovery.v1", ("service_types.DISCOVERY",), ("", "meta")),
    "events.k8s.io": ("io.k8s.api.events.v1", ("event_types.EVENTS_GROUP",), ("", "meta")),
    "scheduling.k8s.io": ("io.k8s.api.scheduling.v1", ("scheduling_types.TEXT",), ("", "meta")),
    "coordination.k8s.io": ("io.k8s.api.coordination.v1", ("coordination_types.TEXT",), ("meta",)),
    "apiextensions.k8s.io": (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1", ("extension_types.TEXT",), ("meta",)
    ),
    "apps": ("io.k8s.api.apps.v1", ("workload_types.APPS",), ("", "meta")),
    "batch": ("io.k8s.api.batch.v1", ("workload_types.BATCH",), ("", "meta")),
    "extensions": ("io.k8s.api.extensions.v1beta1", ("workload_types.EXTENSIONS",), ("", "meta")),
    "autoscaling": ("io.k8s.api.autoscaling.v1", ("virtual_kinds.AUTOSCALING",), ("meta",)),
    "policy": ("io.k8s.api.policy.v1", ("virtual_kinds.POLICY", "policy_types.POLICY"), ("meta",)),
    "storage.k8s.io": ("io.k8s.api.storage.v1", ("policy_types.STORAGE",), ("", "meta")),
    "authentication.k8s.io": ("io.k8s.api.authentication.v1", ("virtual_kinds.AUTHENTICATION",), ("meta",)),
    "authorization.k8s.io": ("io.k8s.api.authorization.v1", ("virtual_kinds.AUTHORIZATION",), ("meta",)),
}  # fmt: skip

_custom: dict[Kind, tuple[dict[str, Any], Schema]] = {}


def schema_of(kind: Kind) -> Schema:
    """What objects of `kind` look like. The same object each time, until a definition brings another schema."""
    if kind.openapi is None:
        return named(kind.kind, kind.group)
    known = _custom.get(kind)
    if known is None or known[0] is not kind.openapi:
        from shoal.kube.structural_schema import schema_from

        known = _custom[kind] = (kind.openapi, schema_from(kind.openapi))
    return known[1]


def named(name: str, group: str = "") -> Schema:
    """A declared type: `named("PodTemplateSpec")`, `named("Scale", "autoscaling")`, `named("Status", "meta")`."""
    return package(group).schema(name)


@cache
def package(group: str) -> Package:
    """All types of one group; `meta` has those every group shares."""
    prefix, texts, uses = _GROUPS[group]
    modules = [(import_module(f"{__name__}.{text.split('.')[0]}"), text.split(".")[1]) for text in texts]
    version = prefix.rpartition(".")[2]
    made = Package(prefix, version, texts=[getattr(m, name) for m, name in modules], uses=[package(g) for g in uses])
    for module, _ in modules:
        for name, schema in getattr(module, "SPECIAL", {}).items():
            made.add(name, schema)
    return made


def groups() -> tuple[str, ...]:
    return tuple(_GROUPS)
