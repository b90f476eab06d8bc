"""Services: ports, addresses and families, and the few things that stay as they were."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import SERVICE
from shoal.kube.objects import Obj
from shoal.kube.validation import metadata_rules
from shoal.kube.validation.errors import duplicate, entries, forbidden, invalid, not_supported, required
from shoal.kube.validation.value_rules import (
    PROTOCOLS,
    address,
    choice,
    endpoint_address,
    labels,
    named,
    network,
    number_between,
    optional_choice,
    parsed_address,
    port,
    required_name,
)

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY = 86400
_BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"


def on_create(service: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(SERVICE, service)
    yield from _rules(service.get("spec") or {}, [])


def on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(SERVICE, new, old)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    known = before.get("clusterIPs") or []
    # A Service that becomes or stops being an ExternalName gives up or requests addresses.
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        if causes := list(_addresses(spec, known)):
            yield from causes  # invalid addresses are not compared with the old ones
            return
        yield from _kept_addresses(spec, before)
        yield from _kept_families(spec, before)
    is_load_balancer = spec.get("type") == before.get("type") == "LoadBalancer"
    if is_load_balancer and spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
        yield invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set")
    yield from _rules(spec, known)


def on_status(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(SERVICE, new, old)


def addresses(spec: Obj, known: list[str]) -> Iterator[Cause]:
    """The errors in the requested addresses; `known` are those the Service has already.

    A server checks them before it allocates an address, and reports nothing else where they are invalid.
    """
    if spec.get("type") != "ExternalName":
        yield from _addresses(spec, known)


def is_headless(spec: Obj) -> bool:
    return bool(spec.get("clusterIPs") == ["None"])


def _rules(spec: Obj, known: list[str]) -> Iterator[Cause]:
    ports = entries(spec.get("ports"))
    kind = spec.get("type")
    if not ports and not is_headless(spec) and kind != "ExternalName":
        yield required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                yield forbidden(f"spec.{field}", "may not be set for ExternalName services")
        alias = (spec.get("externalName") or "").removesuffix(".")
        yield from required_name(names.dns_subdomain, alias, "spec.externalName")
    seen: set[str] = set()
    for i, entry in enumerate(ports):
        here, name = f"spec.ports[{i}]", entry.get("name")
        if name:
            yield from named(names.dns_label, name, f"{here}.name")
            if name in seen:
                yield duplicate(f"{here}.name", name)
            seen.add(name)
        elif len(ports) > 1:
            yield required(f"{here}.name")
        yield from number_between(entry.get("port") or 0, 1, 65535, f"{here}.port")
        yield from choice(entry.get("protocol"), PROTOCOLS, f"{here}.protocol")
        yield from port(entry.get("targetPort"), f"{here}.targetPort")
        if entry.get("appProtocol") is not None:
            yield from named(names.qualified_name, entry["appProtocol"], f"{here}.appProtocol")
    yield from labels(spec.get("selector"), "spec.selector")
    yield from _affinity(spec)
    if kind != "ExternalName":
        yield from _addresses(spec, known)
    for i, ip in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{i}]"
        yield from list(address(ip or "", path)) or endpoint_address(ip or "", path)
    yield from choice(kind, _TYPES, "spec.type")
    yield from _port_clashes(ports, kind)
    yield from _load_balancer(spec)
    yield from _traffic(spec)


def _affinity(spec: Obj) -> Iterator[Cause]:
    affinity = spec.get("sessionAffinity")
    yield from choice(affinity, _AFFINITIES, "spec.sessionAffinity")
    path, config = "spec.sessionAffinityConfig", spec.get("sessionAffinityConfig")
    if affinity == "None" and config is not None:
        yield forbidden(path, "must not be set when session affinity is None")
    if affinity != "ClientIP":
        return
    seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is None:
        yield required(f"{path}.clientIP.timeoutSeconds", "when session affinity type is ClientIP")
    elif not 0 < seconds <= _LONGEST_AFFINITY:
        detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
        yield invalid(f"{path}.clientIP.timeoutSeconds", seconds, detail)


def _addresses(spec: Obj, known: list[str]) -> Iterator[Cause]:
    path, addresses, first = "spec.clusterIPs", spec.get("clusterIPs") or [], spec.get("clusterIP")
    if first and not addresses:
        yield required(path)
    elif first and addresses[0] != first:
        yield invalid(path, addresses, "first value must match `clusterIP`")
    elif addresses and not first:
        yield invalid(path, addresses, "must be empty when `clusterIP` is not specified")
    seen: set[str] = set()
    for i, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in _FAMILIES:
            yield not_supported(f"spec.ipFamilies[{i}]", family, _FAMILIES)
        if family in seen:
            yield duplicate(f"spec.ipFamilies[{i}]", family)
        seen.add(family)
    yield from optional_choice(spec.get("ipFamilyPolicy"), _FAMILY_POLICIES, "spec.ipFamilyPolicy")
    causes = []
    for i, ip in enumerate(addresses):
        if i == 0 and ip == "None":
            if len(addresses) > 1:
                causes.append(invalid(path, addresses, "'None' must be the first and only value"))
            continue
        causes += address(ip or "", f"{path}[{i}]", known)
    yield from causes
    if len(addresses) > 2:
        yield invalid(path, addresses, "may only hold up to 2 values")
    if causes:
        return
    if len(addresses) > 1 and len({_family(ip) for ip in addresses}) < 2:
        yield invalid(path, addresses, "may specify no more than one IP for each IP family")
    if not is_headless(spec):
        for i, (ip, family) in enumerate(zip(addresses, spec.get("ipFamilies") or (), strict=False)):
            if family in _FAMILIES and _family(ip) != family:
                detail = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
                yield invalid(f"spec.clusterIPs[{i}]", ip, detail)


def _family(ip: str) -> str:
    found = parsed_address(ip)
    return "IPv6" if found is not None and found.version == 6 else "IPv4"


def _port_clashes(ports: list[Obj], kind: str | None) -> Iterator[Cause]:
    if kind == "ClusterIP":
        for i, entry in enumerate(ports):
            if entry.get("nodePort"):
                yield forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'")
    on_node: set[tuple[str, int]] = set()
    for i, entry in enumerate(ports):
        taken = (entry.get("protocol") or "", entry.get("nodePort") or 0)
        if taken[1] and taken in on_node:
            yield duplicate(f"spec.ports[{i}].nodePort", taken[1])
        on_node.add(taken)
    internal: set[tuple[str, int]] = set()
    for i, entry in enumerate(ports):
        pair = (entry.get("protocol") or "", entry.get("port") or 0)
        if pair in internal:
            shown = {
                "Name": "",
                "Protocol": pair[0],
                "AppProtocol": None,
                "Port": pair[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{i}]", shown)
        internal.add(pair)


def _load_balancer(spec: Obj) -> Iterator[Cause]:
    is_load_balancer = spec.get("type") == "LoadBalancer"
    if ranges := spec.get("loadBalancerSourceRanges"):
        if not is_load_balancer:
            yield forbidden("spec.LoadBalancerSourceRanges", _BALANCER_ONLY)
        for i, text in enumerate(ranges):
            yield from network((text or "").strip(), f"spec.LoadBalancerSourceRanges[{i}]")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_load_balancer:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _BALANCER_ONLY)
    if spec.get("loadBalancerClass") is None:
        return
    if is_load_balancer:
        yield from named(names.qualified_name, spec["loadBalancerClass"], "spec.loadBalancerClass")
    else:
        yield forbidden("spec.loadBalancerClass", _BALANCER_ONLY)


def _traffic(spec: Obj) -> Iterator[Cause]:
    kind, policy = spec.get("type"), spec.get("externalTrafficPolicy")
    external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if external:
        yield from choice(policy, _TRAFFIC, "spec.externalTrafficPolicy")
    elif policy:
        yield invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    if spec.get("healthCheckNodePort") and not (kind == "LoadBalancer" and policy == "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], detail)
    internal = spec.get("internalTrafficPolicy")
    if internal is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        yield required("spec.internalTrafficPolicy")
    yield from optional_choice(internal, _TRAFFIC, "spec.internalTrafficPolicy")
    yield from optional_choice(spec.get("trafficDistribution"), _DISTRIBUTIONS, "spec.trafficDistribution")


def _kept_addresses(spec: Obj, before: Obj) -> Iterator[Cause]:
    """A Service keeps its first address for life; only a second one may come and go."""
    new, old = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if is_headless(spec) and is_headless(before):
        return
    if len(new) == len(old):
        for i, ip in enumerate(old):
            if ip != new[i]:
                yield invalid(f"spec.clusterIPs[{i}]", new, "may not change once set")
        return
    if old and not new:
        yield invalid("spec.clusterIPs[0]", new or None, "primary clusterIP can not be unset")
    elif old and new[0] != old[0]:
        yield invalid("spec.clusterIPs[0]", new, "may not change once set")
    if len(old) > len(new) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        yield invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)


def _kept_families(spec: Obj, before: Obj) -> Iterator[Cause]:
    new, old = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    if is_headless(spec) or is_headless(before):
        return
    if old and new and new[0] != old[0]:
        yield invalid("spec.ipFamilies[0]", new, "may not change once set")
    if len(old) > len(new):
        if not spec.get("clusterIPs"):
            yield invalid("spec.ipFamilies[0]", new or None, "primary ipFamily can not be unset")
        if len(new) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
            detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
            yield invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)
