"""Volumes of a pod: each has a name of its own and exactly one source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity
from shoal.kube.validation import env_rules, storage_rules, volume_source_rules
from shoal.kube.validation.errors import duplicate, entries, forbidden, invalid, required
from shoal.kube.validation.value_rules import at_most_one, file_mode, file_path, required_name

# The order in which an API server looks for a source: the first it finds counts, the others are one too many.
SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_FIELD_PATHS = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip


def pod_volumes(volumes: list[Obj], path: str, sound: dict[str, Obj]) -> Iterator[Cause]:
    """Check each volume and put the sound ones into `sound` by name: mounts may refer to those."""
    for i, volume in enumerate(volumes):
        causes = list(_volume(volume, f"{path}[{i}]", sound))
        if causes:
            yield from causes
        else:
            sound[volume["name"]] = volume


def _volume(volume: Obj, path: str, sound: dict[str, Obj]) -> Iterator[Cause]:
    present = [name for name in SOURCES if volume.get(name) is not None]
    yield from at_most_one(path, present, "volume type")
    if not present:
        yield required(path, "must specify a volume type")
    elif rule := _RULES.get(present[0]):
        yield from rule(volume[present[0]], f"{path}.{present[0]}")
    name = volume.get("name") or ""
    yield from required_name(names.dns_label, name, f"{path}.name")
    if name in sound:
        yield duplicate(f"{path}.name", name)


def empty_dir(source: Obj, path: str) -> Iterator[Cause]:
    limit = source.get("sizeLimit")
    if limit is not None and Quantity.parse(limit).nanos < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def secret(source: Obj, path: str) -> Iterator[Cause]:
    if not source.get("secretName"):
        yield required(f"{path}.secretName")
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    yield from _keys(source, path)


def config_map(source: Obj, path: str) -> Iterator[Cause]:
    if not source.get("name"):
        yield required(f"{path}.name")
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    yield from _keys(source, path)


def _keys(source: Obj, path: str) -> Iterator[Cause]:
    for i, item in enumerate(entries(source.get("items"))):
        here = f"{path}.items[{i}]"
        for field in ("key", "path"):
            if not item.get(field):
                yield required(f"{here}.{field}")
        yield from file_path(item.get("path") or "", f"{here}.path")
        yield from file_mode(item.get("mode"), f"{here}.mode")


def downward_api(source: Obj, path: str) -> Iterator[Cause]:
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in entries(source.get("items")):
        yield from _downward_file(item, path)


def _downward_file(item: Obj, path: str) -> Iterator[Cause]:
    if not item.get("path"):
        yield required(f"{path}.path")
    yield from file_path(item.get("path") or "", f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from env_rules.field_reference(field, _FIELD_PATHS, f"{path}.fieldRef")
        if resource is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from env_rules.resource_reference(resource, f"{path}.resourceFieldRef", needs_container=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from file_mode(item.get("mode"), f"{path}.mode")


def claim(source: Obj, path: str) -> Iterator[Cause]:
    if not source.get("claimName"):
        yield required(f"{path}.claimName")


def ephemeral(source: Obj, path: str) -> Iterator[Cause]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield required(f"{path}.volumeClaimTemplate")
        return
    yield from storage_rules.claim_spec(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec")


def image(source: Obj, path: str) -> Iterator[Cause]:
    if not source.get("reference"):
        yield required(f"{path}.reference")


def projected(source: Obj, path: str) -> Iterator[Cause]:
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for i, projection in enumerate(entries(source.get("sources"))):
        here = f"{path}.sources[{i}]"
        for name in ("secret", "configMap"):
            if (part := projection.get(name)) is None:
                continue
            if not part.get("name"):
                yield required(f"{here}.{name}.name")
            yield from _keys(part, f"{here}.{name}")
            for item in entries(part.get("items")):
                yield from _not_taken(item.get("path"), part.get("name") or "", path, taken)
        for item in entries((projection.get("downwardAPI") or {}).get("items")):
            yield from _downward_file(item, f"{here}.downwardAPI")
            yield from _not_taken(item.get("path"), item.get("path"), path, taken)
        if (part := projection.get("serviceAccountToken")) is not None:
            yield from _token(part, f"{here}.serviceAccountToken", path)
        if sum(part is not None for part in projection.values()) > 1:
            yield forbidden(here, "may not specify more than 1 volume type per source")


def _not_taken(file: Any, culprit: Any, path: str, taken: set[str]) -> Iterable[Cause]:
    """Two sources may not write the same file of one volume."""
    if not file:
        return ()
    if file in taken:
        return (invalid(path, culprit, "conflicting duplicate paths"),)
    taken.add(file)
    return ()


def _token(part: Obj, here: str, path: str) -> Iterator[Cause]:
    seconds = part.get("expirationSeconds") or 0
    if seconds < 600:
        yield invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > 2**32:
        yield invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if not part.get("path"):
        yield required(f"{path}.path")
    else:
        yield from file_path(part["path"], f"{path}.path")


def ephemeral_claim_name(volume: Obj, pod_name: str, path: str) -> Iterator[Cause]:
    """A claim made for the pod carries both names, and the two together must still be one."""
    name = f"{pod_name}-{volume['name']}"
    for problem in names.dns_subdomain(name):
        yield invalid(f"{path}.name", volume["name"], f'PVC name "{name}": {problem}')


_RULES: dict[str, Callable[[Obj, str], Iterator[Cause]]] = {
    "emptyDir": empty_dir,
    "hostPath": volume_source_rules.host_path,
    "secret": secret,
    "configMap": config_map,
    "downwardAPI": downward_api,
    "persistentVolumeClaim": claim,
    "nfs": volume_source_rules.nfs,
    "projected": projected,
    "ephemeral": ephemeral,
    "image": image,
}
