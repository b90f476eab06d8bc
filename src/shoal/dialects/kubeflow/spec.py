"""The spec of Kubeflow's PyTorchJob, and how it reads as a training job."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from shoal.dialects.training import cel_rules
from shoal.dialects.training.replicas import (
    WORKER,
    Count,
    Replicas,
    ReplicaSpec,
    Scheduling,
    TrainingSpec,
)
from shoal.dialects.training.run_policy import RunLimits
from shoal.dialects.validation_errors import Model
from shoal.kube.crd_schema import PRESERVED

KEYS = ("Master", "Worker")
MANAGER = "kubeflow.org/training-operator"

Metrics = Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": PRESERVED})]
Amounts = Annotated[dict[str, Any], WithJsonSchema(PRESERVED)]


class ConfEntry(Model):
    key: str
    value: str


class ElasticPolicy(Model):
    """How many workers an elastic job may have, and how they find each other."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [*cel_rules.of_bounds()]})

    min_replicas: Annotated[int | None, Field(ge=1, description="The fewest workers")] = None
    max_replicas: Annotated[int | None, Field(ge=1, description="The most workers")] = None
    rdzv_backend: Annotated[
        Literal["static", "c10d", "etcd", "etcd-v2"] | None,
        Field(description="The rendezvous backend of torchrun; c10d by default"),
    ] = None
    rdzv_port: Annotated[int | None, Field(ge=1, le=65535, description="The port of the rendezvous")] = None
    rdzv_host: Annotated[str, Field(description="The host of the rendezvous; worker 0 by default")] = ""
    rdzv_id: Annotated[str, Field(description="The name of the group")] = ""
    rdzv_conf: Annotated[list[ConfEntry], Field(default_factory=list, description="Settings of the rendezvous backend")]
    standalone: Annotated[bool | None, Field(description="A rendezvous of its own in each pod")] = None
    n_proc_per_node: Annotated[int | None, Field(ge=1, description="Deprecated: spec.nprocPerNode")] = None
    max_restarts: Annotated[int | None, Field(ge=0, description="Restarts of the workers within a pod")] = None
    metrics: Annotated[
        Metrics, Field(default_factory=list, description="Metrics of a HorizontalPodAutoscaler for the workers")
    ]


class SchedulingPolicy(Model):
    """What the gang scheduler is asked for."""

    min_available: Annotated[Count | None, Field(description="Pods that start together, instead of all")] = None
    queue: Annotated[str, Field(description="The queue the job waits in; default where none is named")] = ""
    min_resources: Annotated[Amounts | None, Field(description="What those pods request, instead of their sum")] = None
    priority_class: Annotated[str, Field(description="The priority class of the job")] = ""
    schedule_timeout_seconds: Annotated[int | None, Field(ge=0, description="How long placed pods wait for others")] = (
        None
    )


class RunPolicy(Model):
    """How long the job may run, and what happens at its end."""

    clean_pod_policy: Annotated[
        Literal["All", "Running", "None"] | None,
        Field(description="Which pods are deleted when the job ends; None by default"),
    ] = None
    ttl_seconds_after_finished: Annotated[
        int | None, Field(ge=0, description="When the job is deleted after its end; never by default")
    ] = None
    active_deadline_seconds: Annotated[int | None, Field(ge=1, description="How long the job may run")] = None
    backoff_limit: Annotated[
        int | None, Field(ge=0, description="How many pods may fail and are created again; no limit by default")
    ] = None
    scheduling_policy: SchedulingPolicy | None = None
    suspend: Annotated[bool | None, Field(description="No pods as long as this is true")] = None
    managed_by: Annotated[str, Field(description="The controller of the job")] = ""


class KubeflowSpec(Model):
    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                *cel_rules.of_roles(),
                cel_rules.rule(
                    "self.pytorchReplicaSpecs.size() > 0",
                    "a Master or Workers are required",
                    at="pytorchReplicaSpecs",
                    reason="FieldValueRequired",
                ),
                cel_rules.rule(
                    cel_rules.of_role("worker", "!has({r}.replicas) || {r}.replicas >= 1"),
                    "there is at least one Worker, or no role Worker",
                    at="pytorchReplicaSpecs",
                ),
                cel_rules.rule(
                    "!has(self.elasticPolicy) || self.pytorchReplicaSpecs.exists(k, k.lowerAscii() == 'worker')",
                    "an elastic job needs Workers",
                    at="pytorchReplicaSpecs",
                    reason="FieldValueRequired",
                ),
                cel_rules.rule(
                    "!has(self.elasticPolicy) || !has(self.elasticPolicy.nProcPerNode) || !has(self.nprocPerNode)",
                    "nprocPerNode and elasticPolicy.nProcPerNode exclude each other; use nprocPerNode",
                    at="nprocPerNode",
                ),
                cel_rules.workers_within("self.elasticPolicy"),
            ]
        }
    )

    run_policy: RunPolicy = RunPolicy()
    elastic_policy: ElasticPolicy | None = None
    pytorch_replica_specs: Annotated[
        dict[str, ReplicaSpec],
        Field(max_length=cel_rules.MOST_ROLES, description="The roles Master and Worker"),
    ]
    nproc_per_node: Annotated[
        str | None,
        Field(
            pattern="^(auto|cpu|gpu|[1-9][0-9]{0,3})$",
            description="Processes per pod: auto, cpu, gpu or a number; auto by default",
        ),
    ] = None


def training_spec(spec: KubeflowSpec) -> TrainingSpec:
    policy = spec.run_policy
    wishes = policy.scheduling_policy or SchedulingPolicy()
    written = {key.lower(): key for key in spec.pytorch_replica_specs}
    return TrainingSpec(
        tuple(_replicas(key, written[key.lower()], spec) for key in KEYS if key.lower() in written),
        is_elastic=spec.elastic_policy is not None,
        limits=RunLimits(
            policy.active_deadline_seconds,
            policy.ttl_seconds_after_finished,
            policy.backoff_limit,
            policy.clean_pod_policy or "None",
        ),
        scheduling=Scheduling(
            wishes.min_available,
            wishes.queue,
            wishes.priority_class,
            wishes.min_resources,
            wishes.schedule_timeout_seconds,
        ),
        is_suspended=bool(policy.suspend),
    )


def _replicas(key: str, written: str, spec: KubeflowSpec) -> Replicas:
    each, elastic = spec.pytorch_replica_specs[written], spec.elastic_policy
    size = 1 if each.replicas is None else each.replicas
    minimum = maximum = None
    if elastic is not None and key.lower() == WORKER:
        least, maximum = bounds(elastic, size)
        minimum = min(least, size)
    return Replicas(key, written, size, each.restart_policy or "OnFailure", each.template, minimum, maximum)


def bounds(elastic: ElasticPolicy, size: int) -> tuple[int, int]:
    """The fewest and most workers: one bound alone is both, none is the size."""
    least = elastic.min_replicas or elastic.max_replicas or size
    return least, elastic.max_replicas or least


def processes_per_node(spec: KubeflowSpec) -> str:
    elastic = spec.elastic_policy
    if spec.nproc_per_node is None and elastic is not None and elastic.n_proc_per_node is not None:
        return str(elastic.n_proc_per_node)
    return spec.nproc_per_node or "auto"
