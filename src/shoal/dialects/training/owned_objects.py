"""What a training job owns besides its pods: a headless Service per replica, of the pod's name, and PodGroups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from shoal.dialects.capabilities import ChildKind, Gangs, ObservedChild, OwnedObjects, RequiredObject
from shoal.dialects.gang_backends import volcano
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.dialects.indexed_dialect import INDEX, ROLE
from shoal.engine import Apply, GroupRef, ObservedObject, OwnedObjectRef, Target, TaskRef
from shoal.engine.policies import GroupPlan
from shoal.kube.counts import parse_count
from shoal.kube.kinds import SERVICE, Kind
from shoal.kube.objects import Obj, annotations_of, is_terminating, labels_of, namespace_of, uid_of
from shoal.kube.owners import is_controlled_by, owner_reference
from shoal.scheduler.api.pod_groups import ELASTIC, POD_GROUP, definitions

SERVICE_OBJECT = "service"
DIGEST = "shoal.dev/setting"  # on an owned object: which setting it shows
GANG = "shoal.dev/gang"  # on a PodGroup: the key of its gang


def group_plans(gangs: Mapping[str, GangSpec]) -> tuple[GroupPlan, ...]:
    return tuple(
        volcano.group_plan(key, gang, frozenset(part.role for part in gang.roles)) for key, gang in gangs.items()
    )


class ReplicaObjects(OwnedObjects, Gangs):
    """Implement `kind`, `labels`, `service_spec` and `specs`."""

    kind: Kind  # of the job
    group = POD_GROUP

    def __init__(self, selector: str) -> None:
        """`selector` selects whatever may belong to a job of this kind."""
        self.children = (ChildKind(POD_GROUP, selector), ChildKind(SERVICE, selector))

    @abstractmethod
    def labels(self, manifest: Obj, ref: TaskRef | None) -> dict[str, str]:
        """The labels of a task's objects; None: of those of the whole job."""

    @abstractmethod
    def service_spec(self, manifest: Obj, ref: TaskRef) -> Obj:
        """The Service of a replica, without its selector."""

    @abstractmethod
    def pod_name(self, manifest: Obj, ref: TaskRef) -> str:
        """The name of its pod."""

    def build_object(self, manifest: Obj, apply: Apply, *, is_new: bool) -> Obj:
        kind, name = self.locate_object(manifest, apply.target)
        owner = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": manifest["metadata"]}
        metadata: Obj = {
            "name": name,
            "namespace": namespace_of(manifest),
            "labels": self.labels(manifest, None),
            "annotations": {DIGEST: apply.digest},
            "ownerReferences": [owner_reference(owner)],
        }
        if isinstance(apply.target, GroupRef):
            gang = self.specs(manifest)[apply.target.key]
            metadata["annotations"][GANG] = apply.target.key
            if gang.is_elastic or not is_new:
                metadata["annotations"][ELASTIC] = "true" if gang.is_elastic else None
            spec = volcano.spec(gang)
        else:
            assert isinstance(apply.target, OwnedObjectRef)
            ref = TaskRef(apply.target.role, apply.target.index)
            own = self.labels(manifest, ref)
            metadata["labels"] = {**own, ROLE: ref.role, INDEX: str(ref.index)}
            spec = {**self.service_spec(manifest, ref), "selector": own}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}

    def locate_object(self, manifest: Obj, target: Target) -> tuple[Kind, str]:
        if isinstance(target, GroupRef):
            return POD_GROUP, self.specs(manifest)[target.key].name
        assert isinstance(target, OwnedObjectRef)
        return SERVICE, self.pod_name(manifest, TaskRef(target.role, target.index))

    def observe_child(self, obj: Obj, manifest: Obj) -> ObservedChild | None:
        if not is_controlled_by(obj, manifest):
            return None
        notes, labels = annotations_of(obj), labels_of(obj)
        if GANG in notes:
            return GroupRef(notes[GANG]), volcano.observe_group(obj, notes[GANG], notes.get(DIGEST, ""))
        index = parse_count(labels.get(INDEX))
        if ROLE not in labels or index is None:
            return None
        seen_object = ObservedObject(uid_of(obj), notes.get(DIGEST, ""), leaving=is_terminating(obj))
        return OwnedObjectRef(SERVICE_OBJECT, labels[ROLE], index), seen_object

    def describe_failure(self, target: Target) -> str:
        return "FailedCreatePodGroup" if isinstance(target, GroupRef) else "FailedCreateService"

    def required_objects(self, manifest: Obj) -> tuple[RequiredObject, ...]:
        del manifest
        return ()

    def definitions(self) -> tuple[Obj, ...]:
        return definitions()

    def pending_reason(self, group: Obj) -> str:
        return volcano.gang_status(group).message.rstrip(".")
