"""The table of job languages: what the promises in tests/conformance need to know of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kit.frameworks import framework, role
from kit.native_world import job, replica_set
from kit.toy_language import swarm, toy_dialect
from kit.training_jobs import kubedl, kubeflow, replicas
from kit.volcano_jobs import task, vcjob
from shoal.dialects.dialect import Dialect
from shoal.dialects.framework import DIALECT as FRAMEWORK
from shoal.dialects.kubedl import DIALECT as KUBEDL
from shoal.dialects.kubeflow import DIALECT as KUBEFLOW
from shoal.dialects.native import batch_job, batch_job_spec, replica_sets
from shoal.dialects.volcano import DIALECT as VOLCANO
from shoal.engine import TaskRef
from shoal.kube.objects import Obj

UID = "9d0a2ae1-7a0e-4bcb-8a7f-52f4d2d6a3b8"


@dataclass(frozen=True)
class Language:
    name: str
    dialect: Dialect
    written: Callable[[], Obj]  # a manifest of one role with two tasks
    role: str
    wrong: dict[tuple[str, ...], object] = field(default_factory=dict)  # changes of the spec, a mistake each

    @property
    def stored(self) -> Obj:
        """The manifest as an API server keeps it."""
        manifest = self.dialect.default(self.written())
        kind = self.dialect.kind
        metadata = {**manifest["metadata"], "namespace": "default", "uid": UID, "resourceVersion": "7", "generation": 1}
        return {**manifest, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}

    @property
    def task(self) -> TaskRef:
        return TaskRef(self.role, 1)


LANGUAGES = (
    Language(
        "Framework",
        FRAMEWORK,
        lambda: framework(role("worker", 2), name="a"),
        "worker",
        {("executionType",): "Soon", ("taskRoles", "0", "taskNumber"): -1},
    ),
    Language(
        "Volcano",
        VOLCANO,
        lambda: vcjob("a", task("worker", 2)),
        "worker",
        {("maxRetry",): -1, ("tasks", "0", "replicas"): -1},
    ),
    Language(
        "ReplicaSet",
        replica_sets.DIALECT,
        lambda: replica_set("a", 2),
        replica_sets.ROLE,
        {("replicas",): -1, ("minReadySeconds",): -1},
    ),
    Language(
        "Job",
        batch_job.DIALECT,
        lambda: job("a", parallelism=2, completions=2),
        batch_job_spec.ROLE,
        {("parallelism",): -1, ("backoffLimit",): -1},
    ),
    Language(
        "PyTorchJob of KubeDL",
        KUBEDL,
        lambda: kubedl(master=replicas(), worker=replicas(2)),
        "worker",
        {("backoffLimit",): -1, ("pytorchReplicaSpecs", "Worker", "replicas"): -1},
    ),
    Language(
        "PyTorchJob of Kubeflow",
        KUBEFLOW,
        lambda: kubeflow(worker=replicas(2)),
        "worker",
        {("runPolicy", "backoffLimit"): -1, ("pytorchReplicaSpecs", "Worker", "replicas"): -1},
    ),
    Language("toy", toy_dialect(), lambda: swarm(workers=2), "worker", {("workers",): 0, ("retries",): -1}),
)
