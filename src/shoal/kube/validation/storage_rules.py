"""PersistentVolumes and claims on them: required fields and immutable fields."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from shoal.kube.objects import Obj
from shoal.kube.persistent_volumes import SOURCES
from shoal.kube.quantity import ZERO, Quantity
from shoal.kube.validation import metadata_rules, volume_source_rules
from shoal.kube.validation.errors import (
    IMMUTABLE,
    NOT_POSITIVE,
    entries,
    forbidden,
    invalid,
    not_supported,
    required,
)
from shoal.kube.validation.selector_rules import label_selector, node_selector, shown_term
from shoal.kube.validation.value_rules import at_most_one, named, optional_choice

_ACCESS = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES = ("Block", "Filesystem")
_RECLAIM = ("Delete", "Recycle", "Retain")
_RULES: dict[str, Callable[[Obj, str], Iterator[Cause]]] = {
    "hostPath": volume_source_rules.host_path,
    "nfs": volume_source_rules.nfs,
    "local": volume_source_rules.local,
}


def volume_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(PERSISTENT_VOLUME, obj)
    yield from _volume(obj.get("spec") or {})


def volume_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(PERSISTENT_VOLUME, new, old)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    yield from _volume(spec)
    if any(spec.get(name) != before.get(name) for name in SOURCES):
        yield forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    if before.get("nodeAffinity") is not None and spec.get("nodeAffinity") != before["nodeAffinity"]:
        detail = f"{IMMUTABLE}, except for updating from beta label to GA"
        affinity, shown = spec.get("nodeAffinity"), None
        if affinity is not None:
            terms = entries((affinity.get("required") or {}).get("nodeSelectorTerms"))
            shown = {"Required": {"NodeSelectorTerms": [shown_term(term) for term in terms]}}
        yield invalid("nodeAffinity", shown, detail)


def _volume(spec: Obj) -> Iterator[Cause]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _access_modes(spec, "spec")
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if list(capacity) != ["storage"]:
        yield not_supported("spec.capacity", capacity or None, ("storage",))
    for name, value in capacity.items():
        quantity = Quantity.parse(value)
        if quantity < ZERO:
            yield invalid(f"spec.capacity[{name}]", quantity.value(), "must be a valid resource quantity")
        if quantity <= ZERO:
            yield invalid(f"spec.capacity[{name}]", str(quantity), NOT_POSITIVE)
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from optional_choice(policy, _RECLAIM, "spec.persistentVolumeReclaimPolicy")
    affinity = spec.get("nodeAffinity")
    if affinity is not None and affinity.get("required") is not None:
        yield from node_selector(affinity["required"], "spec.nodeAffinity.required")
    elif affinity is not None:
        yield required("spec.nodeAffinity.required", "must specify required node constraints")
    # Kubernetes requires a source. Here a volume without one is a folder of the cluster, like one of a storage system
    # that is not there.
    sources = [name for name in SOURCES if spec.get(name) is not None]
    if sources:
        if rule := _RULES.get(sources[0]):
            yield from rule(spec[sources[0]], f"spec.{sources[0]}")
        if sources[0] == "local" and affinity is None:
            yield required("spec.nodeAffinity", "Local volume requires node affinity")
        yield from at_most_one("spec", sources, "volume type")
    path = (spec.get("hostPath") or {}).get("path")
    if path and posixpath.normpath(path) == "/" and policy == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden("spec.persistentVolumeReclaimPolicy", detail)
    if spec.get("storageClassName"):
        yield from named(names.dns_subdomain, spec["storageClassName"], "spec.storageClassName")
    yield from optional_choice(spec.get("volumeMode"), _MODES, "spec.volumeMode")


def _access_modes(spec: Obj, path: str) -> Iterator[Cause]:
    modes = spec.get("accessModes") or []
    for mode in modes:
        if mode not in _ACCESS:
            yield not_supported(f"{path}.accessModes", mode, _ACCESS)
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS and mode != "ReadWriteOncePod" for mode in modes):
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")


def claim_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(PERSISTENT_VOLUME_CLAIM, obj)
    yield from claim_spec(obj.get("spec") or {}, "spec")


def claim_spec(spec: Obj, path: str) -> Iterator[Cause]:
    if not spec.get("accessModes"):
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from label_selector(spec.get("selector"), f"{path}.selector")
    yield from _access_modes(spec, path)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required(f"{path}.resources[storage]")
    elif Quantity.parse(size) <= ZERO:
        yield invalid(f"{path}.resources[storage]", str(size), NOT_POSITIVE)
    if spec.get("storageClassName"):
        yield from named(names.dns_subdomain, spec["storageClassName"], f"{path}.storageClassName")
    yield from optional_choice(spec.get("volumeMode"), _MODES, f"{path}.volumeMode")
    for field in ("dataSource", "dataSourceRef"):
        source, here = spec.get(field), f"{path}.{field}"
        if source is None:
            continue
        group, kind = source.get("apiGroup") or "", source.get("kind") or ""
        if not source.get("name"):
            yield required(f"{here}.name")
        if not kind:
            yield required(f"{here}.kind")
        if not group and kind != "PersistentVolumeClaim":
            yield invalid(here, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
        if group:
            yield from named(names.dns_subdomain, group, f"{here}.apiGroup")


def claim_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(PERSISTENT_VOLUME_CLAIM, new, old)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if spec == before:
        return
    yield from claim_spec(spec, "spec")
    bound = (new.get("status") or {}).get("phase") == "Bound"
    if not _same_claim(spec, before, bound=bound):
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", detail)
    size = _storage(spec.get("resources"), "requests")
    if size < _storage(before.get("resources"), "requests") and size <= _storage(old.get("status"), "capacity"):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE)


def _same_claim(spec: Obj, before: Obj, *, bound: bool) -> bool:
    """Whether nothing but the volume and the class (once) and the size of a bound claim has changed."""
    new, old = dict(spec), dict(before)
    for field in ("volumeName", "storageClassName"):
        if not old.get(field):
            old[field] = new.get(field)
    if bound:
        new["volumeAttributesClassName"] = old.get("volumeAttributesClassName")
        resources, kept = dict(new.get("resources") or {}), (old.get("resources") or {}).get("requests") or {}
        resources["requests"] = {**(resources.get("requests") or {}), "storage": kept.get("storage")}
        new["resources"] = resources
    return _filled(new) == _filled(old)


def _filled(spec: Obj) -> Obj:
    return {name: value for name, value in spec.items() if value not in (None, {}, [])}


def _storage(holder: Obj | None, field: str) -> Quantity:
    return Quantity.parse(((holder or {}).get(field) or {}).get("storage") or "0")


def claim_on_status(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(PERSISTENT_VOLUME_CLAIM, new, old)
    for name, value in ((new.get("status") or {}).get("capacity") or {}).items():
        quantity = Quantity.parse(value)
        if quantity < ZERO:
            yield invalid(f"status.capacity[{name}]", quantity.value(), "must be a valid resource quantity")
