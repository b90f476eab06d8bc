"""Builders for tests of the cluster: objects with the ordinary parts filled in, and a machinery that stands still.

Time is a VirtualClock that only tests move; names and uids come from a seeded generator.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.clock import VirtualClock
from shoal.cluster.registry import RegistrySettings
from shoal.cluster.store import HistoryLimits
from shoal.cluster.types import RawEvent, WatchOptions
from shoal.cluster.watch import Watch
from shoal.kube import kinds
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj


def machinery(
    path: Any = MEMORY, *, limits: HistoryLimits | None = None, settings: RegistrySettings | None = None, seed: int = 0
) -> Machinery:
    return Machinery.open(path, clock=VirtualClock(), rng=random.Random(seed), limits=limits, settings=settings)


def key(name: str, namespace: str = "default") -> Key:
    return Key(namespace, name)


def cluster_key(name: str) -> Key:
    return Key("", name)


def obj(name: str, *, labels: dict[str, str] | None = None, **more: Any) -> Obj:
    metadata: Obj = {"name": name}
    if labels:
        metadata["labels"] = labels
    metadata.update(more.pop("metadata", {}))
    return {"metadata": metadata, **more}


def config_map(name: str, data: dict[str, str] | None = None, **more: Any) -> Obj:
    return obj(name, data=data or {"mode": "fast"}, **more)


def pod(name: str, *, node: str = "", grace: int = 30, **more: Any) -> Obj:
    spec: Obj = {"containers": [{"name": "main", "image": "python:3.11"}], "terminationGracePeriodSeconds": grace}
    if node:
        spec["nodeName"] = node
    return obj(name, spec=spec, **more)


def owned_by(owner: Obj, *, block: bool = False, controller: bool = False) -> Obj:
    """Metadata that names `owner`."""
    reference: Obj = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    if block:
        reference["blockOwnerDeletion"] = True
    if controller:
        reference["controller"] = True
    return {"ownerReferences": [reference]}


def definition(
    plural: str = "widgets", kind: str = "Widget", *, versions: tuple[str, ...] = ("v1",), status: bool = True,
    scale: bool = False, spec_schema: Obj | None = None,
) -> Obj:  # fmt: skip
    """A CustomResourceDefinition of group example.com; the last version is the one stored."""
    schema: Obj = {
        "type": "object",
        "properties": {
            "spec": spec_schema
            or {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 0},
                    "replicas": {"type": "integer"},
                    "colour": {"type": "string", "default": "blue"},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    subresources: Obj = {}
    if status:
        subresources["status"] = {}
    if scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[-1],
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": subresources,
                }
                for version in versions
            ],
        },
    }


def define(cluster: Machinery, *versions: str, **more: Any) -> Kind:
    """Apply a definition and give the kind of its first version."""
    cluster.create(kinds.CUSTOM_RESOURCE_DEFINITION, "", definition(versions=versions or ("v1",), **more))
    kind = cluster.find("example.com", (versions or ("v1",))[0], more.get("plural", "widgets"))
    assert kind is not None
    return kind


def refusal(call: Any, *args: Any, **kwargs: Any) -> tuple[int, str, str]:
    """Code, reason and message of the refusal the call must meet."""
    with pytest.raises(ApiError) as caught:
        call(*args, **kwargs)
    return caught.value.code, caught.value.reason, caught.value.message


def names(page: Any) -> list[str]:
    return [stored.key.name for stored in page.items]


def told(events: list[RawEvent]) -> list[tuple[str, str, str]]:
    """Events as (type, name, version); a bookmark has no name."""
    found = []
    for event in events:
        metadata = event.object()["metadata"]
        found.append((event.type.value, metadata.get("name", ""), metadata["resourceVersion"]))
    return found


async def so_far(watch: Watch) -> list[RawEvent]:
    """Everything the watch has to tell now, then close it."""
    watch._on_timeout()
    return [event async for batch in watch for event in batch]


async def seen(cluster: Machinery, kind: Kind, namespace: str | None = None, **options: Any) -> list[Any]:
    return told(await so_far(cluster.watch(kind, namespace, WatchOptions(**options))))
