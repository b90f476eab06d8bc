"""Patches: from a stored object and a client's changes to the object they mean.

Four languages of patch, one write path: the result passes the same rules as a PUT. Server-side apply alone may
create, and alone brings its own account of which manager owns which field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shoal.cluster import object_validation
from shoal.cluster.client import PatchType
from shoal.cluster.registry import Core, Resource
from shoal.cluster.types import WriteOptions, WriteResult
from shoal.cluster.write import Writer
from shoal.kube import apply
from shoal.kube.errors import bad_request, conflict, not_found, unsupported_media_type
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj
from shoal.kube.patching import json_patch, merge_patch, strategic_merge
from shoal.kube.schemas import schema_of

Patch = Obj | Sequence[Obj]

_STATUS_FIELDS = ("apiVersion", "kind", "metadata", "status")


class Patcher:
    def __init__(self, core: Core, writer: Writer) -> None:
        self._core = core
        self._writer = writer

    def patch(
        self, resource: Resource, key: Key, patch: Patch, patch_type: PatchType, options: WriteOptions, subresource: str
    ) -> WriteResult:
        if patch_type is PatchType.APPLY:
            return self._apply(resource, key, patch, options, subresource)
        warnings: list[str] = []

        def mutate(live: Obj) -> Obj:
            if subresource == "status" and _patches_only_status(patch):
                # The other fields, which are most of an object, stay the very objects of the old version: they need
                # be neither copied nor looked at again.
                status_part = {name: live[name] for name in _STATUS_FIELDS if name in live}
                patched_part = apply_patch(resource, status_part, patch, patch_type)
                patched = {name: live[name] for name in live if name not in _STATUS_FIELDS or name in patched_part}
                patched.update(patched_part)
            else:
                patched = apply_patch(resource, live, patch, patch_type)
            if resource.kind.custom and subresource == "status":
                # Everything but the status stays the same objects, so that it need not be checked again.
                kept = {name: live[name] for name in live if name != "status"}
                kept["metadata"] = patched.get("metadata")
                patched = {**kept, "status": patched["status"]} if "status" in patched else kept
            decoded = object_validation.decode_object(
                resource.kind, patched, options.field_validation, patched=True, old=live
            )
            warnings.extend(decoded.warnings)
            name = decoded.obj["metadata"].get("name") or ""
            if name != key.name:
                raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
            return decoded.obj

        written = self._writer.change(resource, key, mutate, options, subresource)
        return replace(written, warnings=(*warnings, *written.warnings)) if warnings else written

    def _apply(
        self, resource: Resource, key: Key, patch: Patch, options: WriteOptions, subresource: str
    ) -> WriteResult:
        if not isinstance(patch, dict):
            raise bad_request("error decoding YAML: an applied configuration is one object")
        _check_applied(resource.kind, patch, key)
        apply.check(schema_of(resource.kind), patch)
        decoded = object_validation.decode_object(resource.kind, dict(patch), options.field_validation)
        applied = dict(decoded.obj)
        # Main resource and status are applied apart: neither owns fields of the other.
        if subresource == "status":
            applied = {name: value for name, value in applied.items() if name in _STATUS_FIELDS}
        elif "status" in resource.kind.subresources:
            applied.pop("status", None)
        applied["metadata"] = dict(applied["metadata"])
        if key not in resource.table.objects:
            if subresource:
                raise not_found(resource.kind, key.name)
            if uid := applied["metadata"].get("uid"):
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(resource.kind, key.name, why)
            obj = self._merged(resource, None, applied, options, "")
            written = self._writer.add(resource, key.namespace, obj, options, tracked=True)
        else:
            written = self._writer.change(
                resource, key,
                lambda live: self._merged(resource, live, applied, options, subresource),
                options, subresource, tracked=True,
            )  # fmt: skip
        return replace(written, warnings=(*decoded.warnings, *written.warnings)) if decoded.warnings else written

    def _merged(self, resource: Resource, live: Obj | None, applied: Obj, options: WriteOptions, sub: str) -> Obj:
        return apply.apply(
            schema_of(resource.kind), live, applied,
            manager=options.field_manager, force=options.force, now=self._core.now(), subresource=sub,
        )  # fmt: skip


def apply_patch(resource: Resource, live: Obj, patch: Patch, patch_type: PatchType) -> Obj:
    if patch_type is PatchType.JSON:
        result = json_patch(live, patch)
    elif not isinstance(patch, dict):
        raise bad_request("error decoding patch: must be an object, not a list")
    elif patch_type is PatchType.MERGE:
        result = merge_patch(live, patch)
    elif resource.kind.custom:  # its schema has no merge keys
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )
    else:
        result = strategic_merge(schema_of(resource.kind), live, patch)
    if not isinstance(result, dict):
        raise object_validation.patch_error({}, "the patch leaves no object behind")
    return result


def _patches_only_status(patch: Patch) -> bool:
    """Whether the patch is about status and metadata alone, as most patches of the status are."""
    if isinstance(patch, dict):
        return patch.keys() <= {*_STATUS_FIELDS}
    for operation in patch:
        if not isinstance(operation, dict):
            return False
        for path in (operation.get("path", "/status"), operation.get("from", "/status")):
            if not isinstance(path, str) or path.split("/", 2)[1:2] not in (["status"], ["metadata"]):
                return False
    return True


def _check_applied(kind: Kind, applied: Obj, key: Key) -> None:
    if (applied.get("apiVersion"), applied.get("kind")) != (kind.api_version, kind.kind):
        group, _, version = str(applied.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={applied.get('kind') or ''}")
    meta = applied.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    name = meta.get("name")
    if not name:
        raise bad_request(f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided")
    if name != key.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
