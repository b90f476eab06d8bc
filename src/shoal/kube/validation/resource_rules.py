"""Amounts a container or a node declares: known names, no negative amounts, requests within limits.

Extended resources (`nvidia.com/gpu`) and huge pages cannot be overcommitted, so request and limit
are equal; extended ones come in whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity
from shoal.kube.validation.errors import (
    NEGATIVE,
    duplicate,
    entries,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from shoal.kube.validation.value_rules import named

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset({
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
})  # fmt: skip
_STANDARD = _CONTAINER | _COUNTED | {
    "storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage", "limits.cpu",
    "limits.memory", "limits.ephemeral-storage",
}  # fmt: skip
_HUGE = "hugepages-"
_CACHE_SIZE = 128


def requirements(resources: Obj, path: str, claims: frozenset[str] = frozenset()) -> Iterator[Cause]:
    """`resources` of a container; `claims` are the names under the pod's resourceClaims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, value in limits.items():
        if not (len(name) < _CACHE_SIZE and _is_sound(name, str(value))):
            yield from _container_amount(name, value, f"{path}.limits[{name}]")
    for name, value in requests.items():
        if not (len(name) < _CACHE_SIZE and _is_sound(name, str(value))):
            yield from _container_amount(name, value, f"{path}.requests[{name}]")
        if value != limits.get(name):
            yield from _within_limit(name, value, limits, path)
    if resources.get("claims"):
        yield from _claims(entries(resources["claims"]), claims, f"{path}.claims")
    requested = limits.keys() | requests.keys()
    if any(name.startswith(_HUGE) for name in requested) and not requested & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")


def pod_requirements(spec: Obj) -> Iterator[Cause]:
    """`spec.resources`: the pod as a whole. No container may request more than all of them together."""
    resources, path = spec["resources"], "spec.resources"
    if resources.get("claims"):
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            here = f"{path}.{field}[{name}]"
            if name not in ("cpu", "memory") and not name.startswith(_HUGE):
                yield not_supported(here, name, ("cpu", _HUGE, "memory"))
            yield from amount(name, value, here)
            if field == "requests":
                yield from _within_limit(name, value, limits, path)
    for i, container in enumerate(entries(spec.get("containers"))):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and Quantity.parse(value) > Quantity.parse(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid(f"{path}.containers[{i}][{name}].limits", str(value), detail)


def amounts(found: Mapping[str, Any] | None, path: str) -> Iterator[Cause]:
    """A plain list of amounts, such as a node's capacity."""
    for name, value in (found or {}).items():
        yield from amount(name, value, f"{path}.{name}")


def amount(name: str, value: Any, path: str) -> Iterator[Cause]:
    quantity = Quantity.parse(value)
    if quantity.nanos < 0:
        yield invalid(path, str(quantity), NEGATIVE)
    if quantity.milli() % 1000 and (name in _COUNTED or _is_extended(name)):
        yield invalid(path, str(quantity), "must be an integer")


@lru_cache(maxsize=4096)
def _is_sound(name: str, value: str) -> bool:
    """Whether this amount is valid by itself; pods of a job repeat theirs."""
    return not any(_container_amount(name, value, ""))


def _container_amount(name: str, value: Any, path: str) -> Iterator[Cause]:
    for problem in _container_name(name):
        yield invalid(path, name, problem)
    yield from amount(name, value, path)
    if name.startswith(_HUGE) and not _is_multiple(name, value):
        text = str(Quantity.parse(value))
        yield invalid(path, text, f"{text} is not positive integer multiple of {name}")


def _container_name(name: str) -> tuple[str, ...]:
    problems = names.qualified_name(name)
    if not problems and "/" not in name and name not in _STANDARD and not name.startswith((_HUGE, f"requests.{_HUGE}")):
        problems = ["must be a standard resource type or fully qualified"]
    if "/" not in name:
        if name not in _CONTAINER and not name.startswith(_HUGE):
            problems = [*problems, "must be a standard resource for containers"]
    elif not _is_native(name) and not _is_extended(name):
        problems = [*problems, "doesn't follow extended resource name standard"]
    return tuple(problems)


def _within_limit(name: str, value: Any, limits: Mapping[str, Any], path: str) -> Iterator[Cause]:
    shared = _is_native(name) and not name.startswith(_HUGE)
    if name not in limits:
        if not shared:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    request, limit = Quantity.parse(value), Quantity.parse(limits[name])
    if request != limit and not shared:
        yield invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")
    elif request > limit:
        yield invalid(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")


def _claims(claims: list[Obj], known: frozenset[str], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            yield required(f"{path}[{i}]")
            continue
        if request:
            yield from named(names.dns_label, request, f"{path}[{i}].request")
        key = f"{name}/{request}" if request else name
        overlaps = name in seen or key in seen or (not request and any(k.startswith(f"{name}/") for k in seen))
        if overlaps:
            yield duplicate(f"{path}[{i}]", name if name in seen or not request else key)
        seen.add(key)
        if name not in known:
            listed = ": " + ", ".join(sorted(known)) if known else " which is empty"
            yield not_found(f"{path}[{i}]", name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    if _is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name(f"requests.{name}")


def _is_multiple(name: str, value: Any) -> bool:
    try:
        size = Quantity.parse(name.removeprefix(_HUGE)).value()
    except ValueError:
        return True  # a page size that cannot be parsed is not compared, as in Kubernetes
    return size > 0 and Quantity.parse(value).value() % size == 0
