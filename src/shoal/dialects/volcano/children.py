"""What a Job owns besides its pods: PodGroups, the objects of its plugins, and claims; and the claims it waits for.

Every child carries the digest of its content, so that a change of the spec is detected, and a label and a controller
reference that identify its owner. Objects of other owners are never taken over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from shoal.dialects.capabilities import ChildKind, ObservedChild, OwnedObjects, RequiredObject
from shoal.dialects.capabilities import Gangs as GangCapability
from shoal.dialects.children import content_digest
from shoal.dialects.gang_backends import volcano
from shoal.dialects.volcano import names
from shoal.dialects.volcano.plugins import ray, requested_plugins, ssh, svc
from shoal.dialects.volcano.plugins.pods import PluginJob
from shoal.dialects.volcano.pod_groups import Gangs, gangs
from shoal.dialects.volcano.spec import JobSpec, seconds_of, spec_of
from shoal.engine import Apply, GroupRef, ObservedObject, OwnedObjectRef, Target
from shoal.engine.policies import GroupPlan, Lifetime, OwnedObject
from shoal.kube.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, SECRET, SERVICE, Kind
from shoal.kube.objects import Obj, annotations_of, is_terminating, labels_of, name_of, namespace_of, uid_of
from shoal.kube.owners import is_controlled_by
from shoal.kube.patching.json_values import clone
from shoal.scheduler.api.pod_groups import ELASTIC, POD_GROUP
from shoal.scheduler.api.pod_groups import definitions as gang_definitions

PART = "shoal.dev/part"  # on an owned object: which one it is
SERVICE_PART, HOSTS, KEYS, HEAD = "svc", "hosts", "ssh", "ray-head"
_KINDS = {SERVICE_PART: SERVICE, HOSTS: CONFIG_MAP, KEYS: SECRET, HEAD: SERVICE}
_CLAIM = "claim-"
_OURS = names.JOB_NAME  # as a selector: whatever has the label


# --- which there are -----------------------------------------------------------------------------------------------


def group_plans(spec: JobSpec) -> tuple[GroupPlan, ...]:
    wanted = gangs(spec, job="", uid="")
    return tuple(
        volcano.group_plan(key, gang, frozenset(part.role for part in gang.roles) if len(wanted) > 1 else frozenset())
        for key, gang in wanted.items()
    )


def owned_objects(spec: JobSpec, scene: PluginJob) -> tuple[OwnedObject, ...]:
    """Plugin objects exist until the job ends, claims until the job is deleted."""
    plugin_of = {SERVICE_PART: "svc", HOSTS: "svc", KEYS: "ssh", HEAD: "ray"}
    parts = [part for part in _KINDS if plugin_of[part] in spec.plugins]
    made = [
        OwnedObject(part, lifetime=Lifetime.UNTIL_END, digest=content_digest(_content(part, scene, is_new=False)))
        for part in parts
    ]
    made += [
        OwnedObject(f"{_CLAIM}{position}", lifetime=Lifetime.UNTIL_DELETED, digest="claim", write_back=True)
        for position, volume in enumerate(spec.volumes)
        if volume.volume_claim is not None
    ]
    return tuple(made)


# --- how they look -------------------------------------------------------------------------------------------------


def build_object(manifest: Obj, apply: Apply, *, is_new: bool) -> Obj:
    """A group or owned object; for one that exists, the fields to change."""
    spec, target = spec_of(manifest), apply.target
    kind, name = locate_object(manifest, target)
    metadata: Obj = {
        "name": name,
        "namespace": namespace_of(manifest),
        "labels": {names.JOB_NAME: name_of(manifest), names.JOB_NAMESPACE: namespace_of(manifest)},
        "annotations": {names.DIGEST: apply.digest},
        "ownerReferences": [reference(manifest)],
    }
    if isinstance(target, GroupRef):
        metadata["labels"] = {**labels_of(manifest), **metadata["labels"]}
        # Bookkeeping annotations of Shoal and of kubectl do not describe a group.
        private = ("shoal.dev/", "kubectl.kubernetes.io/")
        copied = {k: v for k, v in annotations_of(manifest).items() if not k.startswith(private)}
        gang = gangs(spec, job="", uid="")[target.key]
        metadata["annotations"] = {**copied, **metadata["annotations"], names.STAGE: target.key}
        if gang.is_elastic or not is_new:
            metadata["annotations"][ELASTIC] = "true" if gang.is_elastic else None
        content: Obj = {"spec": volcano.spec(gang)}
    else:
        assert isinstance(target, OwnedObjectRef)
        metadata["annotations"][PART] = target.name
        if target.name.startswith(_CLAIM):
            wanted = spec.volumes[int(target.name.removeprefix(_CLAIM))].volume_claim
            content = {"spec": clone(wanted)} if is_new else {}
        else:
            content = _content(target.name, plugin_job_of(manifest, spec), is_new=is_new)
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}


def _content(part: str, scene: PluginJob, *, is_new: bool) -> Obj:
    flags = requested_plugins(scene.spec)
    if part == SERVICE_PART:
        return svc.service(scene, flags["svc"])
    if part == HOSTS:
        return svc.config(scene)
    if part == HEAD:
        return ray.service(scene, flags["ray"])
    return ssh.secret(scene, flags["ssh"], is_new=is_new)


def plugin_job_of(manifest: Obj, spec: JobSpec) -> PluginJob:
    return PluginJob(name_of(manifest), namespace_of(manifest), spec)


def reference(manifest: Obj) -> Obj:
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Job",
        "name": name_of(manifest),
        "uid": uid_of(manifest),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def locate_object(manifest: Obj, target: Target) -> tuple[Kind, str]:
    job = name_of(manifest)
    if isinstance(target, GroupRef):
        return POD_GROUP, names.group_name(job, uid_of(manifest), target.key)
    assert isinstance(target, OwnedObjectRef)
    part = target.name
    if part.startswith(_CLAIM):
        number = int(part.removeprefix(_CLAIM))
        return PERSISTENT_VOLUME_CLAIM, names.claim_name(job, uid_of(manifest), number)
    named = {SERVICE_PART: job, HOSTS: svc.config_name(job), KEYS: ssh.secret_name(job), HEAD: ray.service_name(job)}
    return _KINDS[part], named[part]


def describe_failure(target: Target) -> str:
    if isinstance(target, GroupRef):
        return "PodGroupError"
    claims = isinstance(target, OwnedObjectRef) and target.name.startswith(_CLAIM)
    return "PVCError" if claims else "PluginError"


# --- recognising ---------------------------------------------------------------------------------------------------


def observe_child(obj: Obj, manifest: Obj) -> ObservedChild | None:
    """A child of the job; None where the job does not control it, or it is no group or owned object."""
    if not is_controlled_by(obj, manifest):
        return None
    notes = annotations_of(obj)
    digest = notes.get(names.DIGEST, "")
    if names.STAGE in notes:
        key = notes[names.STAGE]
        return GroupRef(key), volcano.observe_group(obj, key, digest)
    if PART in notes:
        return OwnedObjectRef(notes[PART]), ObservedObject(uid_of(obj), digest, leaving=is_terminating(obj))
    return None


def pending_reason(group: Obj) -> str:
    """Return why a group is not admitted, as its scheduler reports it."""
    return volcano.gang_status(group).message.rstrip(".")


def gangs_of(manifest: Obj) -> Gangs:
    """What the stages of a Job need placed together, for the gang scheduler.

    How long a gang may wait is an annotation that Volcano reads too.
    """
    notes = annotations_of(manifest)
    patience = next((notes[name] for name in names.SLA_WAITING if name in notes), "")
    try:
        seconds = math.ceil(seconds_of(patience)) if patience else None
    except ValueError:
        seconds = None
    labels = labels_of(manifest)
    job, uid = name_of(manifest), uid_of(manifest)
    return gangs(spec_of(manifest), job=job, uid=uid, schedule_timeout_seconds=seconds, labels=labels)


def required_objects(manifest: Obj) -> tuple[RequiredObject, ...]:
    """Claims that another client has to create."""
    return tuple(
        RequiredObject(PERSISTENT_VOLUME_CLAIM, name, claim_key(name)) for name in claims_of_others(spec_of(manifest))
    )


def claims_of_others(spec: JobSpec) -> list[str]:
    found = [volume.volume_claim_name for volume in spec.volumes if volume.volume_claim is None]
    return list(dict.fromkeys(found))


def claim_key(name: str) -> str:
    return f"claim:{name}"


def controlled(spec: JobSpec, job: str, uid: str) -> Mapping[str, str]:
    """What a status lists as controlled: plugins, and claims."""
    found = {f"plugin-{name}": name for name in spec.plugins}
    for number, volume in enumerate(spec.volumes):
        name = volume.volume_claim_name if volume.volume_claim is None else names.claim_name(job, uid, number)
        found[f"volume-pvc-{name}"] = name
    return found


class JobChildren(OwnedObjects):
    children = (
        ChildKind(POD_GROUP, _OURS),
        ChildKind(SERVICE, _OURS),
        ChildKind(CONFIG_MAP, _OURS),
        ChildKind(SECRET, _OURS),
        ChildKind(PERSISTENT_VOLUME_CLAIM),
    )

    def build_object(self, manifest: Obj, apply: Apply, *, is_new: bool) -> Obj:
        return build_object(manifest, apply, is_new=is_new)

    def locate_object(self, manifest: Obj, target: Target) -> tuple[Kind, str]:
        return locate_object(manifest, target)

    def observe_child(self, obj: Obj, manifest: Obj) -> ObservedChild | None:
        return observe_child(obj, manifest)

    def describe_failure(self, target: Target) -> str:
        return describe_failure(target)

    def required_objects(self, manifest: Obj) -> tuple[RequiredObject, ...]:
        return required_objects(manifest)

    def definitions(self) -> tuple[Obj, ...]:
        return gang_definitions()


class JobGangs(GangCapability):
    group = POD_GROUP

    def specs(self, manifest: Obj) -> Gangs:
        return gangs_of(manifest)

    def pending_reason(self, group: Obj) -> str:
        return pending_reason(group)
