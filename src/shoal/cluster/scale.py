"""The scale subresource: a small view of any kind that declares where its replicas are.

A Scale is made from the object, changed like any other object, and its replicas are written back to the place
the kind names; everything else of the object stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.cluster.client import PatchType
from shoal.cluster.patch import Patch, apply_patch
from shoal.cluster.registry import Core, Resource
from shoal.cluster.types import SCALE, Stored, WriteOptions, WriteResult
from shoal.cluster.write import Writer
from shoal.kube.errors import ApiError, Cause, bad_request, conflict, invalid, no_such_path
from shoal.kube.kinds import Kind, Scale
from shoal.kube.objects import Key, Obj, at_path, uid_of
from shoal.kube.patching import merge_patch
from shoal.kube.selectors import from_label_selector

_METADATA_FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Scaler:
    def __init__(self, core: Core, writer: Writer) -> None:
        self._core = core
        self._writer = writer

    def get(self, resource: Resource, key: Key) -> Stored:
        return _stored_scale(resource, self._core.stored(resource, key))

    def update(self, resource: Resource, key: Key, scale: Obj, options: WriteOptions) -> WriteResult:
        if scale.get("kind", "Scale") != "Scale":
            raise bad_request(f"wrong object passed to Scale update: {scale.get('kind')}")
        name = (scale.get("metadata") or {}).get("name")
        if name != key.name:
            raise bad_request(f"the name of the object ({name or ''}) does not match the name on the URL ({key.name})")

        def mutate(live: Obj) -> Obj:
            uid = uid_of(scale)
            if uid and uid != uid_of(live):
                raise conflict(SCALE, live["metadata"]["name"], f"uid mismatch: {uid} is not {uid_of(live)}")
            return scale

        return self._write(resource, key, mutate, options)

    def patch(
        self, resource: Resource, key: Key, patch: Patch, patch_type: PatchType, options: WriteOptions
    ) -> WriteResult:
        if patch_type is PatchType.APPLY:
            if not isinstance(patch, dict):
                raise bad_request("error decoding YAML: an applied configuration is one object")
            patch, patch_type = dict(patch), PatchType.MERGE  # the replicas are the only field that is kept
        # A Scale has no lists, so a strategic patch of it is a merge patch.
        plain = PatchType.MERGE if patch_type is PatchType.STRATEGIC else patch_type
        return self._write(resource, key, lambda live: apply_patch(resource, live, patch, plain), options)

    def _write(self, resource: Resource, key: Key, mutate: Callable[[Obj], Obj], options: WriteOptions) -> WriteResult:
        scale_paths = _scale_paths(resource.kind)
        stored = self._core.stored(resource, key)
        scale = mutate(scale_from(resource, resource.decode(stored)))
        replicas = at_path(scale, "spec", "replicas", default=0)
        if isinstance(replicas, bool) or not isinstance(replicas, int):
            raise _invalid(key, f"Invalid value: {replicas!r}: must be a whole number")
        if replicas < 0:
            raise _invalid(key, f"Invalid value: {replicas}: must be greater than or equal to 0")
        version = (scale.get("metadata") or {}).get("resourceVersion")

        def change(live: Obj) -> Obj:
            patch: Obj | int = replicas
            for step in reversed(_steps(scale_paths.spec_replicas)):
                patch = {step: patch}
            changed: Obj = merge_patch(live, patch)
            if version:
                changed["metadata"] = {**changed["metadata"], "resourceVersion": version}
            return changed

        written = self._writer.change(resource, key, change, options, "scale")
        return WriteResult(_stored_scale(resource, written.stored), warnings=written.warnings)


def _scale_paths(kind: Kind) -> Scale:
    if kind.scale is None:
        raise no_such_path()
    return kind.scale


def scale_from(resource: Resource, obj: Obj) -> Obj:
    """The Scale of an object."""
    scale_paths = _scale_paths(resource.kind)
    status: Obj = {"replicas": _number(obj, scale_paths.status_replicas)}
    if scale_paths.label_selector and (selector := at_path(obj, *_steps(scale_paths.label_selector))):
        status["selector"] = selector if isinstance(selector, str) else str(from_label_selector(selector))
    return {
        "apiVersion": SCALE.api_version,
        "kind": SCALE.kind,
        "metadata": {name: obj["metadata"][name] for name in _METADATA_FIELDS if name in obj["metadata"]},
        "spec": {"replicas": _number(obj, scale_paths.spec_replicas)},
        "status": status,
    }


def _stored_scale(resource: Resource, stored: Stored) -> Stored:
    raw = msgspec.json.encode(scale_from(resource, resource.decode(stored)))
    return Stored(SCALE, stored.key, stored.uid, stored.revision, raw, {}, {}, stored.created_revision)


def _invalid(key: Key, message: str) -> ApiError:
    return invalid(SCALE, key.name, [Cause("FieldValueInvalid", message, "spec.replicas")])


def _steps(path: str) -> list[str]:
    return path.lstrip(".").split(".")


def _number(obj: Obj, path: str) -> int:
    value = at_path(obj, *_steps(path), default=0)
    return value if isinstance(value, int) else 0
