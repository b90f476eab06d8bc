"""Names and virtual addresses, from Services and EndpointSlices.

Pure. `hosts_file` is the /etc/hosts of one pod: its own name, and every Service it can reach by every form of the name
a cluster's DNS would answer. `service_table` has the endpoints behind each ClusterIP. Programs that read /etc/hosts
once keep old answers, as they would with DNS.

An ExternalName Service is a name for another name; a hosts file cannot express that, so it is left out with a comment
line. Wildcards, SRV and reverse records do not exist here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from shoal.kube.objects import Obj, labels_of, name_of, namespace_of

SERVICE_NAME = "kubernetes.io/service-name"
DOMAIN = "cluster.local"

Table = dict[tuple[str, int], tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class PodHosts:
    """A pod as its own hosts file sees it."""

    namespace: str
    hostname: str
    subdomain: str = ""
    ip: str = ""
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()  # spec.hostAliases


@dataclass(frozen=True, slots=True)
class Peer:
    """A pod as others with its subdomain see it before it is ready."""

    namespace: str
    hostname: str
    subdomain: str
    ip: str
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Directory:
    """The Services of the cluster and the slices behind them."""

    services: tuple[Obj, ...] = ()
    slices: Mapping[tuple[str, str], tuple[Obj, ...]] = field(default_factory=dict)  # (namespace, service) -> slices


def build_directory(services: Iterable[Obj], slices: Iterable[Obj]) -> Directory:
    by_service: dict[tuple[str, str], list[Obj]] = {}
    for endpoint_slice in sorted(slices, key=name_of):
        by_service.setdefault(
            (namespace_of(endpoint_slice), labels_of(endpoint_slice).get(SERVICE_NAME, "")), []
        ).append(endpoint_slice)
    ordered = tuple(sorted(services, key=lambda s: (namespace_of(s), name_of(s))))
    return Directory(ordered, {key: tuple(found) for key, found in by_service.items()})


def reachable_slice(endpoint_slice: Obj, local_nodes: Collection[str], own_range: str) -> Obj:
    """The slice without pods of other machines that give out the same addresses as this one: the address alone would
    lead to a pod of ours. `local_nodes` are the nodes of this machine."""
    ours = ipaddress.ip_network(own_range)

    def is_own(address: str) -> bool:
        try:
            return ipaddress.ip_address(address) in ours
        except ValueError:
            return False  # a name

    def is_reachable(endpoint: Obj) -> bool:
        node = endpoint.get("nodeName")
        return not node or node in local_nodes or not any(is_own(each) for each in endpoint.get("addresses") or ())

    return {
        **endpoint_slice,
        "endpoints": [each for each in endpoint_slice.get("endpoints") or () if is_reachable(each)],
    }


def pod_hosts(pod: Obj, ip: str) -> PodHosts:
    spec = pod["spec"]
    return PodHosts(
        namespace_of(pod),
        hostname_of(pod),
        spec.get("subdomain") or "",
        ip,
        tuple((a["ip"], tuple(a.get("hostnames") or ())) for a in spec.get("hostAliases") or ()),
    )


def peer(pod: Obj, ip: str) -> Peer | None:
    """None for a pod without a name of its own, or with a readiness probe: that one is found once it is ready."""
    spec = pod["spec"]
    if not ip or not spec.get("subdomain") or any(each.get("readinessProbe") for each in spec["containers"]):
        return None
    return Peer(namespace_of(pod), hostname_of(pod), spec["subdomain"], ip, tuple(sorted(labels_of(pod).items())))


def hostname_of(pod: Obj) -> str:
    """What the pod calls itself: its own choice or its name, cut to what a hostname may be."""
    return str(pod["spec"].get("hostname") or name_of(pod))[:63].rstrip("-.")


# The hosts file


def hosts_file(pod: PodHosts, services: str) -> str:
    """The whole file: the machine's own lines, the pod's, its aliases, and the text `service_lines` gave."""
    own = [pod.hostname]
    if pod.subdomain:
        own.insert(0, f"{pod.hostname}.{pod.subdomain}.{pod.namespace}.svc.{DOMAIN}")
    lines = [
        "# Kept by shoal: changes with the Services of the cluster.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "fe00::0\tip6-localnet",
        "fe00::0\tip6-mcastprefix",
        "fe00::1\tip6-allnodes",
        "fe00::2\tip6-allrouters",
    ]
    if pod.ip:
        lines.append(f"{pod.ip}\t{' '.join(own)}")
    lines += [f"{ip}\t{' '.join(names)}" for ip, names in pod.aliases if names]
    return "\n".join([*lines, services])


def service_lines(directory: Directory, namespace: str) -> str:
    """The lines of a hosts file that all pods of a namespace share."""
    lines: list[str] = []
    for service in directory.services:
        spec = service.get("spec") or {}
        dns_names = list(_dns_names(name_of(service), namespace_of(service), namespace))
        if spec.get("type") == "ExternalName":
            lines.append(f"# {dns_names[-1]} stands for {spec.get('externalName')}: resolve that name instead\n")
            continue
        if spec.get("clusterIP") not in (None, "", "None"):
            lines.append(f"{spec['clusterIP']}\t{' '.join(dns_names)}\n")
            continue
        for address, hostname in _endpoints(service, directory):
            own = [f"{hostname}.{form}" for form in dns_names] if hostname else []
            lines.append(f"{address}\t{' '.join([*dns_names, *own])}\n")
    return "".join(lines)


def peer_lines(directory: Directory, peers: Iterable[Peer], namespace: str) -> str:
    """Names of pods of this machine that are about to run and are in no slice yet, for all pods of a namespace.

    A gang starts together, and the first pod looks for the others. Only the pods' own names: a Service leads to those
    that are ready.
    """
    headless: dict[tuple[str, str], Obj] = {}
    for service in directory.services:
        spec = service.get("spec") or {}
        if spec.get("clusterIP") == "None" and spec.get("type") != "ExternalName":
            headless[(namespace_of(service), name_of(service))] = service
    lines: list[str] = []
    for peer in peers:
        found = headless.get((peer.namespace, peer.subdomain))
        selector = (found.get("spec") or {}).get("selector") if found is not None else None
        if not selector or not selector.items() <= dict(peer.labels).items():
            continue
        dns_names = _dns_names(peer.subdomain, peer.namespace, namespace)
        lines.append(f"{peer.ip}\t{' '.join(f'{peer.hostname}.{form}' for form in dns_names)}\n")
    return "".join(lines)


def undiscovered_peers(directory: Directory, peers: Mapping[str, Peer]) -> dict[str, Peer]:
    """Those that no slice lists as ready yet: from then on the slices alone decide whether they are."""
    services = {(namespace_of(service), name_of(service)): service for service in directory.services}
    discovered: dict[tuple[str, str], set[str]] = {}
    left: dict[str, Peer] = {}
    for uid, each in peers.items():
        key = each.namespace, each.subdomain
        if key not in discovered:
            discovered[key] = (
                {address for address, _ in _endpoints(services[key], directory)} if key in services else set()
            )
        if each.ip not in discovered[key]:
            left[uid] = each
    return left


def _dns_names(service: str, home: str, namespace: str) -> Iterator[str]:
    if home == namespace:
        yield service
    for suffix in (home, f"{home}.svc", f"{home}.svc.{DOMAIN}"):
        yield f"{service}.{suffix}"


def _endpoints(service: Obj, directory: Directory) -> list[tuple[str, str]]:
    """(address, hostname) of every endpoint that may be published, each once, in a steady order."""
    include_not_ready = bool((service.get("spec") or {}).get("publishNotReadyAddresses"))
    found = {
        (address, endpoint.get("hostname") or "")
        for endpoint_slice in directory.slices.get((namespace_of(service), name_of(service)), ())
        for endpoint in endpoint_slice.get("endpoints") or ()
        if include_not_ready or _is_ready(endpoint)
        for address in endpoint.get("addresses") or ()
    }
    return sorted(found, key=lambda pair: (_ip_sort_key(pair[0]), pair[1]))


def _is_ready(endpoint: Obj) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _ip_sort_key(address: str) -> tuple[int, ...]:
    return tuple(int(part) for part in address.split(".") if part.isdigit())


# The service table


def service_table(directory: Directory) -> Table:
    """(ClusterIP, port) -> the (address, port)s behind it; TCP only. No endpoints: an empty tuple."""
    table: Table = {}
    for service in directory.services:
        spec = service.get("spec") or {}
        if spec.get("clusterIP") in (None, "", "None") or spec.get("type") == "ExternalName":
            continue
        for port in spec.get("ports") or ():
            if (port.get("protocol") or "TCP") == "TCP":
                table[(spec["clusterIP"], int(port["port"]))] = _backends(service, port.get("name") or "", directory)
    return table


def _backends(service: Obj, port_name: str, directory: Directory) -> tuple[tuple[str, int], ...]:
    include_not_ready = bool((service.get("spec") or {}).get("publishNotReadyAddresses"))
    found = set()
    for endpoint_slice in directory.slices.get((namespace_of(service), name_of(service)), ()):
        numbers = [p.get("port") for p in endpoint_slice.get("ports") or () if (p.get("name") or "") == port_name]
        for endpoint in endpoint_slice.get("endpoints") or ():
            if include_not_ready or _is_ready(endpoint):
                found |= {(a, int(n)) for a in endpoint.get("addresses") or () for n in numbers if n is not None}
    return tuple(sorted(found, key=lambda pair: (_ip_sort_key(pair[0]), pair[1])))
