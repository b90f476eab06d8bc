"""What pods request, computed from their templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity


def requests_of_template(template: Obj) -> dict[str, Quantity]:
    """Of one pod: its containers together or the largest init container, and its overhead. A limit without a request
    is a request."""
    spec = template.get("spec") or {}
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, _requests(container))
    for container in spec.get("initContainers") or ():
        for name, amount in _requests(container).items():
            if name not in total or amount.milli() > total[name].milli():
                total[name] = amount
    _add(total, {name: Quantity.parse(amount) for name, amount in (spec.get("overhead") or {}).items()})
    return total


def sum_of_pods(pods: Iterable[tuple[Obj, int]]) -> dict[str, str]:
    """Of so many pods of each template, the number of pods included."""
    total: dict[str, Quantity] = {}
    for template, count in pods:
        if count:
            amounts = {**requests_of_template(template), "pods": Quantity.of(1)}
            _add(total, {name: amount * count for name, amount in amounts.items()})
    return {name: str(total[name]) for name in sorted(total)}


def _requests(container: Obj) -> dict[str, Quantity]:
    resources = container.get("resources") or {}
    written = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: Quantity.parse(amount) for name, amount in written.items()}


def _add(total: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount
