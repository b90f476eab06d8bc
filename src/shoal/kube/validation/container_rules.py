"""Containers of a pod: names, images, ports, mounts, restart rules; each by itself and all of them together.

Environment, probes, amounts and security have files of their own. This is the hot path of creating a pod: a rule is
called only where the container has something for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation import env_rules, probe_rules, resource_rules, security_rules
from shoal.kube.validation.errors import (
    duplicate,
    entries,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from shoal.kube.validation.value_rules import PROTOCOLS, choice, descending_path, named, number_between, required_name

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_SIDECAR_ONLY = "may not be set for init containers without restartPolicy=Always"


def regular(spec: Obj, volumes: dict[str, Obj], claims: frozenset[str]) -> Iterator[Cause]:
    path = "spec.containers"
    containers = entries(spec.get("containers"))
    if not containers:
        yield required(path)
        return
    seen: set[str] = set()
    for i, container in enumerate(containers):
        here = f"{path}[{i}]"
        yield from _common(container, spec, volumes, claims, here)
        name = container.get("name") or ""
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        yield from _running(container, spec, here)
        yield from _restart_rules(container, here)
    yield from _host_ports(containers, path)


def initial(spec: Obj, volumes: dict[str, Obj], claims: frozenset[str]) -> Iterator[Cause]:
    path = "spec.initContainers"
    seen = {container.get("name") or "" for container in entries(spec.get("containers"))}
    for i, container in enumerate(entries(spec.get("initContainers"))):
        here = f"{path}[{i}]"
        yield from _common(container, spec, volumes, claims, here)
        yield from _restart_rules(container, here)
        name = container.get("name") or ""
        if name in seen:
            yield duplicate(f"{here}.name", name)
        elif name:
            seen.add(name)
        # They run one after the other, so only the ports of one can clash.
        yield from _host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            yield from _running(container, spec, here)
            continue
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(field) is not None:
                yield forbidden(f"{here}.{field}", _SIDECAR_ONLY)


def file_keys(spec: Obj) -> Iterator[Cause]:
    """A variable may come from a file only where the file is in a volume of the pod's own making."""
    for field in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(field) or ()):
            for j, variable in enumerate((container or {}).get("env") or ()):
                source = (variable or {}).get("valueFrom")
                if not source or source.get("fileKeyRef") is None:
                    continue
                path = f"spec.{field}[{i}].env[{j}].valueFrom.fileKeyRef.volumeName"
                name = source["fileKeyRef"].get("volumeName") or ""
                volume = next((v for v in entries(spec.get("volumes")) if (v.get("name") or "") == name), None)
                if volume is None:
                    yield not_found(path, name)
                elif volume.get("emptyDir") is None:
                    yield invalid(path, name, "referenced volume must be of type emptyDir")


def images(spec: Obj) -> Iterator[Cause]:
    for field in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(field) or ()):
            image = (container or {}).get("image") or ""
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                yield invalid(f"spec.{field}[{i}].image", image, detail)


def _common(container: Obj, spec: Obj, volumes: dict[str, Obj], claims: frozenset[str], path: str) -> Iterator[Cause]:
    yield from required_name(names.dns_label, container.get("name"), f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    if container.get("terminationMessagePolicy") not in _MESSAGE_POLICIES:
        policy = container.get("terminationMessagePolicy")
        yield from choice(policy, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    if container.get("ports"):
        yield from _ports(entries(container["ports"]), f"{path}.ports")
    if container.get("env"):
        yield from env_rules.variables(entries(container["env"]), f"{path}.env")
    if container.get("envFrom"):
        yield from env_rules.bulk(entries(container["envFrom"]), f"{path}.envFrom")
    if container.get("volumeMounts"):
        yield from _mounts(container, volumes, f"{path}.volumeMounts")
    if container.get("volumeDevices"):
        yield from _devices(container, volumes, f"{path}.volumeDevices")
    if container.get("imagePullPolicy") not in _PULL_POLICIES:
        yield from choice(container.get("imagePullPolicy"), _PULL_POLICIES, f"{path}.imagePullPolicy")
    if container.get("resources"):
        yield from resource_rules.requirements(container["resources"], f"{path}.resources", claims)
    if container.get("resizePolicy"):
        yield from _resize(entries(container["resizePolicy"]), spec.get("restartPolicy"), f"{path}.resizePolicy")
    if container.get("securityContext"):
        yield from security_rules.container_context(container["securityContext"], f"{path}.securityContext")


def _running(container: Obj, spec: Obj, path: str) -> Iterator[Cause]:
    """What only a container that keeps running may have."""
    if container.get("lifecycle") is not None:
        yield from probe_rules.lifecycle(container["lifecycle"], spec, f"{path}.lifecycle")
    yield from probe_rules.probes(container, path)


def _ports(ports: list[Obj], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        here = f"{path}[{i}]"
        if name := port.get("name"):
            causes = list(named(names.port_name, name, f"{here}.name"))
            yield from causes
            if name in seen:
                yield duplicate(f"{here}.name", name)
            if not causes:
                seen.add(name)
        if not port.get("containerPort"):
            yield required(f"{here}.containerPort")
        else:
            yield from number_between(port["containerPort"], 1, 65535, f"{here}.containerPort")
        if port.get("hostPort"):
            yield from number_between(port["hostPort"], 1, 65535, f"{here}.hostPort")
        yield from choice(port.get("protocol"), PROTOCOLS, f"{here}.protocol")


def _host_ports(containers: list[Obj], path: str) -> Iterator[Cause]:
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            if not port or not port.get("hostPort"):
                continue
            key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in taken:
                yield duplicate(f"{path}[{i}].ports[{j}].hostPort", key)
            taken.add(key)


def _mounts(container: Obj, volumes: dict[str, Obj], path: str) -> Iterator[Cause]:
    devices = entries(container.get("volumeDevices"))
    taken: set[str] = set()
    for i, mount in enumerate(entries(container["volumeMounts"])):
        here, name, where = f"{path}[{i}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{here}.name")
        if name not in volumes:
            yield not_found(f"{here}.name", name)
        if not where:
            yield required(f"{here}.mountPath")
        if where in taken:
            yield invalid(f"{here}.mountPath", where, "must be unique")
        taken.add(where)
        if any(device.get("name") == name for device in devices):
            yield invalid(f"{here}.name", name, "must not already exist in volumeDevices")
        if any(device.get("devicePath") == where for device in devices):
            yield invalid(f"{here}.mountPath", where, "must not already exist as a path in volumeDevices")
        # The paths of these lack the index, as the API server's do.
        if mount.get("subPath"):
            yield from descending_path(mount["subPath"], f"{path}.subPath")
        if expression := mount.get("subPathExpr"):
            if mount.get("subPath"):
                yield invalid(f"{here}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
            yield from descending_path(expression, f"{path}.subPathExpr")
        mode = mount.get("mountPropagation")
        if mode is not None and mode not in _PROPAGATIONS:
            yield not_supported(f"{path}.mountPropagation", mode, _PROPAGATIONS)
        if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(f"{path}.mountPropagation", detail)


def _devices(container: Obj, volumes: dict[str, Obj], path: str) -> Iterator[Cause]:
    mounts = entries(container.get("volumeMounts"))
    seen: set[str] = set()
    for i, device in enumerate(entries(container["volumeDevices"])):
        here, name, where = f"{path}[{i}]", device.get("name") or "", device.get("devicePath") or ""
        if not name:
            yield required(f"{here}.name")
        volume = volumes.get(name)
        if volume is None:
            yield not_found(f"{here}.name", name)
        # Only claims can be in block mode; every other source is a file system.
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{here}.name", name, detail)
        if not where:
            yield required(f"{here}.devicePath")
        for field, value in (("name", name), ("devicePath", where)):
            if value and f"{field}={value}" in seen:
                yield invalid(f"{here}.{field}", value, "must be unique")
            seen.add(f"{field}={value}")
        if ".." in where.split("/"):
            yield invalid(f"{here}.devicePath", where, "can not contain backsteps ('..')")
        if any(mount.get("name") == name for mount in mounts):
            yield invalid(f"{here}.name", name, "must not already exist in volumeMounts")
        if any(mount.get("mountPath") == where for mount in mounts):
            yield invalid(f"{here}.devicePath", where, "must not already exist as a path in volumeMounts")


def _resize(policies: list[Obj], restart: Any, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        resource, action = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in seen:
            yield duplicate(f"{path}[{i}]", resource)
        seen.add(resource)
        yield from choice(resource, _RESIZABLE, path)
        yield from choice(action, _RESIZE_POLICIES, path)
        if restart == "Never" and action != "NotRequired":
            yield invalid(path, action, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _restart_rules(container: Obj, path: str) -> Iterator[Cause]:
    """When this one container starts again, where that differs from the pod."""
    policy, rules = container.get("restartPolicy"), entries(container.get("restartPolicyRules"))
    if policy is None:
        if rules:
            yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        yield too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for i, rule in enumerate(rules):
        here = f"{path}.restartPolicyRules[{i}]"
        if rule.get("action") not in _RESTART_ACTIONS:
            yield not_supported(f"{here}.action", rule.get("action") or "", _RESTART_ACTIONS)
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(f"{here}.exitCodes", "must be specified")
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            yield not_supported(f"{here}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn"))
        if len(codes.get("values") or ()) > 255:
            yield too_many(f"{here}.exitCodes.values", len(codes["values"]), 255)
