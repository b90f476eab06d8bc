"""Rows of Services and what they lead to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.apiserver.printers.table import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    TablePrinter,
    age,
    join_limited,
    mapping,
    name,
    text,
)
from shoal.kube.objects import Obj

_SERVICE = (
    NAME,
    text("Type", "How the service is reached."),
    text("Cluster-IP", "Virtual address inside the cluster."),
    text("External-IP", "Addresses outside the cluster."),
    text("Port(s)", "Ports the service listens on."),
    AGE,
    text("Selector", "Labels of the pods behind the service.", wide=True),
)


def service_cells(service: Obj, now: datetime) -> list[Any]:
    spec = mapping(service, "spec")
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    ports = []
    for port in spec.get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node_port}/{port.get('protocol') or 'TCP'}")
    return [
        name(service),
        spec.get("type") or "",
        addresses[0],
        _external(service),
        ",".join(ports) or NONE,
        age(service, now),
        selector or NONE,
    ]


def _external(service: Obj) -> str:
    spec = mapping(service, "spec")
    given = [str(ip) for ip in spec.get("externalIPs") or ()]
    kind = spec.get("type")
    if kind == "ExternalName":
        return str(spec.get("externalName") or "")
    if kind == "LoadBalancer":
        ingress = mapping(mapping(service, "status"), "loadBalancer").get("ingress") or ()
        found = sorted({str(point.get("ip") or point.get("hostname")) for point in ingress})
        return ",".join([*found, *given]) or "<pending>"
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(given) or NONE
    return UNKNOWN


_ENDPOINTS = (NAME, text("Endpoints", "Addresses behind the service."), AGE)


def endpoints_cells(endpoints: Obj, now: datetime) -> list[Any]:
    addresses = []
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or [{}]:  # a headless service may have no ports
            for address in subset.get("addresses") or ():
                ip, number = str(address.get("ip")), port.get("port")
                if number is None:
                    addresses.append(ip)
                else:
                    addresses.append(f"[{ip}]:{number}" if ":" in ip else f"{ip}:{number}")
    return [name(endpoints), join_limited(addresses), age(endpoints, now)]


_SLICE = (
    NAME,
    text("AddressType", "Family of the addresses."),
    text("Ports", "Ports of every address."),
    text("Endpoints", "Addresses in this slice."),
    AGE,
)


def endpoint_slice_cells(found: Obj, now: datetime) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in found.get("ports") or ()]
    addresses = [str(a) for endpoint in found.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return [name(found), found.get("addressType") or "", _listed(ports), _listed(addresses), age(found, now)]


def _listed(items: list[str]) -> str:
    return join_limited(items) if items else UNSET


PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("", "Service"): TablePrinter(_SERVICE, service_cells),
    ("", "Endpoints"): TablePrinter(_ENDPOINTS, endpoints_cells),
    ("discovery.k8s.io", "EndpointSlice"): TablePrinter(_SLICE, endpoint_slice_cells),
}
