"""Services: each gets a virtual address from the cluster's range, unless it requests none."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from shoal.cluster.strategies.strategy import Strategy
from shoal.kube import kinds
from shoal.kube.errors import ApiError, Cause, invalid
from shoal.kube.objects import Obj, name_of
from shoal.kube.validation import validate_addresses

if TYPE_CHECKING:
    from shoal.cluster.registry import Core

HEADLESS = "None"


def prepare_for_create(core: Core, service: Obj) -> None:
    del core
    service["status"] = {"loadBalancer": {}}


def admit(core: Core, service: Obj, old: Obj | None) -> None:
    """Address the service. A PUT that leaves the address out keeps it."""
    spec = service["spec"]
    before = (old or {}).get("spec") or {}
    if spec.get("type") == "ExternalName":
        if before.get("type", "ExternalName") != "ExternalName" and _address(spec) == _address(before):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        return
    if not _address(spec) and before.get("clusterIP"):
        spec["clusterIP"], spec["clusterIPs"] = before["clusterIP"], before.get("clusterIPs") or [before["clusterIP"]]
        return
    if old is None and (causes := validate_addresses(service)):
        raise invalid(kinds.SERVICE, name_of(service), causes)
    requested = _address(spec)
    if requested == HEADLESS:
        spec["clusterIPs"] = [HEADLESS]
    elif not requested:
        _set(spec, _free_address(core, service))
    elif requested != before.get("clusterIP"):
        _check_available(core, service, requested)
        _set(spec, requested)
    else:
        spec.setdefault("clusterIPs", [requested])


def _address(spec: Obj) -> str:
    listed = spec.get("clusterIPs") or [""]
    return str(spec.get("clusterIP") or listed[0] or "")


def _set(spec: Obj, address: str) -> None:
    spec["clusterIP"] = address
    spec["clusterIPs"] = [address]


def _check_available(core: Core, service: Obj, requested: str) -> None:
    network = core.settings.service_network
    try:
        inside = ip_address(requested) in network
    except ValueError:
        return  # validation reports what is wrong with it
    if not inside:
        why = f"the provided IP ({requested}) is not in the valid range. The range of valid IPs is {network}"
    elif requested in core.service_addresses:
        why = "provided IP is already allocated"
    else:
        return
    raise _invalid(
        service, f'Invalid value: ["{requested}"]: failed to allocate IP {requested}: {why}', "FieldValueInvalid"
    )


def _free_address(core: Core, service: Obj) -> str:
    network = core.settings.service_network
    taken = core.service_addresses
    # All but the network's own address, the first (by habit the API's) and the broadcast address.
    first, count = 2, max(network.num_addresses - 3, 1)
    # A random start: an address that was just released is rarely given to another service at once.
    start = core.rng.randrange(count)
    for step in range(count):
        candidate = str(network[first + (start + step) % count])
        if candidate not in taken:
            return candidate
    raise _invalid(service, f"failed to allocate a serviceIP: range is full ({network})", "InternalError")


def _invalid(service: Obj, message: str, reason: str) -> ApiError:
    return invalid(kinds.SERVICE, name_of(service), [Cause(reason, message, "spec.clusterIPs")])


STRATEGY = Strategy(create_on_update=True, admit=admit, prepare_for_create=prepare_for_create)
