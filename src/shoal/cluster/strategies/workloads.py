"""ReplicaSet, Deployment and Job: whose pods are whose. A Job's selector is its own uid unless one was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cluster.strategies.base import Generation, Strategy, keep_field
from shoal.kube.objects import Obj

if TYPE_CHECKING:
    from shoal.cluster.registry import Core

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY_UID, _LEGACY_NAME = "controller-uid", "job-name"  # what programs of before select by


def prepare_replica_set(core: Core, replica_set: Obj) -> None:
    del core
    replica_set["status"] = {"replicas": 0}


def prepare_deployment(core: Core, deployment: Obj) -> None:
    del core
    deployment["status"] = {}


def prepare_deployment_status_update(core: Core, new: Obj, old: Obj) -> None:
    """The status subresource takes annotations, where the controller stores the revision, and no labels."""
    del core
    keep_field(new, old, "spec")
    keep_field(new["metadata"], old["metadata"], "labels")


def prepare_job(core: Core, job: Obj) -> None:
    del core
    job["status"] = {}
    spec, meta = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    uid, name = meta["uid"], meta.get("name") or ""
    template = spec["template"].setdefault("metadata", {})
    job_labels = {CONTROLLER_UID: uid, JOB_NAME: name, _LEGACY_UID: uid, _LEGACY_NAME: name}
    if template.get("labels") and meta.get("labels") == template["labels"]:
        meta["labels"] = {**meta["labels"], **job_labels}  # it has the labels of its pods
    template["labels"] = {**(template.get("labels") or {}), **job_labels}
    if not spec.get("selector"):
        spec["selector"] = {"matchLabels": {CONTROLLER_UID: uid}}


REPLICA_SET = Strategy(Generation.SPEC, prepare_for_create=prepare_replica_set)
# Annotations are copied to the ReplicaSets, so a change of them is work for the controller as one of the spec.
DEPLOYMENT = Strategy(
    Generation.SPEC_AND_ANNOTATIONS,
    prepare_for_create=prepare_deployment,
    prepare_for_status_update=prepare_deployment_status_update,
)
JOB = Strategy(Generation.SPEC, prepare_for_create=prepare_job)
