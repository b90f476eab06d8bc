"""KubeDL's PyTorchJob: a Master that starts first and Workers, each a role; elastic jobs run under torchrun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.dialects.kubedl import pod_builder
from shoal.dialects.kubedl.spec import KubedlSpec, training_spec
from shoal.dialects.training import conditions as cond
from shoal.dialects.training.conditions import ConditionTexts
from shoal.dialects.training.host_network import host_port
from shoal.dialects.training.replicas import MASTER, WORKER, TrainingSpec
from shoal.dialects.training.restart_rules import RestartRules
from shoal.dialects.training.run_policy import BACKOFF_LIMIT, DEADLINE
from shoal.dialects.training.training_dialect import TrainingDialect
from shoal.engine import Create, TaskRef
from shoal.engine.policies import GOOD, LEAD, Bound, CompletionRule, CountCondition, ExternalDeletion, Tally
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj, name_of, uid_of
from shoal.kube.validation.errors import required

GROUP = "training.kubedl.io"


_KIND = "PyTorchJob"
_TEXTS = ConditionTexts(
    reasons={
        cond.CREATED: "JobCreated",
        cond.QUEUING: "JobEnqueued",
        "Dequeued": "JobDequeued",
        cond.RUNNING: "JobRunning",
        cond.RESTARTING: "JobRestarting",
        cond.SUCCEEDED: "JobSucceeded",
        cond.FAILED: "JobFailed",
        cond.SUSPENDED: "JobSuspended",
        "Resumed": "JobResumed",
    },
    messages={
        cond.CREATED: f"Job {_KIND}/{{name}} is created.",
        "Dequeued": f"{_KIND} {{name}} left its queue.",
        cond.RUNNING: f"{_KIND} {{name}} is running.",
        cond.RESTARTING: f"{_KIND} {{name}} is restarting because {{count}} {{role}} replica(s) failed.",
        cond.SUCCEEDED: f"{_KIND} {{name}} is successfully completed.",
        cond.FAILED: f"{_KIND} {{name}} is failed because {{count}} {{role}} replica(s) failed.",
        cond.SUSPENDED: f"{_KIND} {{name}} is suspended.",
        "Resumed": f"{_KIND} {{name}} is resumed.",
    },
    ended={
        BACKOFF_LIMIT.phrase: "Job {name} has failed because it has reached the specified backoff limit",
        DEADLINE.phrase: "Job {name} has failed because it was active longer than specified deadline",
    },
)


class KubedlDialect(TrainingDialect[KubedlSpec]):
    group = GROUP
    version = "v1alpha1"
    names: ClassVar[Obj] = {
        "kind": _KIND,
        "listKind": "PyTorchJobList",
        "plural": "pytorchjobs",
        "singular": "pytorchjob",
    }
    columns = (
        {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Max-Lifetime", "type": "integer", "jsonPath": ".spec.activeDeadlineSeconds"},
        {"name": "TTL-After-Finished", "type": "integer", "jsonPath": ".spec.ttlSecondsAfterFinished"},
    )
    spec_model = KubedlSpec
    container = pod_builder.CONTAINER
    replicas_field = "pytorchReplicaSpecs"
    texts = _TEXTS
    # 138 is SIGUSR1, which programs use to request a retry.
    rules = RestartRules(
        {"ExitCode": "dcddf", "OnFailure": "dcddf", "Always": "dcddf", "Never": "ddddf"},
        codes=frozenset({130, 137, 138, 143}),
    )
    decides_while_running = True
    without_effect: ClassVar[Mapping[str, str]] = {
        "cronPolicy": "the job runs once, when it is submitted; submit it from a CronJob",
        "modelVersion": "models are not packed into images; write them to a volume",
        "cacheBackend": "there is no dataset cache; mount the data as a volume",
    }
    external_deletion = ExternalDeletion.NOTHING
    starts_in_order = True

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        found = super().validate(new, old)
        try:
            pod_builder.git_sync_of(new)
        except ManifestInvalid as wrong:
            found += wrong.causes
        if not found and pod_builder.uses_host_network(new):
            elastic = self.read(new)[0].elastic_policy
            if elastic is not None and not elastic.rdzv_endpoint:
                # Worker 0 would listen on its own port of the node, and not on the one of its Service.
                why = "an endpoint, because the pods are on the network of their nodes"
                found.append(required("spec.elasticPolicy.rdzvEndpoint", why))
        return found

    def training_spec(self, spec: KubedlSpec) -> TrainingSpec:
        return training_spec(spec)

    def success(self, job: TrainingSpec) -> tuple[CompletionRule, ...]:
        """The Master, and all Workers; of an elastic job those there are, so that a resize near the end cannot keep it
        from ending."""
        master = CountCondition(Tally.OK, LEAD, 1)
        if job.find(WORKER) is None:
            return (CompletionRule((master,), GOOD),)
        if job.is_elastic:
            workers = (CountCondition(Tally.LIVE, WORKER, below=1), CountCondition(Tally.BAD, WORKER, below=1))
            return (CompletionRule((master, *workers), GOOD),)
        return (CompletionRule((master, CountCondition(Tally.OK, WORKER, Bound.SIZE)), GOOD),)

    def labels(self, manifest: Obj, ref: TaskRef | None) -> dict[str, str]:
        found = {"group-name": GROUP, "job-name": name_of(manifest)}
        if ref is None:
            return found
        return {**found, "replica-type": ref.role, "replica-index": str(ref.index)} | (
            {"job-role": "master"} if ref.role == MASTER else {}
        )

    def selector(self) -> str:
        return f"group-name={GROUP}"

    def has_service(self, job: TrainingSpec, role: str) -> bool:
        return job.is_elastic or role == MASTER

    def gangs(self, job: TrainingSpec, manifest: Obj) -> Mapping[str, GangSpec]:
        """One per role: workers are created when the Master runs, so that they cannot be placed with it."""
        return {
            each.role: self.gang_of(f"{name_of(manifest)}-{each.role}", (each,), job, manifest)
            for each in job.replicas
            if each.size
        }

    def set_up_pod(self, pod: Obj, manifest: Obj, job: TrainingSpec, create: Create) -> None:
        pod_builder.set_up(pod, manifest, self.read(manifest)[0], job, create)

    def service_spec(self, manifest: Obj, ref: TaskRef) -> Obj:
        """On the host network an ordinary Service, which leads to the port that the replica has there."""
        made = super().service_spec(manifest, ref)
        if not pod_builder.uses_host_network(manifest):
            return made
        ports = [{**port, "targetPort": host_port(uid_of(manifest), ref)} for port in made["ports"]]
        return {"ports": ports}


DIALECT = KubedlDialect()
