"""The spec of KubeDL's PyTorchJob, and how it reads as a training job."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from shoal.dialects.training import cel_rules
from shoal.dialects.training.replicas import (
    MASTER,
    WORKER,
    Count,
    Replicas,
    ReplicaSpec,
    RestartPolicy,
    Scheduling,
    TrainingSpec,
)
from shoal.dialects.training.run_policy import RunLimits
from shoal.dialects.validation_errors import Model
from shoal.kube.crd_schema import PRESERVED

ORDER = {MASTER: "Master", WORKER: "Worker"}
RESTART_DEFAULTS: dict[str, RestartPolicy] = {MASTER: "ExitCode", WORKER: "OnFailure"}

OtherKinds = Annotated[dict[str, Any], WithJsonSchema(PRESERVED)]  # of controllers that are not part of Shoal


class SpotReplicaSpec(Model):
    """Replicas on capacity that may be taken away: those with the highest indexes."""

    spot_replica_number: Annotated[Count, Field(description="How many replicas are spot replicas")] = 0
    priority_class_name: Annotated[str, Field(description="Their priority class, instead of the template's")] = ""
    labels: Annotated[dict[str, str], Field(default_factory=dict, description="Their labels, besides the template's")]


class KubedlReplicaSpec(ReplicaSpec):
    spot_replica_spec: SpotReplicaSpec | None = None


class ElasticPolicy(Model):
    """How the workers of an elastic job find each other, and how many there may be."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                *cel_rules.of_bounds(),
                cel_rules.rule(
                    "self.rdzvBackend == 'c10d' || (has(self.rdzvEndpoint) && self.rdzvEndpoint != '')",
                    "etcd needs an endpoint: host:port",
                    at="rdzvEndpoint",
                    reason="FieldValueRequired",
                ),
            ]
        }
    )

    rdzv_backend: Annotated[Literal["etcd", "etcd-v2", "c10d"], Field(description="The rendezvous backend of torchrun")]
    rdzv_endpoint: Annotated[
        str,
        Field(
            pattern=r"^([^:/\s]+:[0-9]{1,5})?$",
            max_length=300,
            description="host:port of the rendezvous; with c10d, worker 0 by default",
        ),
    ] = ""
    min_replicas: Annotated[int | None, Field(ge=1, description="The fewest workers")] = None
    max_replicas: Annotated[int | None, Field(ge=1, description="The most workers")] = None
    n_proc_per_node: Annotated[int | None, Field(ge=1, description="Processes per worker; 1 by default")] = None


class SchedulingPolicy(Model):
    """What the gang scheduler is asked for."""

    min_available: Annotated[Count | None, Field(description="Pods that start together, instead of all")] = None
    priority: Annotated[int | None, Field(description="The priority of the job; precedes the class")] = None
    priority_class_name: Annotated[str, Field(description="The priority class of the job")] = ""
    queue: Annotated[str, Field(description="The queue the job waits in; default where none is named")] = ""


class KubedlSpec(Model):
    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                *cel_rules.of_roles(),
                cel_rules.rule(
                    "self.pytorchReplicaSpecs.exists(k, k.lowerAscii() == 'master')",
                    "a Master is required",
                    at="pytorchReplicaSpecs",
                    reason="FieldValueRequired",
                ),
                cel_rules.rule(
                    "!has(self.enableElastic) || !self.enableElastic || has(self.elasticPolicy)",
                    "enableElastic needs an elasticPolicy",
                    at="elasticPolicy",
                    reason="FieldValueRequired",
                ),
                cel_rules.rule(
                    "!has(self.enableElastic) || !self.enableElastic || "
                    "self.pytorchReplicaSpecs.exists(k, k.lowerAscii() == 'worker')",
                    "an elastic job needs Workers",
                    at="pytorchReplicaSpecs",
                    reason="FieldValueRequired",
                ),
                cel_rules.workers_within("self.elasticPolicy"),
            ]
        }
    )

    pytorch_replica_specs: Annotated[
        dict[str, KubedlReplicaSpec],
        Field(max_length=cel_rules.MOST_ROLES, description="The roles Master and Worker, in any spelling"),
    ]
    enable_elastic: Annotated[bool, Field(description="Whether the number of workers may change while they run")] = (
        False
    )
    elastic_policy: ElasticPolicy | None = None
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
    cron_policy: OtherKinds | None = None
    model_version: OtherKinds | None = None
    cache_backend: OtherKinds | None = None


def training_spec(spec: KubedlSpec, *, stops_on_failure: bool = True) -> TrainingSpec:
    written = {key.lower(): key for key in spec.pytorch_replica_specs}
    elastic = spec.elastic_policy if spec.enable_elastic else None
    replicas = tuple(
        _replicas(ORDER[role], written[role], spec.pytorch_replica_specs[written[role]], elastic)
        for role in ORDER
        if role in written
    )
    wishes = spec.scheduling_policy or SchedulingPolicy()
    return TrainingSpec(
        replicas,
        is_elastic=spec.enable_elastic,
        limits=RunLimits(
            spec.active_deadline_seconds,
            spec.ttl_seconds_after_finished,
            spec.backoff_limit,
            spec.clean_pod_policy or "None",
            stops_on_failure=stops_on_failure,
        ),
        scheduling=Scheduling(wishes.min_available, wishes.queue, wishes.priority_class_name),
    )


def _replicas(key: str, written: str, spec: ReplicaSpec, elastic: ElasticPolicy | None) -> Replicas:
    role = key.lower()
    size = 1 if spec.replicas is None else spec.replicas
    minimum = min(elastic.min_replicas, size) if elastic and elastic.min_replicas and role == WORKER else None
    policy = spec.restart_policy or RESTART_DEFAULTS[role]
    maximum = elastic.max_replicas if elastic and role == WORKER else None
    return Replicas(key, written, size, policy, spec.template, minimum, maximum)


def bounds(spec: KubedlSpec) -> tuple[int, int]:
    """The fewest and most workers of an elastic job; without both bounds the number it has."""
    elastic = spec.elastic_policy
    worker = training_spec(spec).find(WORKER)
    size = worker.size if worker is not None else 0
    if elastic is None or elastic.min_replicas is None or elastic.max_replicas is None:
        return size, size
    return elastic.min_replicas, elastic.max_replicas
