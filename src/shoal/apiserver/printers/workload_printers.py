"""Rows of ReplicaSets, Deployments and Jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.apiserver import durations
from shoal.apiserver.printers.table import AGE, NAME, TablePrinter, age, mapping, name, text
from shoal.kube import times
from shoal.kube.kinds import Column
from shoal.kube.objects import Obj, at_path
from shoal.kube.selectors import from_label_selector

# What a Job is called by, the first condition that holds.
_STATUS_BY_CONDITION = ("Complete", "Failed")
_LATER_STATUS_BY_CONDITION = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _container_cells(obj: Obj) -> list[Any]:
    """Containers, images and the selector, for -o wide."""
    containers = at_path(obj, "spec", "template", "spec", "containers", default=())
    selector = mapping(obj, "spec").get("selector")
    return [
        ",".join(str(each.get("name") or "") for each in containers),
        ",".join(str(each.get("image") or "") for each in containers),
        str(from_label_selector(selector)) if selector else "<none>",
    ]


def replica_set_cells(obj: Obj, now: datetime) -> list[Any]:
    status = mapping(obj, "status")
    desired = mapping(obj, "spec").get("replicas") or 0
    counts = [desired, status.get("replicas") or 0, status.get("readyReplicas") or 0]
    return [name(obj), *counts, age(obj, now), *_container_cells(obj)]


def deployment_cells(obj: Obj, now: datetime) -> list[Any]:
    status = mapping(obj, "status")
    ready = f"{status.get('readyReplicas') or 0}/{mapping(obj, 'spec').get('replicas') or 0}"
    counts = [status.get("updatedReplicas") or 0, status.get("availableReplicas") or 0]
    return [name(obj), ready, *counts, age(obj, now), *_container_cells(obj)]


def job_cells(obj: Obj, now: datetime) -> list[Any]:
    spec, status = mapping(obj, "spec"), mapping(obj, "status")
    succeeded = status.get("succeeded") or 0
    parallelism = spec.get("parallelism") or 0
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    duration = ""
    if status.get("startTime"):
        ended = status.get("completionTime")
        duration = durations.age_since(status["startTime"], times.parse(ended) if ended else now)
    return [name(obj), _job_status(obj), completions, duration, age(obj, now), *_container_cells(obj)]


def _job_status(job: Obj) -> str:
    true = {each.get("type") for each in mapping(job, "status").get("conditions") or () if each.get("status") == "True"}
    for status_name in _STATUS_BY_CONDITION:
        if status_name in true:
            return status_name
    if (job.get("metadata") or {}).get("deletionTimestamp"):
        return "Terminating"
    return next((status_name for status_name in _LATER_STATUS_BY_CONDITION if status_name in true), "Running")


_WIDE = (
    text("Containers", "Names of the containers in its pods.", wide=True),
    text("Images", "What they are started from.", wide=True),
    text("Selector", "Which pods are its own.", wide=True),
)
_REPLICA_SET = (
    NAME,
    Column("Desired", "integer", description="How many pods there should be."),
    Column("Current", "integer", description="How many pods there are."),
    Column("Ready", "integer", description="How many of them are ready."),
    AGE,
    *_WIDE,
)
_DEPLOYMENT = (
    NAME,
    text("Ready", "Pods that are ready, and how many there should be."),
    text("Up-to-date", "Pods of the current template."),
    text("Available", "Pods that have been ready for minReadySeconds."),
    AGE,
    *_WIDE,
)
_JOB = (
    NAME,
    text("Status", "Its state."),
    text("Completions", "Successes so far, and how many are wanted."),
    text("Duration", "Time from its start to its completion, or to now."),
    AGE,
    *_WIDE,
)

PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("apps", "ReplicaSet"): TablePrinter(_REPLICA_SET, replica_set_cells),
    ("extensions", "ReplicaSet"): TablePrinter(_REPLICA_SET, replica_set_cells),
    ("apps", "Deployment"): TablePrinter(_DEPLOYMENT, deployment_cells),
    ("batch", "Job"): TablePrinter(_JOB, job_cells),
}
