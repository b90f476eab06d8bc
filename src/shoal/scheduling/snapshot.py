"""The cluster as the scheduler sees it: nodes with their room, pods with their needs. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.kube.conditions import is_true
from shoal.kube.objects import Key, Obj, key_of, labels_of, name_of, uid_of
from shoal.scheduling.requests import amounts, requests_of

FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    allocatable: Mapping[str, int]  # thousandths
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    unschedulable: bool = False
    ready: bool = True


@dataclass(frozen=True, slots=True)
class Pod:
    key: Key
    uid: str
    requests: Mapping[str, int]  # thousandths
    priority: int = 0
    created: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[Mapping[str, Any], ...] | None = None  # required node affinity: any of these
    tolerations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    nodes: tuple[Node, ...]
    placed: tuple[tuple[str, Mapping[str, int]], ...]  # node name, what a pod there holds
    waiting: tuple[Pod, ...]


def node_from(obj: Obj) -> Node:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return Node(
        name=name_of(obj),
        allocatable=amounts(status.get("allocatable") or status.get("capacity")),
        labels=labels_of(obj),
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        ready=is_true(obj, "Ready"),
    )


def pod_from(obj: Obj) -> Pod:
    spec = obj.get("spec") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return Pod(
        key=key_of(obj),
        uid=uid_of(obj),
        requests=requests_of(obj),
        priority=spec.get("priority") or 0,
        created=obj["metadata"].get("creationTimestamp") or "",
        node_selector=spec.get("nodeSelector") or {},
        node_terms=tuple(required.get("nodeSelectorTerms") or ()) if required else None,
        tolerations=tuple(spec.get("tolerations") or ()),
    )
