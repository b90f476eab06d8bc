"""Dry-run validation of a Framework's pods: the errors an API server will return when they are created.

The dialect admits such a manifest: its tasks fail when their pods are rejected, and the policies decide what follows.
This check reports it beforehand. Each template is validated as the pod of the role's first task, without the names and
variables a pod gets from the controller, so that every path refers to a field of the manifest. Templates with values of
a wrong type are validated without those values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.dialects.framework import names, template_fields
from shoal.dialects.framework.pod_builder import filled
from shoal.dialects.framework.spec import NAME, roles_of
from shoal.kube.defaults import apply_defaults
from shoal.kube.errors import Cause
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.kube.schema import drop_unknown
from shoal.kube.schema_errors import find_mismatches, is_at_or_below, path_of, remove_mismatches
from shoal.kube.schemas import named
from shoal.kube.validation import validate_create
from shoal.kube.validation.errors import required


def preview_pods(manifest: Obj) -> list[Cause]:
    """Every mistake in the pod templates that `admit` leaves to the moment a pod is made. Bears with any manifest."""
    found: list[Cause] = []
    for index, role in roles_of(manifest):
        task, path = role.get("task"), f"spec.taskRoles[{index}].task.pod"
        pod = task.get("pod") if isinstance(task, dict) else None
        if not pod and isinstance(task, dict | None):
            found.append(required(path, "the template of the role's pods"))
        elif isinstance(pod, dict):
            found += _pod_errors(pod, path, _stamps(manifest, role))
    return found


def _pod_errors(template: Obj, path: str, stamps: dict[str, str]) -> Iterator[Cause]:
    schema = named("PodTemplateSpec")
    proper = template_fields.canonical(template)
    wrong = list(find_mismatches(schema, proper))
    reported_paths = [path_of("", misfit.steps) for misfit in wrong]
    sound = drop_unknown(schema, filled(remove_mismatches(proper, wrong) or {}, stamps))
    metadata = {
        **template_fields.metadata_of(sound),
        "name": stamps[names.POD_NAME],
        "namespace": stamps[names.FRAMEWORK_NAMESPACE],
        "uid": "u",
        "creationTimestamp": "2020-01-01T00:00:00Z",
    }
    pod: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": sound.get("spec") or {}}
    apply_defaults(POD, pod)
    for cause in validate_create(POD, pod):
        if not is_at_or_below(cause.field, reported_paths):
            yield Cause(cause.reason, cause.message, f"{path}.{cause.field}")


def _stamps(manifest: Obj, role: Obj) -> dict[str, str]:
    """Values for placeholders; a bad name is reported at its own field, not at every use."""
    metadata = manifest.get("metadata") or {}
    framework, task_role = _valid_name(metadata.get("name"), "job"), _valid_name(role.get("name"), "role")
    namespace = metadata.get("namespace")
    values = (
        namespace if isinstance(namespace, str) and namespace else "default",
        framework,
        task_role,
        "0",
        names.run_owner_name(framework),
        names.pod_name(framework, task_role, 0),
    )
    return dict(zip(names.PLACEHOLDERS, values, strict=True))


def _valid_name(name: Any, otherwise: str) -> str:
    return name if isinstance(name, str) and NAME.fullmatch(name) else otherwise
