"""A pod as a whole, on creation: the spec's own fields, and the groups of fields that have files of their own.

Kubernetes reports all errors of a pod at once and in a fixed order; the order here is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.kube.validation import (
    container_rules,
    metadata_rules,
    resource_rules,
    scheduling_rules,
    security_rules,
    volume_rules,
)
from shoal.kube.validation.errors import (
    duplicate,
    entries,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from shoal.kube.validation.value_rules import address, choice, labels, named, number_between, optional_choice

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_SYSTEMS = ("linux", "windows")
_CLAIM_FIELDS = ("resourceClaimName", "resourceClaimTemplateName")
_MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SHORT_INTEGER = re.compile("-?(?:0|[1-9][0-9]{0,9})")
_LARGEST_SECONDS = 2**31 - 1


def on_create(pod: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(POD, pod)
    yield from known_annotations(pod)
    spec = pod.get("spec") or {}
    yield from spec_rules(spec, (pod.get("metadata") or {}).get("name") or "")
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def known_annotations(pod: Obj) -> Iterator[Cause]:
    found = (pod.get("metadata") or {}).get("annotations")
    if not found:
        return
    if _MIRROR in found and not (pod.get("spec") or {}).get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(f"metadata.annotations[{_MIRROR}]", found[_MIRROR], detail)
    cost = found.get(_DELETION_COST)
    if cost and not (_SHORT_INTEGER.fullmatch(cost) and -(2**31) <= int(cost) < 2**31):
        yield invalid(f"metadata.annotations[{_DELETION_COST}]", cost, "must be a 32bit integer")


def spec_rules(spec: Obj, pod_name: str) -> Iterator[Cause]:
    """The rules of a pod's spec, in the order in which an API server applies them."""
    if spec.get("terminationGracePeriodSeconds") is None:
        yield required("spec.terminationGracePeriodSeconds")
    sound: dict[str, Obj] = {}
    if spec.get("volumes"):
        yield from volume_rules.pod_volumes(entries(spec["volumes"]), "spec.volumes", sound)
        yield from _ephemeral_claims(sound, spec, pod_name)
    claims: frozenset[str] = frozenset()
    if spec.get("resourceClaims"):
        claims = frozenset(claim["name"] for claim in entries(spec["resourceClaims"]) if claim.get("name"))
        yield from _resource_claims(entries(spec["resourceClaims"]), "spec.resourceClaims")
    yield from container_rules.regular(spec, sound, claims)
    if spec.get("initContainers"):
        yield from container_rules.initial(spec, sound, claims)
    if spec.get("resources"):
        yield from resource_rules.pod_requirements(spec)
    if spec.get("hostNetwork"):
        yield from _host_ports(spec)
    if spec.get("restartPolicy") not in _RESTART_POLICIES:
        yield from choice(spec.get("restartPolicy"), _RESTART_POLICIES, "spec.restartPolicy")
    if spec.get("dnsPolicy") not in _DNS_POLICIES:
        yield from choice(spec.get("dnsPolicy"), _DNS_POLICIES, "spec.dnsPolicy")
    if spec.get("nodeSelector"):
        yield from labels(spec["nodeSelector"], "spec.nodeSelector")
    if spec.get("securityContext"):
        yield from security_rules.pod_context(spec, "spec.securityContext")
    yield from security_rules.shared_processes(spec, "spec.securityContext")
    yield from _placement(spec)
    yield from _names(spec)
    yield from container_rules.file_keys(spec)
    yield from container_rules.images(spec)


def _host_ports(spec: Obj) -> Iterator[Cause]:
    """In the network of the node a container's port is the node's."""
    for i, container in enumerate(entries(spec.get("containers"))):
        for j, port in enumerate(entries(container.get("ports"))):
            host = port.get("hostPort") or 0
            if host != (port.get("containerPort") or 0):
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"spec.containers[{i}].ports[{j}].hostPort", host, detail)


def _placement(spec: Obj) -> Iterator[Cause]:
    if spec.get("affinity"):
        yield from scheduling_rules.affinity(spec["affinity"], "spec.affinity")
    if spec.get("dnsConfig") is not None or spec.get("dnsPolicy") == "None":
        yield from _dns(spec.get("dnsConfig"), spec.get("dnsPolicy"), "spec.dnsConfig")
    if spec.get("readinessGates"):
        yield from scheduling_rules.readiness_gates(entries(spec["readinessGates"]), "spec.readinessGates")
    if spec.get("schedulingGates"):
        yield from scheduling_rules.scheduling_gates(entries(spec["schedulingGates"]), "spec.schedulingGates")
    if spec.get("topologySpreadConstraints"):
        found = entries(spec["topologySpreadConstraints"])
        yield from scheduling_rules.spread(found, "spec.topologySpreadConstraints")
    if spec.get("hostUsers") is False:
        for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                yield forbidden(f"spec.{shown}", "when `hostUsers` is false")


def _names(spec: Obj) -> Iterator[Cause]:
    hostname = spec.get("hostnameOverride")
    if hostname is not None:
        for field in ("setHostnameAsFQDN", "hostNetwork"):
            if spec.get(field):
                yield forbidden("spec.hostnameOverride", f"may not be specified when {field} is true")
        if len(hostname) > 64:
            yield too_long("spec.hostnameOverride", 64)
        yield from named(names.dns_subdomain, hostname, "spec.hostnameOverride")
    for field in ("serviceAccountName", "nodeName"):
        if spec.get(field):
            yield from named(names.dns_subdomain, spec[field], f"spec.{field}")
    yield from number_between(spec.get("activeDeadlineSeconds"), 1, _LARGEST_SECONDS, "spec.activeDeadlineSeconds")
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from named(names.dns_label, spec[field], f"spec.{field}")
    if spec.get("tolerations"):
        yield from scheduling_rules.tolerations(entries(spec["tolerations"]), "spec.tolerations")
    for i, alias in enumerate(entries(spec.get("hostAliases"))):
        yield from address(alias.get("ip") or "", f"spec.hostAliases[{i}].ip")
        for j, hostname in enumerate(alias.get("hostnames") or ()):
            yield from named(names.dns_subdomain, hostname or "", f"spec.hostAliases[{i}].hostnames[{j}]")
    for field in ("priorityClassName", "runtimeClassName"):
        if spec.get(field):
            yield from named(names.dns_subdomain, spec[field], f"spec.{field}")
    yield from optional_choice(spec.get("preemptionPolicy"), _PREEMPTION, "spec.preemptionPolicy")
    if spec.get("overhead"):
        yield from resource_rules.requirements({"limits": spec["overhead"]}, "spec.overhead")
    if spec.get("os") is not None:
        system = spec["os"].get("name")
        if not system:
            yield required("spec.os.name")
        elif system not in _SYSTEMS:
            yield not_supported("spec.os", system, _SYSTEMS)


def _dns(config: Obj | None, policy: Any, path: str) -> Iterator[Cause]:
    servers = (config or {}).get("nameservers") or []
    if policy == "None" and config is None:
        yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if policy == "None" and not servers:
        yield required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
        return
    if len(servers) > 3:
        yield invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for i, server in enumerate(servers):
        yield from address(server or "", f"{path}.nameservers[{i}]")
    searches = [search or "" for search in (config or {}).get("searches") or ()]
    if len(searches) > 32:
        yield invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches).encode()) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid(f"{path}.searches", searches, detail)
    for i, search in enumerate(searches):
        if search != ".":
            here = f"{path}.searches[{i}]"
            yield from named(names.dns_subdomain_with_underscores, search.removesuffix("."), here)
    for i, option in enumerate(entries((config or {}).get("options"))):
        if not option.get("name"):
            yield required(f"{path}.options[{i}]", "must not be empty")


def _ephemeral_claims(sound: dict[str, Obj], spec: Obj, pod_name: str) -> Iterator[Cause]:
    """Claims created for ephemeral volumes have the pod's name as prefix; no other volume may reference them."""
    if not pod_name:
        return
    made = {f"{pod_name}-{name}" for name, volume in sound.items() if volume.get("ephemeral") is not None}
    for i, volume in enumerate(entries(spec["volumes"])):
        if volume.get("ephemeral") is not None and volume.get("name"):
            yield from volume_rules.ephemeral_claim_name(volume, pod_name, f"spec.volumes[{i}]")
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            yield invalid(f"spec.volumes[{i}].persistentVolumeClaim.claimName", claim, detail)


def _resource_claims(claims: list[Obj], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        here, name = f"{path}[{i}]", claim.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        elif name in seen:
            yield duplicate(f"{here}.name", name)
        else:
            yield from named(names.dns_label, name, f"{here}.name")
            seen.add(name)
        present = [field for field in _CLAIM_FIELDS if claim.get(field) is not None]
        shown = {"Name": name, **{field[0].upper() + field[1:]: claim.get(field) for field in _CLAIM_FIELDS}}
        if len(present) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(here, shown, detail)
        if not present:
            yield invalid(here, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for field in present:
            yield from named(names.dns_subdomain, claim[field], f"{here}.{field}")
