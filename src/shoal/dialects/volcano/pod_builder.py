"""The pods of a Job: built from their templates, and matched again.

A pod carries its identity as annotations for programs and as labels for selectors; values of the template are kept.
Plugins and volumes are applied last, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.dialects.dialect import Owner
from shoal.dialects.volcano import names, plugins
from shoal.dialects.volcano.children import plugin_job_of, reference
from shoal.dialects.volcano.plugins.pods import PluginPod, containers
from shoal.dialects.volcano.pod_groups import stage_of
from shoal.dialects.volcano.spec import JobSpec, TaskSpec, spec_of
from shoal.engine import Create, ObservedPod, TaskRef, read_pod
from shoal.kube.counts import parse_count
from shoal.kube.objects import Key, Obj, annotations_of, labels_of, name_of, namespace_of, uid_of
from shoal.kube.owners import controller_of

_COPIED_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN, names.REVOCABLE_ZONE)
_OF_TEMPLATE = ("finalizers",)  # besides labels and annotations: all else of a pod's metadata is made with it
_COPIED_LABELS = (names.PREEMPTABLE, names.COOLDOWN)


# --- dressing ------------------------------------------------------------------------------------------------------


def build_pod(manifest: Obj, create: Create) -> Obj:
    """The pod of one place in a task."""
    ref = create.target
    assert isinstance(ref, TaskRef)
    spec = spec_of(manifest)
    task = spec.task(ref.role)
    if task is None:
        raise LookupError(f"Job {name_of(manifest)} has no task {ref.role}: a pod is made for tasks of its spec only")
    template: Obj = msgspec.json.decode(msgspec.json.encode(task.template))
    written = template.get("metadata") or {}
    pod: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **{key: written[key] for key in _OF_TEMPLATE if written.get(key)},
            "name": names.pod_name(name_of(manifest), ref.role, ref.index),
            "namespace": namespace_of(manifest),
            "labels": {**(written.get("labels") or {}), **_labels(manifest, spec, task, ref.index)},
            "annotations": {**(written.get("annotations") or {}), **_annotations(manifest, spec, task, create)},
            "ownerReferences": [reference(manifest)],
        },
        "spec": template.get("spec") or {},
    }
    for name, value in (("schedulerName", spec.scheduler_name), ("priorityClassName", spec.priority_class_name)):
        if value and not pod["spec"].get(name):
            pod["spec"][name] = value
    _mount_claims(pod, manifest, spec)
    plugins.configure_pod(pod, PluginPod(plugin_job_of(manifest, spec), task, ref.index))
    return pod


def _labels(manifest: Obj, spec: JobSpec, task: TaskSpec, index: int) -> Mapping[str, str]:
    made = {
        names.TASK_INDEX: str(index),
        names.JOB_NAME: name_of(manifest),
        names.TASK_SPEC: task.name,
        names.JOB_NAMESPACE: namespace_of(manifest),
        names.QUEUE_LABEL: spec.queue,
    }
    if task.partition_policy is not None:
        made[names.PARTITION] = str(index // task.partition_policy.partition_size)
    return made | {key: labels_of(manifest)[key] for key in _COPIED_LABELS if key in labels_of(manifest)}


def _annotations(manifest: Obj, spec: JobSpec, task: TaskSpec, create: Create) -> Mapping[str, str]:
    ref, notes = create.target, annotations_of(manifest)
    assert isinstance(ref, TaskRef)
    made = {
        names.TASK_INDEX: str(ref.index),
        names.TASK_SPEC: task.name,
        names.JOB_NAME: name_of(manifest),
        names.QUEUE_LABEL: spec.queue,
        names.JOB_VERSION: str(create.build_context.run),
        names.JOB_RETRY_COUNT: str(create.build_context.charged),
        names.TEMPLATE_UID: f"{name_of(manifest)}-{task.name}",
        names.GROUP_NAME: names.group_name(name_of(manifest), uid_of(manifest), stage_of(spec, task.name)),
    }
    if task.topology_policy:
        made[names.NUMA_POLICY] = task.topology_policy
    budget = names.JDB_MIN if names.JDB_MIN in notes else names.JDB_MAX
    return made | {key: notes[key] for key in (*_COPIED_ANNOTATIONS, budget) if key in notes}


def _mount_claims(pod: Obj, manifest: Obj, spec: JobSpec) -> None:
    """Mount each volume at its path, also two of the same claim; init containers have none."""
    for number, volume in enumerate(spec.volumes):
        claim = volume.volume_claim_name
        if volume.volume_claim is not None:
            claim = names.claim_name(name_of(manifest), uid_of(manifest), number)
        name = f"volcano-volume-{number}"
        mounted = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        pod["spec"]["volumes"] = [*(pod["spec"].get("volumes") or ()), mounted]
        for container in containers(pod, init=False):
            mounts = container.get("volumeMounts") or ()
            container["volumeMounts"] = [*mounts, {"name": name, "mountPath": volume.mount_path}]


def pod_name(manifest: Obj, task: TaskRef) -> str:
    return names.pod_name(name_of(manifest), task.role, task.index)


MARK: Obj = {"metadata": {"annotations": {names.OUT_OF_SYNC: "true"}}}


# --- recognising ---------------------------------------------------------------------------------------------------


def owner(obj: Obj) -> Owner | None:
    """The Job that controls a pod or any other child."""
    controller = controller_of(obj)
    if controller is None or controller.get("kind") != "Job":
        return None
    if not str(controller.get("apiVersion") or "").startswith(f"{names.GROUP}/"):
        return None
    return Owner(Key(namespace_of(obj), str(controller.get("name"))), str(controller.get("uid")))


def observe_pod(pod: Obj, manifest: Obj) -> ObservedPod | None:
    """Return the pod as the engine observes it for this Job; None where they are unrelated.

    A foreign pod with the name of one of our tasks is returned too: it is not ours, and blocks the name.
    """
    mine, notes = owner(pod), annotations_of(pod)
    if mine is not None and mine.uid == uid_of(manifest):
        return read_pod(
            pod,
            role=notes.get(names.TASK_SPEC, ""),
            index=_number(notes.get(names.TASK_INDEX)),
            run=_number(notes.get(names.JOB_VERSION)),
            marked=notes.get(names.OUT_OF_SYNC) == "true",
        )
    place = _task_ref(name_of(pod), manifest)
    return None if place is None else read_pod(pod, role=place.role, index=place.index, owned=False)


def _task_ref(pod: str, manifest: Obj) -> TaskRef | None:
    """The task and index of a pod name: task names may contain dashes and digits themselves."""
    for task in (manifest.get("spec") or {}).get("tasks") or ():
        prefix = names.pod_name(name_of(manifest), str(task.get("name")), 0)[:-1]
        rest = pod.removeprefix(prefix)
        if pod.startswith(prefix) and rest.isascii() and rest.isdigit() and str(int(rest)) == rest:
            return TaskRef(str(task.get("name")), int(rest))
    return None


def _number(text: str | None) -> int:
    return parse_count(text) or 0
