"""ResourceQuotas: what pods take of them, by the names that quotas use, and which pods a quota is for.

`quota_usage` counts afresh; a `QuotaTally` gives the same while pods come and go one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.kube.objects import Key, Obj, at_path
from shoal.kube.pod_resources import Amounts, add, amounts, limits_of, requests_of
from shoal.kube.quantity import Family, Quantity

TERMINAL_PHASES = ("Succeeded", "Failed")
UNPREFIXED = ("cpu", "memory", "ephemeral-storage")  # requests that a quota may name without `requests.`
REQUIRED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def usage_of(pod: Obj) -> Amounts:
    """In thousandths; a terminated pod uses nothing."""
    if at_path(pod, "status", "phase") in TERMINAL_PHASES:
        return {}
    requests = requests_of(pod)
    # A quota may limit the same resource under several names.
    found: Amounts = {"pods": requests.pop("pods"), "count/pods": 1000}
    for name, amount in requests.items():
        found[f"requests.{name}"] = amount
        if name in UNPREFIXED or name.startswith("hugepages-"):
            found[name] = amount
    found |= {f"limits.{name}": amount for name, amount in limits_of(pod).items()}
    return found


def applies_to(quota: Obj, pod: Obj) -> bool:
    spec = quota.get("spec") or {}
    wanted = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    wanted += at_path(spec, "scopeSelector", "matchExpressions", default=[])
    return all(_is_in(requirement, pod) for requirement in wanted)


def _is_in(requirement: Mapping[str, object], pod: Obj) -> bool:
    spec = pod.get("spec") or {}
    match requirement.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            name, values = spec.get("priorityClassName") or "", requirement.get("values")
            is_listed = isinstance(values, list) and name in values
            match requirement.get("operator"):
                case "In":
                    return is_listed
                case "NotIn":
                    return not is_listed  # as with labels: a pod without a class is in none of these
                case "Exists":
                    return bool(name)
            return not name
    return False  # an unknown scope matches no pod


def _is_best_effort(spec: Obj) -> bool:
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    requests = add(*(amounts(part) for each in containers for part in (each.get("resources") or {}).values()))
    return not any(requests.get(name) for name in ("cpu", "memory"))


def quota_usage(quota: Obj, pods: Iterable[Obj]) -> Amounts:
    """By all pods that the quota is for."""
    return add(*(usage_of(pod) for pod in pods if applies_to(quota, pod)))


class QuotaTally:
    """The usage of one quota, and each pod's share of it."""

    def __init__(self, quota: Obj) -> None:
        self.quota = quota
        self.used: Amounts = {}
        self._shares: dict[Key, Amounts] = {}

    def put(self, key: Key, pod: Obj | None) -> None:
        """The pod of that name as it is now; None where it is gone."""
        for name, amount in self._shares.pop(key, {}).items():
            self.used[name] -= amount
        share = usage_of(pod) if pod is not None and applies_to(self.quota, pod) else {}
        if share:
            self._shares[key] = share
        for name, amount in share.items():
            self.used[name] = self.used.get(name, 0) + amount


def missing_resources(quota: Obj, pod: Obj) -> list[str]:
    """Resources that the quota limits and containers do not specify: `cpu for: main`."""
    hard, spec = at_path(quota, "spec", "hard", default={}), pod.get("spec") or {}
    found = []
    for name in sorted(set(REQUIRED) & hard.keys()):
        part, _, resource = name.rpartition(".")
        names = []
        for container in spec.get("containers") or ():
            resources = container.get("resources") or {}
            # A container that sets only a limit requests as much.
            accepted = ("limits",) if part == "limits" else ("limits", "requests")
            if not any(resource in (resources.get(field) or {}) for field in accepted):
                names.append(container["name"])
        if names:
            found.append(f"{name} for: {','.join(names)}")
    return found


def format_amount(name: str, milli: int) -> str:
    """An amount as a server writes it."""
    is_size = name.rpartition(".")[2] in ("memory", "ephemeral-storage") or "hugepages-" in name
    return str(Quantity.of_milli(milli, Family.BINARY if is_size else Family.DECIMAL))
