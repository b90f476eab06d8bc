"""What a pod requests, as whole numbers: every resource in thousandths of its unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity

Amounts = dict[str, int]


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    """`{"cpu": "500m", "memory": "1Gi"}` in thousandths."""
    return {name: Quantity.parse(str(value)).milli() for name, value in (quantities or {}).items()}


def requests_of(pod: Obj) -> Amounts:
    """The pod's effective request, and one of `pods`. What a container does not request it is given by its limits."""
    total = _effective(
        pod, lambda resources: {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}
    )
    total["pods"] = 1000
    return total


def limits_of(pod: Obj) -> Amounts:
    return _effective(pod, lambda resources: amounts(resources.get("limits")))


def _effective(pod: Obj, resources_of: Any) -> Amounts:
    """Its containers together, or an init container that needs more, plus overhead.

    An init container that restarts always (a sidecar) runs on beside everything that starts after it.
    """
    spec = pod.get("spec") or {}
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        effective = resources_of(container.get("resources") or {})
        if container.get("restartPolicy") == "Always":
            # A sidecar keeps running, so it counts for every later init container and for the containers.
            sidecars = add(sidecars, effective)
            starting = _maximum(starting, sidecars)
        else:
            starting = _maximum(starting, add(sidecars, effective))
    containers = (resources_of(container.get("resources") or {}) for container in spec.get("containers") or ())
    running = add(sidecars, *containers)
    return add(_maximum(running, starting), amounts(spec.get("overhead")))


def add(*parts: Mapping[str, int]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _maximum(a: Mapping[str, int], b: Mapping[str, int]) -> Amounts:
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in {**a, **b}}
