"""Rows of Services and what they lead to."""

from __future__ import annotations

from collections.abc import Iterator
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


def _service(service: Obj, now: datetime) -> list[Any]:
    spec = mapping(service, "spec")
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return [
        name(service),
        spec.get("type") or "",
        addresses[0],
        _external(service),
        ",".join(_ports(spec)) or NONE,
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


def _ports(spec: Obj) -> Iterator[str]:
    for port in spec.get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        yield f"{port.get('port')}{node_port}/{port.get('protocol') or 'TCP'}"


_ENDPOINTS = (NAME, text("Endpoints", "Addresses behind the service."), AGE)


def _endpoints(endpoints: Obj, now: datetime) -> list[Any]:
    return [name(endpoints), join_limited(_pairs(endpoints)), age(endpoints, now)]


def _pairs(endpoints: Obj) -> Iterator[str]:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or [None]:  # a headless service may have no ports
            for address in subset.get("addresses") or ():
                yield _joined(str(address.get("ip")), port.get("port") if port else None)


def _joined(ip: str, port: int | None) -> str:
    host = f"[{ip}]" if ":" in ip and port is not None else ip
    return host if port is None else f"{host}:{port}"


_SLICE = (
    NAME,
    text("AddressType", "Family of the addresses."),
    text("Ports", "Ports of every address."),
    text("Endpoints", "Addresses in this slice."),
    AGE,
)


def _slice(found: Obj, now: datetime) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in found.get("ports") or ()]
    addresses = [str(a) for endpoint in found.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return [name(found), found.get("addressType") or "", _listed(ports), _listed(addresses), age(found, now)]


def _listed(items: list[str]) -> str:
    return join_limited(items) if items else UNSET


PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("", "Service"): TablePrinter(_SERVICE, _service),
    ("", "Endpoints"): TablePrinter(_ENDPOINTS, _endpoints),
    ("discovery.k8s.io", "EndpointSlice"): TablePrinter(_SLICE, _slice),
}
