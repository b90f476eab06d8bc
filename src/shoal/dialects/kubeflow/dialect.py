"""Kubeflow's PyTorchJob: Workers and perhaps a Master, all started at once; the pods run torchrun."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from shoal.dialects.base_settings import BaseSettings
from shoal.dialects.capabilities import Suspension
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.dialects.kubeflow import pod_builder
from shoal.dialects.kubeflow.spec import (
    MANAGER,
    KubeflowSpec,
    training_spec,
)
from shoal.dialects.training import conditions as cond
from shoal.dialects.training.conditions import ConditionTexts
from shoal.dialects.training.replica_status import FAILED
from shoal.dialects.training.replicas import MASTER, TrainingSpec
from shoal.dialects.training.restart_rules import RestartRules
from shoal.dialects.training.run_policy import BACKOFF_LIMIT, DEADLINE
from shoal.dialects.training.training_dialect import TrainingDialect
from shoal.engine import Create, Job, TaskRef
from shoal.engine.policies import (
    ALL,
    GOOD,
    LEAD,
    Bound,
    CompletionRule,
    CountCondition,
    ExternalDeletion,
    Span,
    Tally,
)
from shoal.kube.objects import Obj, at_path, name_of
from shoal.kube.schema_errors import FieldWarning

GROUP = "kubeflow.org"
PREFIX = "training.kubeflow.org"

_KIND = "PyTorchJob"
_TEXTS = ConditionTexts(
    reasons={
        cond.CREATED: f"{_KIND}Created",
        cond.QUEUING: f"{_KIND}Queuing",
        "Dequeued": f"{_KIND}Admitted",
        cond.RUNNING: f"{_KIND}Running",
        cond.RESTARTING: f"{_KIND}Restarting",
        cond.SUCCEEDED: f"{_KIND}Succeeded",
        cond.FAILED: f"{_KIND}Failed",
        cond.SUSPENDED: f"{_KIND}Suspended",
        "Resumed": f"{_KIND}Resumed",
    },
    messages={
        cond.CREATED: f"{_KIND} {{name}} is created.",
        "Dequeued": f"{_KIND} {{name}} is admitted.",
        cond.RUNNING: f"{_KIND} {{name}} is running.",
        cond.RESTARTING: f"{_KIND} {{name}} is restarting because {{count}} {{role}} replica(s) failed.",
        cond.SUCCEEDED: f"{_KIND} {{name}} is successfully completed.",
        cond.FAILED: f"{_KIND} {{name}} is failed because {{count}} {{role}} replica(s) failed.",
        cond.SUSPENDED: f"{_KIND} {{name}} is suspended.",
        "Resumed": f"{_KIND} {{name}} is resumed.",
    },
    ended={
        BACKOFF_LIMIT.phrase: f"{_KIND} {{name}} has failed because it has reached the specified backoff limit",
        DEADLINE.phrase: f"{_KIND} {{name}} has failed because it was active longer than specified deadline",
    },
)


class RunPolicySuspension(Suspension):
    """`spec.runPolicy.suspend`. The pods of a suspended job are deleted, and a start creates all of them again."""

    keeps_work = True

    def stop_patch(self, manifest: Obj) -> list[Obj]:
        return _suspend(manifest, True)

    def start_patch(self, manifest: Obj) -> list[Obj]:
        return _suspend(manifest, False)


def _suspend(manifest: Obj, value: bool) -> list[Obj]:
    if at_path(manifest, "spec", "runPolicy") is None:
        return [{"op": "add", "path": "/spec/runPolicy", "value": {"suspend": value}}]
    return [{"op": "add", "path": "/spec/runPolicy/suspend", "value": value}]


class KubeflowDialect(TrainingDialect[KubeflowSpec]):
    group = GROUP
    version = "v1"
    names: ClassVar[Obj] = {
        "kind": _KIND,
        "listKind": "PyTorchJobList",
        "plural": "pytorchjobs",
        "singular": "pytorchjob",
    }
    columns = (
        {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    )
    spec_model = KubeflowSpec
    capabilities = (RunPolicySuspension(),)
    container = pod_builder.CONTAINER
    replicas_field = "pytorchReplicaSpecs"
    texts = _TEXTS
    rules = RestartRules(
        {"ExitCode": "dcddf", "OnFailure": "dcccf", "Always": "dcccf", "Never": "ddddd"}, code_span=Span(128)
    )
    decides_while_running = False
    external_deletion = ExternalDeletion.FAILED
    starts_in_order = False
    leaving_counts_as = FAILED

    def to_job(self, manifest: Obj, settings: BaseSettings) -> Job | None:
        manager = at_path(manifest, "spec", "runPolicy", "managedBy")
        return super().to_job(manifest, settings) if manager in (None, "", MANAGER) else None

    def training_spec(self, spec: KubeflowSpec) -> TrainingSpec:
        return training_spec(spec)

    def success(self, job: TrainingSpec) -> tuple[CompletionRule, ...]:
        """The Master alone; without one all Workers, or any of an elastic job."""
        if job.find(MASTER) is not None:
            return (CompletionRule((CountCondition(Tally.OK, LEAD, 1),), GOOD),)
        return (CompletionRule((CountCondition(Tally.OK, ALL, 1 if job.is_elastic else Bound.SIZE),), GOOD),)

    def warnings(self, spec: KubeflowSpec, job: TrainingSpec) -> Iterator[str]:
        elastic = spec.elastic_policy
        if elastic is None:
            return
        if job.find(MASTER) is not None:
            text = "the number of nodes is that of the Workers, and the Master runs torchrun too; leave it out"
            yield FieldWarning("spec.elasticPolicy", text)
        if elastic.n_proc_per_node is not None:
            yield FieldWarning("spec.elasticPolicy.nProcPerNode", "is deprecated; use spec.nprocPerNode")

    def labels(self, manifest: Obj, ref: TaskRef | None) -> dict[str, str]:
        found = {f"{PREFIX}/operator-name": "pytorchjob-controller", f"{PREFIX}/job-name": name_of(manifest)}
        if ref is None:
            return found
        found |= {f"{PREFIX}/replica-type": ref.role, f"{PREFIX}/replica-index": str(ref.index)}
        return found | ({f"{PREFIX}/job-role": "master"} if ref.role == MASTER else {})

    def selector(self) -> str:
        return f"{PREFIX}/operator-name=pytorchjob-controller"

    def has_service(self, job: TrainingSpec, role: str) -> bool:
        del job, role
        return True

    def gangs(self, job: TrainingSpec, manifest: Obj) -> Mapping[str, GangSpec]:
        return {"": self.gang_of(name_of(manifest), job.replicas, job, manifest)}

    def set_up_pod(self, pod: Obj, manifest: Obj, job: TrainingSpec, create: Create) -> None:
        pod_builder.set_up(pod, manifest, self.read(manifest)[0], job, create)

    def role_status(self, manifest: Obj, role: str) -> Obj:
        """A selector as text, for the scale subresource."""
        labels = {**self.labels(manifest, None), f"{PREFIX}/replica-type": role}
        return {"selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items()))}


DIALECT = KubeflowDialect()
