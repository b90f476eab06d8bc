"""Environment variables of a container, and the references that take a value from the pod itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity
from shoal.kube.validation.errors import invalid, not_supported, required
from shoal.kube.validation.value_rules import named, no_backsteps, required_name

FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_KNOWN_PATHS = frozenset(
    {*FIELD_PATHS, "metadata.labels", "metadata.annotations", "spec.restartPolicy", "status.phase"}
)
_AMOUNTS = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_BYTE_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1", "cpu resource"),
    "memory": (_BYTE_UNITS, ", ".join(_BYTE_UNITS), "memory resource"),
    "ephemeral-storage": (_BYTE_UNITS, ", ".join(_BYTE_UNITS), "local ephemeral storage resource"),
    "hugepages": (_BYTE_UNITS, ", ".join(_BYTE_UNITS), "hugepages resource"),  # of any page size
}
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"


def variables(found: list[Obj], path: str) -> Iterator[Cause]:
    for i, variable in enumerate(found):
        yield from required_name(names.env_var_name, variable.get("name"), f"{path}[{i}].name")
        source = variable.get("valueFrom")
        if source is not None:
            yield from _source(source, variable.get("value"), f"{path}[{i}].valueFrom")


def bulk(found: list[Obj], path: str) -> Iterator[Cause]:
    """`envFrom`: all keys of a ConfigMap or a Secret."""
    for i, source in enumerate(found):
        if source.get("prefix"):
            yield from named(names.env_var_name, source["prefix"], f"{path}[{i}].prefix")
        present = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in present:
            target = source[name].get("name") or ""
            here = f"{path}[{i}].{name}.name"
            if not target:
                yield required(here)
                continue
            for problem in names.dns_subdomain(f"{target[:-2]}a" if len(target) > 1 and target[-1] == "-" else target):
                yield invalid(here, target, problem)
        if not present:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(present) > 1:
            yield invalid(path, "", "may not have more than one field specified at a time")


def _source(source: Obj, value: Any, path: str) -> Iterator[Cause]:
    present = [name for name in _SOURCES if source.get(name) is not None]
    for name in present:
        reference, here = source[name], f"{path}.{name}"
        if name == "fieldRef":
            yield from field_reference(reference, FIELD_PATHS, here)
        elif name == "resourceFieldRef":
            yield from resource_reference(reference, here, needs_container=False)
        elif name == "fileKeyRef":
            yield from required_name(names.env_var_name, reference.get("key"), f"{here}.key")
            yield from required_name(names.dns_label, reference.get("volumeName"), f"{here}.volumeName")
            if reference.get("path"):
                yield from no_backsteps(reference["path"], f"{here}.path")
            else:
                yield required(f"{here}.path")
        else:
            yield from named(names.dns_subdomain, reference.get("name") or "", f"{here}.name")
            yield from required_name(names.config_key, reference.get("key"), f"{here}.key")
    if not present:
        yield invalid(path, "", _NO_SOURCE)
    elif value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(present) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def field_reference(reference: Obj, allowed: tuple[str, ...], path: str) -> Iterator[Cause]:
    for field in ("apiVersion", "fieldPath"):
        if not reference.get(field):
            yield required(f"{path}.{field}")
            return
    where = reference["fieldPath"]
    if reference["apiVersion"] != "v1":
        detail = f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}"
        yield invalid(f"{path}.fieldPath", where, detail)
        return
    field, bracket, key = where.removesuffix("']").partition("['")
    if field and bracket and where.endswith("']"):
        if field in ("metadata.annotations", "metadata.labels"):
            yield from named(names.qualified_name, key.lower() if field == "metadata.annotations" else key, path)
        else:
            detail = f"error converting fieldPath: field label does not support subscript: {where}"
            yield invalid(f"{path}.fieldPath", where, detail)
    elif where not in _KNOWN_PATHS:
        detail = f"error converting fieldPath: field label not supported: {where}"
        yield invalid(f"{path}.fieldPath", where, detail)
    elif where not in allowed:
        yield not_supported(f"{path}.fieldPath", where, allowed)


def resource_reference(reference: Obj, path: str, *, needs_container: bool) -> Iterator[Cause]:
    resource = reference.get("resource") or ""
    if needs_container and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _AMOUNTS and not resource.startswith(_HUGE):
        yield not_supported(f"{path}.resource", resource, _AMOUNTS)
    divisor = Quantity.parse(reference.get("divisor") or "0")
    name = resource.partition(".")[2]
    rule = _DIVISORS.get("hugepages" if name.startswith("hugepages-") else name)
    if divisor.nanos and rule is not None:
        supported, listed, what = rule
        if str(divisor) not in supported:
            detail = f"only divisor's values {listed} are supported with the {what}"
            yield invalid(f"{path}.divisor", resource, detail)
