"""Defaults of Service, Endpoints and EndpointSlice.

The cluster IP is allocated by `shoal.cluster`; here a requested one is only repeated in `clusterIPs`, and
the address families are filled in for a network that has IPv4 alone.
"""

from __future__ import annotations

from shoal.kube.defaults.field_access import below, each, fill, fill_missing
from shoal.kube.objects import Obj

AFFINITY_SECONDS = 10800
_REACHABLE = ("ClusterIP", "NodePort", "LoadBalancer")


def service(obj: Obj) -> None:
    spec = below(obj, "spec")
    fill(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
    fill(spec, "type", "ClusterIP")
    for port in each(spec, "ports"):
        fill(port, "protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port") or 0
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, "externalTrafficPolicy", "Cluster")
    if kind in _REACHABLE:
        fill_missing(spec, "internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        fill_missing(spec, "allocateLoadBalancerNodePorts", True)
    if kind in _REACHABLE:
        _addresses(spec)
    below(below(obj, "status"), "loadBalancer")


def _addresses(spec: Obj) -> None:
    address = spec.get("clusterIP")
    if address and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [address]
    # A headless Service without a selector names externally managed addresses: they may be of either family.
    if address == "None" and not spec.get("selector") and not spec.get("ipFamilies"):
        fill_missing(spec, "ipFamilyPolicy", "RequireDualStack")
        if spec["ipFamilyPolicy"] != "SingleStack":
            spec["ipFamilies"] = ["IPv4", "IPv6"]
    fill_missing(spec, "ipFamilyPolicy", "SingleStack")
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]


def endpoints(obj: Obj) -> None:
    for subset in each(obj, "subsets"):
        for port in each(subset, "ports"):
            fill(port, "protocol", "TCP")


def endpoint_slice(obj: Obj) -> None:
    obj.setdefault("endpoints", None)
    obj.setdefault("ports", None)
    for endpoint in each(obj, "endpoints"):
        below(endpoint, "conditions")
    for port in each(obj, "ports"):
        fill_missing(port, "name", "")
        fill_missing(port, "protocol", "TCP")
