"""ReplicaSet, Deployment and Job: whose pods are whose. A Job's selector is its own uid unless somebody chose one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cluster.strategies.base import Generation, Rules, carry
from shoal.kube.objects import Obj

if TYPE_CHECKING:
    from shoal.cluster.registry import Core

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_OLD_UID, _OLD_NAME = "controller-uid", "job-name"  # what programs of before select by


def _replica_set_begins(core: Core, replica_set: Obj) -> None:
    del core
    replica_set["status"] = {"replicas": 0}


def _deployment_begins(core: Core, deployment: Obj) -> None:
    del core
    deployment["status"] = {}


def _deployment_keeps_beside_status(core: Core, new: Obj, old: Obj) -> None:
    """The status subresource takes annotations, where the controller stores the revision, and no labels."""
    del core
    carry(new, old, "spec")
    carry(new["metadata"], old["metadata"], "labels")


def _job_begins(core: Core, job: Obj) -> None:
    del core
    job["status"] = {}
    spec, meta = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    uid, name = meta["uid"], meta.get("name") or ""
    template = spec["template"].setdefault("metadata", {})
    own = {CONTROLLER_UID: uid, JOB_NAME: name, _OLD_UID: uid, _OLD_NAME: name}
    if template.get("labels") and meta.get("labels") == template["labels"]:
        meta["labels"] = {**meta["labels"], **own}  # it goes by the labels of its pods
    template["labels"] = {**(template.get("labels") or {}), **own}
    if not spec.get("selector"):
        spec["selector"] = {"matchLabels": {CONTROLLER_UID: uid}}


REPLICA_SET = Rules(Generation.SPEC, begin=_replica_set_begins)
# Annotations are copied to the ReplicaSets, so a change of them is work for the controller as one of the spec.
DEPLOYMENT = Rules(
    Generation.SPEC_AND_ANNOTATIONS, begin=_deployment_begins, keep_beside_status=_deployment_keeps_beside_status
)
JOB = Rules(Generation.SPEC, begin=_job_begins)
