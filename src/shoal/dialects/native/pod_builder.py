"""Pods of an object with one template: the server generates the end of the name, a reference names the owner.

The slot a pod was created for is recorded in an annotation. It is no identity, since another pod takes the slot when
this one has ended; it keeps two pods created for one slot from being matched to two members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from shoal.dialects.dialect import Owner
from shoal.engine import Create, ObservedPod, TaskRef, read_pod
from shoal.kube.counts import parse_count
from shoal.kube.defaults import apply_defaults
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, annotations_of, name_of, namespace_of, uid_of
from shoal.kube.owners import controller_of
from shoal.kube.patching.json_values import clone
from shoal.kube.schema_errors import find_unknown_fields
from shoal.kube.schemas import schema_of
from shoal.kube.validation import validate_create

SLOT = "shoal.dev/slot"
_STAND_IN = {"uid": "00000000-0000-0000-0000-000000000000", "namespace": "default"}


def pod_from(manifest: Obj, kind: Kind, create: Create, *, infix: str = "", **more: Mapping[str, str]) -> Obj:
    """A pod of the template; `more` are labels and annotations beside those of the template."""
    ref = create.target
    assert isinstance(ref, TaskRef)
    template: Obj = msgspec.json.decode(msgspec.json.encode(manifest["spec"]["template"]))
    written = template.get("metadata") or {}
    annotations = {**(written.get("annotations") or {}), **more.get("annotations", {}), SLOT: str(ref.index)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{name_of(manifest)}-{infix}",
            "namespace": namespace_of(manifest),
            "labels": {**(written.get("labels") or {}), **more.get("labels", {})},
            "annotations": annotations,
            "ownerReferences": [reference(manifest, kind)],
        },
        "spec": template.get("spec") or {},
    }


def reference(manifest: Obj, kind: Kind) -> Obj:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": name_of(manifest),
        "uid": uid_of(manifest),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def display_name(role: str, pod: Obj) -> str:
    """By the letters that the server drew."""
    return f"{role}-{name_of(pod).rpartition('-')[2]}"


def owner_of(kind: Kind, obj: Obj) -> Owner | None:
    """Whose pod it is, where its owner is of that kind."""
    controller = controller_of(obj)
    if controller is None or (controller.get("apiVersion"), controller.get("kind")) != (kind.api_version, kind.kind):
        return None
    return Owner(Key(namespace_of(obj), str(controller.get("name"))), str(controller.get("uid")))


def observe_pod(kind: Kind, role: str, pod: Obj, manifest: Obj, finalizer: str = "") -> ObservedPod | None:
    """The pod as the engine sees it beside the object that made it."""
    mine = owner_of(kind, pod)
    if mine is None or mine.uid != uid_of(manifest):
        return None
    return read_pod(pod, role=role, index=parse_count(annotations_of(pod).get(SLOT)), finalizer=finalizer)


# --- what people write ---------------------------------------------------------------------------------------------


def default(kind: Kind, manifest: Obj) -> Obj:
    filled: Obj = clone(manifest)
    apply_defaults(kind, filled)
    return filled


def template_errors(kind: Kind, manifest: Obj, complete: Callable[[Obj], Obj] = lambda filled: filled) -> list[Cause]:
    """Every mistake; `complete` adds what a server writes into a new object by itself."""
    filled = default(kind, manifest)
    filled["metadata"] = {**_STAND_IN, **(filled.get("metadata") or {})}
    return validate_create(kind, complete(filled))


def unknown_fields(kind: Kind, manifest: Obj) -> list[str]:
    return list(find_unknown_fields(schema_of(kind), manifest))
