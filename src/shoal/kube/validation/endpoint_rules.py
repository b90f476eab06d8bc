"""Endpoints and EndpointSlices: addresses others can reach, and their ports.

A real API server refuses loopback addresses here. On a machine where pods live at 127.x.y.z they are the
addresses, so the caller may allow them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import ENDPOINT_SLICE, ENDPOINTS
from shoal.kube.objects import Obj
from shoal.kube.validation import metadata_rules
from shoal.kube.validation.errors import IMMUTABLE, duplicate, entries, invalid, required, too_many
from shoal.kube.validation.value_rules import (
    PROTOCOLS,
    address,
    choice,
    endpoint_address,
    labels,
    named,
    number_between,
    parsed_address,
)

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_HINTS = 1000, 100, 20000, 8


def endpoints_on_create(obj: Obj, *, allow_loopback: bool) -> Iterator[Cause]:
    yield from metadata_rules.on_create(ENDPOINTS, obj)
    yield from _subsets(entries(obj.get("subsets")), allow_loopback)


def endpoints_on_update(new: Obj, old: Obj, *, allow_loopback: bool) -> Iterator[Cause]:
    yield from metadata_rules.on_update(ENDPOINTS, new, old)
    if new.get("subsets") != old.get("subsets"):
        yield from _subsets(entries(new.get("subsets")), allow_loopback)


def _subsets(subsets: list[Obj], allow_loopback: bool) -> Iterator[Cause]:
    for i, subset in enumerate(subsets):
        here, ports = f"subsets[{i}]", entries(subset.get("ports"))
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(here, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for j, entry in enumerate(entries(subset.get(field))):
                path, ip = f"{here}.{field}[{j}]", entry.get("ip") or ""
                yield from address(ip, f"{path}.ip")
                if entry.get("hostname"):
                    yield from named(names.dns_label, entry["hostname"], f"{path}.hostname")
                if entry.get("nodeName") is not None:
                    yield from named(names.dns_subdomain, entry["nodeName"], f"{path}.nodeName")
                yield from endpoint_address(ip, f"{path}.ip", allow_loopback=allow_loopback)
        for j, port in enumerate(ports):
            path = f"{here}.ports[{j}]"
            if port.get("name"):
                yield from named(names.dns_label, port["name"], f"{path}.name")
            elif len(ports) > 1:
                yield required(f"{path}.name")
            yield from number_between(port.get("port") or 0, 1, 65535, f"{path}.port")
            yield from choice(port.get("protocol"), PROTOCOLS, f"{path}.protocol")
            if port.get("appProtocol") is not None:
                yield from named(names.qualified_name, port["appProtocol"], f"{path}.appProtocol")


def slice_on_create(obj: Obj, *, allow_loopback: bool) -> Iterator[Cause]:
    yield from metadata_rules.on_create(ENDPOINT_SLICE, obj)
    yield from choice(obj.get("addressType"), _ADDRESS_TYPES, "addressType")
    yield from _slice_ports(entries(obj.get("ports")))
    yield from _endpoints(obj, allow_loopback)


def slice_on_update(new: Obj, old: Obj, *, allow_loopback: bool) -> Iterator[Cause]:
    yield from metadata_rules.on_update(ENDPOINT_SLICE, new, old)
    yield from choice(new.get("addressType"), _ADDRESS_TYPES, "addressType")
    yield from _slice_ports(entries(new.get("ports")))
    if new.get("endpoints") != old.get("endpoints"):
        yield from _endpoints(new, allow_loopback)
    if new.get("addressType") != old.get("addressType"):
        yield invalid("addressType", new.get("addressType") or "", IMMUTABLE)


def _slice_ports(ports: list[Obj]) -> Iterator[Cause]:
    if len(ports) > _MOST_PORTS:
        yield too_many("ports", len(ports), _MOST_PORTS)
        return
    seen: set[str] = set()
    for i, port in enumerate(ports):
        name = port.get("name") or ""
        if name:
            yield from named(names.dns_label, name, f"ports[{i}].name")
        if name in seen:
            yield duplicate(f"ports[{i}].name", name)
        seen.add(name)
        yield from choice(port.get("protocol"), PROTOCOLS, f"ports[{i}].protocol")
        if port.get("appProtocol") is not None:
            yield from named(names.qualified_name, port["appProtocol"], f"ports[{i}].appProtocol")


def _endpoints(obj: Obj, allow_loopback: bool) -> Iterator[Cause]:
    found, family = entries(obj.get("endpoints")), obj.get("addressType") or ""
    if len(found) > _MOST_ENDPOINTS:
        yield too_many("endpoints", len(found), _MOST_ENDPOINTS)
        return
    for i, endpoint in enumerate(found):
        here, addresses = f"endpoints[{i}]", endpoint.get("addresses") or []
        if not addresses:
            yield required(f"{here}.addresses", "must contain at least 1 address")
        elif len(addresses) > _MOST_ADDRESSES:
            yield too_many(f"{here}.addresses", len(addresses), _MOST_ADDRESSES)
        for j, value in enumerate(addresses):
            yield from _slice_address(value or "", family, f"{here}.addresses", j, allow_loopback)
        yield from _endpoint(endpoint, here)


def _endpoint(endpoint: Obj, path: str) -> Iterator[Cause]:
    if endpoint.get("nodeName") is not None:
        yield from named(names.dns_subdomain, endpoint["nodeName"], f"{path}.nodeName")
    yield from labels(endpoint.get("deprecatedTopology"), f"{path}.deprecatedTopology")
    if endpoint.get("hostname") is not None:
        yield from named(names.dns_label, endpoint["hostname"], f"{path}.hostname")
    hints = endpoint.get("hints") or {}
    for field, rule in (("forZones", names.label_value), ("forNodes", names.dns_subdomain)):
        targets = entries(hints.get(field))
        if len(targets) > _MOST_HINTS:
            yield too_many(f"{path}.hints.{field}", len(targets), _MOST_HINTS)
            return
        seen: set[str] = set()
        for i, target in enumerate(targets):
            name = target.get("name") or ""
            if name in seen:
                yield duplicate(f"{path}.hints.{field}[{i}].name", name)
            seen.add(name)
            yield from named(rule, name, f"{path}.hints.{field}[{i}].name")


def _slice_address(value: str, family: str, path: str, index: int, allow_loopback: bool) -> Iterable[Cause]:
    here = f"{path}[{index}]"
    if family == "FQDN":
        if not value:
            return (required(here),)
        name = value.removesuffix(".")
        if problems := names.dns_subdomain(name):
            return (invalid(here, name, ",".join(problems)),)
        if "." not in name:
            return (invalid(here, name, "should be a domain with at least two segments separated by dots"),)
        return ()
    if family not in ("IPv4", "IPv6"):
        return ()
    causes = list(address(value, here))
    found = parsed_address(value)
    if causes or found is None:
        return causes
    if found.version != int(family[-1]):
        causes.append(invalid(path, value, f"must be an {family} address"))
    elif family == "IPv6" and str(found) != value:
        return [invalid(here, value, f'must be in canonical form ("{found}")')]
    return [*causes, *endpoint_address(value, here, allow_loopback=allow_loopback)]
