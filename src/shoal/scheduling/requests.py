"""What a pod asks for, as whole numbers: every resource in thousandths of its unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity

Amounts = dict[str, int]


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    """`{"cpu": "500m", "memory": "1Gi"}` in thousandths."""
    return {name: Quantity.parse(str(value)).milli() for name, value in (quantities or {}).items()}


def requests_of(pod: Obj) -> Amounts:
    """The pod's effective request: its containers together, or an init container that needs more, plus overhead.

    An init container that restarts always (a sidecar) runs on beside everything that starts after it.
    """
    spec = pod.get("spec") or {}
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _container(container)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, asked)
            starting = _most(starting, sidecars)
        else:
            starting = _most(starting, add(sidecars, asked))
    running = add(sidecars, *(_container(c) for c in spec.get("containers") or ()))
    total = add(_most(running, starting), amounts(spec.get("overhead")))
    total["pods"] = 1000
    return total


def _container(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def add(*parts: Mapping[str, int]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _most(a: Mapping[str, int], b: Mapping[str, int]) -> Amounts:
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in _names((a, b))}


def _names(parts: Iterable[Mapping[str, int]]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part))


BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


@lru_cache(maxsize=4096)
def shown(name: str, milli: int) -> str:
    """An amount as a person writes it: `500m`, `4`, `1.5Gi`."""
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        size = milli / 1000
        for suffix, factor in BINARY:
            if abs(size) >= factor:
                return f"{round(size / factor, 1):g}{suffix}"
        return f"{size:g}"
    return f"{milli // 1000}" if milli % 1000 == 0 else f"{milli}m"
