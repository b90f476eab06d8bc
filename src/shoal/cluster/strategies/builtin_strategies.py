"""The built-in kinds whose rules fit in a few lines: all but Pod and Service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cluster.strategies.strategy import Generation, Strategy, keep_field
from shoal.kube import kinds
from shoal.kube.errors import forbidden
from shoal.kube.objects import Obj, name_of

if TYPE_CHECKING:
    from shoal.cluster.registry import Core


CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY_UID, _LEGACY_NAME = "controller-uid", "job-name"  # what programs of before select by


def prepare_namespace(core: Core, namespace: Obj) -> None:
    del core
    namespace["status"] = {"phase": "Active"}


def prepare_namespace_update(core: Core, new: Obj, old: Obj) -> None:
    """Only the finalize subresource takes away what holds a namespace."""
    del core
    keep_field(new.setdefault("spec", {}), old.get("spec") or {}, "finalizers")


def prepare_volume(core: Core, volume: Obj) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": core.now()}


def prepare_volume_status_update(core: Core, new: Obj, old: Obj) -> None:
    keep_field(new, old, "spec")
    status, before = new.setdefault("status", {}), old.get("status") or {}
    since = before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if since and not status.get("lastPhaseTransitionTime"):
            status["lastPhaseTransitionTime"] = since
    elif status.get("lastPhaseTransitionTime") in (None, since):
        status["lastPhaseTransitionTime"] = core.now()


def prepare_claim(core: Core, claim: Obj) -> None:
    del core
    claim["status"] = {"phase": "Pending"}


def prepare_budget(core: Core, budget: Obj) -> None:
    """No pod may be evicted before the pods are counted."""
    del core
    budget["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def check_single_default(core: Core, new: Obj, old: Obj | None) -> None:
    del old
    if not new.get("globalDefault"):
        return
    default = core.default_priority()
    if default is not None and name_of(default) != name_of(new):
        why = f"PriorityClass {name_of(default)} is already marked as default. Only one default can exist"
        raise forbidden(kinds.PRIORITY_CLASS, name_of(new), why)


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
    """Label the pods of a Job as its own. Its selector is its uid unless one was given."""
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


NAMESPACE = Strategy(prepare_for_create=prepare_namespace, prepare_for_update=prepare_namespace_update)
NODE = Strategy(keeps_initial_status=True)
VOLUME = Strategy(prepare_for_create=prepare_volume, prepare_for_status_update=prepare_volume_status_update)
CLAIM = Strategy(prepare_for_create=prepare_claim)
PRIORITY_CLASS = Strategy(Generation.FIXED, admit=check_single_default)
BUDGET = Strategy(Generation.SPEC, prepare_for_create=prepare_budget)
ENDPOINT_SLICE = Strategy(Generation.CONTENT_AND_LABELS)
ENDPOINTS = Strategy(create_on_update=True)
EVENT = Strategy(create_on_update=True)
LEASE = Strategy(create_on_update=True, unconditional_update=False)
REPLICA_SET = Strategy(Generation.SPEC, prepare_for_create=prepare_replica_set)
# Annotations are copied to the ReplicaSets, so a change of them is work for the controller as one of the spec.
DEPLOYMENT = Strategy(
    Generation.SPEC_AND_ANNOTATIONS,
    prepare_for_create=prepare_deployment,
    prepare_for_status_update=prepare_deployment_status_update,
)
JOB = Strategy(Generation.SPEC, prepare_for_create=prepare_job)
