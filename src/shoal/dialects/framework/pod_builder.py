"""How a Framework's objects look: the ConfigMap of an attempt, the pods of its tasks, and who an object belongs to.

Framework owns ConfigMap owns pods; there is no other chain. The ConfigMap is born with the foreground finalizer, so
that it outlives its pods however it is deleted. A pod carries its whole identity three times: as annotations for
programs, as labels for selectors, as environment for the processes inside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from shoal.dialects.dialect import Owner
from shoal.dialects.framework import names, template_fields
from shoal.engine import Create, ObservedPod, ObservedRunOwner, TaskRef, read_pod
from shoal.kube.counts import parse_count
from shoal.kube.objects import Key, Obj, annotations_of, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.owners import controller_of, is_controlled_by

_PLACEHOLDER = re.compile("{{(" + "|".join(names.PLACEHOLDERS) + ")}}")
_TASK_NAME = re.compile(r"([a-z0-9]+)-(0|[1-9]\d*)", re.ASCII)


# --- dressing ------------------------------------------------------------------------------------------------------


def build_run_owner(manifest: Obj, create: Create) -> Obj:
    """Build the ConfigMap that represents an attempt of the whole Framework. It holds no data."""
    framework = name_of(manifest)
    stamps = {
        names.FRAMEWORK_NAMESPACE: namespace_of(manifest),
        names.FRAMEWORK_NAME: framework,
        names.CONFIGMAP_NAME: names.run_owner_name(framework),
        names.FRAMEWORK_UID: uid_of(manifest),
        names.FRAMEWORK_ATTEMPT_ID: str(create.build_context.run),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.run_owner_name(framework),
            "namespace": namespace_of(manifest),
            "labels": {names.FRAMEWORK_NAME: framework},
            "annotations": stamps,
            "ownerReferences": [_reference(names.API_VERSION, "Framework", framework, uid_of(manifest))],
            "finalizers": [names.FOREGROUND],
        },
    }


def build_pod(manifest: Obj, create: Create) -> Obj:
    """The pod of one task attempt, from the template of its role."""
    task = create.target
    assert isinstance(task, TaskRef)
    stamps = _stamps(manifest, task, create)
    pod = filled(_template(manifest, task.role), stamps)
    spec, environment = dict(pod.get("spec") or {}), _environment(stamps)
    for group in ("initContainers", "containers"):
        if spec.get(group):
            spec[group] = [_built_container(container, environment) for container in spec[group]]
    run_owner = _reference("v1", "ConfigMap", stamps[names.CONFIGMAP_NAME], create.build_context.run_owner)
    metadata = template_fields.metadata_of(pod)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": stamps[names.POD_NAME],
            "namespace": stamps[names.FRAMEWORK_NAMESPACE],
            "labels": {**metadata.get("labels", {}), **{key: stamps[key] for key in names.POD_LABELS}},
            "annotations": {**metadata.get("annotations", {}), **stamps},
            "ownerReferences": [*metadata.get("ownerReferences", ()), run_owner],
        },
        "spec": spec,
    }


def pod_name(manifest: Obj, task: TaskRef) -> str:
    return names.pod_name(name_of(manifest), task.role, task.index)


def _reference(api_version: str, kind: str, name: str, uid: str) -> Obj:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _stamps(manifest: Obj, task: TaskRef, create: Create) -> dict[str, str]:
    framework, build_context = name_of(manifest), create.build_context
    values = (
        namespace_of(manifest),
        framework,
        task.role,
        str(task.index),
        names.run_owner_name(framework),
        names.pod_name(framework, task.role, task.index),
        uid_of(manifest),
        str(build_context.run),
        names.instance_uid(build_context.run, build_context.run_owner) or "",
        build_context.run_owner,
        create.role_instance,
        create.instance,
        str(create.attempt),
    )
    return dict(zip(names.STAMPS, values, strict=True))


def _template(manifest: Obj, role: str) -> Obj:
    for written in manifest["spec"].get("taskRoles") or ():
        if written.get("name") == role:
            return template_fields.canonical((written.get("task") or {}).get("pod") or {})
    raise LookupError(f"Framework {name_of(manifest)} has no role {role}: a pod is made for roles of its spec only")


def filled(template: Obj, stamps: Mapping[str, str]) -> Obj:
    """A copy with the placeholders resolved in every text, keys included; any other {{...}} stays."""
    text = msgspec.json.encode(template).decode()
    if "{{FC_" in text:
        text = _PLACEHOLDER.sub(lambda found: stamps[found[1]], text)
    made: Obj = msgspec.json.decode(text)
    return made


def _environment(stamps: Mapping[str, str]) -> list[Obj]:
    """In this order: the last one is put together by the runtime from the one before it."""
    return [
        *({"name": name, "value": stamps[name]} for name in names.STAMPS),
        {"name": names.POD_UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {
            "name": names.TASK_ATTEMPT_INSTANCE_UID,
            "value": f"{stamps[names.TASK_ATTEMPT_ID]}_$({names.POD_UID})",
        },
    ]


def _built_container(container: Obj, environment: list[Obj]) -> Obj:
    """Prepend the task's identity to the environment, and keep the end of the log when the container fails."""
    if not isinstance(container, dict):
        return container  # the API server will say what is wrong with it
    made = {**container, "env": [*environment, *(container.get("env") or ())]}
    if not container.get("terminationMessagePolicy"):
        made["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return made


# --- recognising ---------------------------------------------------------------------------------------------------


def owner(obj: Obj) -> Owner | None:
    """Return the Framework that a pod or a ConfigMap names as its owner, if its controller proves it."""
    stamps, controller = annotations_of(obj), controller_of(obj)
    name, uid = stamps.get(names.FRAMEWORK_NAME), stamps.get(names.FRAMEWORK_UID)
    if not name or not uid or controller is None:
        return None
    proof = stamps.get(names.CONFIGMAP_UID) if controller.get("kind") == "ConfigMap" else uid
    if controller.get("uid") != proof:
        return None
    return Owner(Key(namespace_of(obj), name), uid)


def observe_pod(pod: Obj, manifest: Obj) -> ObservedPod | None:
    """Return the pod as the engine observes it for this Framework; None where they are unrelated.

    A foreign pod with the name of one of our tasks is returned too: it is not ours, and blocks the name.
    """
    mine = owner(pod)
    stamps = annotations_of(pod)
    if mine is not None and mine.uid == uid_of(manifest):
        return read_pod(
            pod,
            role=stamps.get(names.TASKROLE_NAME, ""),
            index=_number(stamps.get(names.TASK_INDEX)),
            run=_number(stamps.get(names.FRAMEWORK_ATTEMPT_ID)),
            attempt=_number(stamps.get(names.TASK_ATTEMPT_ID)),
            instance=stamps.get(names.TASK_UID, ""),
        )
    name, prefix = name_of(pod), f"{name_of(manifest)}-"
    place = _TASK_NAME.fullmatch(name.removeprefix(prefix)) if name.startswith(prefix) else None
    return None if place is None else read_pod(pod, role=place[1], index=int(place[2]), owned=False)


def run_owner(found: Obj, manifest: Obj) -> ObservedRunOwner:
    """The ConfigMap found under the run owner's name."""
    stamp = annotations_of(found).get(names.FRAMEWORK_ATTEMPT_ID)
    run = _number(stamp) if stamp is not None else None
    return ObservedRunOwner(
        uid_of(found), owned=is_controlled_by(found, manifest), leaving=is_terminating(found), run=run
    )


def run_owner_name(manifest: Obj) -> str:
    return names.run_owner_name(name_of(manifest))


def _number(text: str | None) -> int:
    return parse_count(text) or 0
