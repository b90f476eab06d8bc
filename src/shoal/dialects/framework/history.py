"""History: records that the status is about to drop, as one log line per object.

    default/pet: OnTaskRetry: ObjectSnapshot: {"apiVersion":...}

The status holds the current attempt only; earlier ones are kept in these lines. A task has no object of its own, so it
is logged as the pseudo-kind Task. Delivery is at least once: readers deduplicate by uid and resourceVersion.
"""

from __future__ import annotations

from datetime import datetime

from shoal.dialects.capabilities import Snapshot
from shoal.dialects.framework import names
from shoal.dialects.framework.compression import unpacked
from shoal.dialects.framework.pod_builder import owner
from shoal.dialects.framework.settings import FrameworkSettings
from shoal.dialects.framework.status import status_of, task_status
from shoal.engine import JobState, Notice, NoticeKind, TaskState
from shoal.kube.objects import Key, Obj, key_of, name_of, namespace_of, uid_of
from shoal.kube.times import rfc3339

ON_FRAMEWORK_RETRY = "OnFrameworkRetry"
ON_FRAMEWORK_DELETION = "OnFrameworkDeletion"
ON_TASK_RETRY = "OnTaskRetry"
ON_TASK_DELETION = "OnTaskDeletion"
ON_POD_DELETION = "OnPodDeletion"


def snapshot(
    manifest: Obj, state: JobState, notice: Notice, settings: FrameworkSettings, now: datetime
) -> Snapshot | None:
    """The snapshot for a notice of the engine, or None where its trigger is switched off.

    `state` is the job state before the step the notice belongs to.
    """
    switches, about = settings.log_object_snapshot, str(key_of(manifest))
    if notice.kind is NoticeKind.JOB_RETRY:
        if not switches.framework.on_framework_retry:
            return None
        status = status_of(name_of(manifest), notice.record)
        framework = {"apiVersion": names.API_VERSION, "kind": "Framework", **manifest, "status": status}
        return Snapshot(about, ON_FRAMEWORK_RETRY, framework)
    retried = notice.kind is NoticeKind.TASK_RETRY
    if not (switches.task.on_task_retry if retried else switches.task.on_task_deletion):
        return None
    last_version = _task(manifest, state, notice.role, notice.record)
    if not retried:
        last_version["metadata"] |= {"deletionTimestamp": rfc3339(now), "deletionGracePeriodSeconds": 0}
    return Snapshot(about, ON_TASK_RETRY if retried else ON_TASK_DELETION, last_version)


def deletion_snapshot(gone: Obj, settings: FrameworkSettings) -> Snapshot | None:
    """Return the snapshot of a Framework, or a pod of one, that no longer exists."""
    switches = settings.log_object_snapshot
    whose = owner(gone)
    if whose is not None:
        if not switches.pod.on_pod_deletion:
            return None
        return Snapshot(str(whose.key), ON_POD_DELETION, {"apiVersion": "v1", "kind": "Pod", **gone})
    if gone.get("kind", "Framework") != "Framework" or not switches.framework.on_framework_deletion:
        return None
    last_version = {"apiVersion": names.API_VERSION, "kind": "Framework", **gone}
    if gone.get("status"):
        last_version["status"] = unpacked(gone["status"])
    return Snapshot(str(key_of(gone)), ON_FRAMEWORK_DELETION, last_version)


def _task(manifest: Obj, state: JobState, role: str, task: TaskState) -> Obj:
    framework, key = name_of(manifest), Key(namespace_of(manifest), name_of(manifest))
    run, role_state = state.run, state.role(role)
    roles = (manifest.get("spec") or {}).get("taskRoles") or ()
    labels = {names.FRAMEWORK_NAME: framework, names.TASKROLE_NAME: role, names.TASK_INDEX: str(task.index)}
    annotations = {
        names.FRAMEWORK_NAMESPACE: key.namespace,
        **labels,
        names.CONFIGMAP_NAME: names.run_owner_name(framework),
        names.FRAMEWORK_UID: uid_of(manifest),
        names.FRAMEWORK_ATTEMPT_ID: str(run.number),
        names.FRAMEWORK_ATTEMPT_INSTANCE_UID: names.instance_uid(run.number, run.run_owner) or "",
        names.CONFIGMAP_UID: run.run_owner or "",
        names.TASKROLE_UID: role_state.instance if role_state else "",
    }
    metadata: Obj = {
        "name": names.pod_name(framework, role, task.index),
        "namespace": key.namespace,
        "uid": task.instance,
        "resourceVersion": manifest["metadata"].get("resourceVersion"),
        "generation": manifest["metadata"].get("generation"),
        "creationTimestamp": rfc3339(task.started) if task.started else None,
        "labels": labels,
        "annotations": annotations,
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Task",
        "metadata": metadata,
        "spec": next((each.get("task") for each in roles if each.get("name") == role), None),
        "status": task_status(framework, role, task),
    }
