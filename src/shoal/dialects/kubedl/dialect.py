"""KubeDL's PyTorchJob: a Master that starts first and Workers, each a role; elastic jobs run under torchrun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.dialects.kubedl import spec as spec_module
from shoal.dialects.kubedl.spec import KubedlSpec, training_spec
from shoal.dialects.training import conditions as cond
from shoal.dialects.training.conditions import ConditionTexts
from shoal.dialects.training.git_sync import GitSync, add_git_sync, read_git_sync
from shoal.dialects.training.host_network import host_port, use_host_network
from shoal.dialects.training.pod_environment import add_variables, find_container, put_arguments_first
from shoal.dialects.training.replicas import MASTER, WORKER, TrainingSpec
from shoal.dialects.training.restart_rules import RestartRules
from shoal.dialects.training.run_policy import BACKOFF_LIMIT, DEADLINE
from shoal.dialects.training.torchrun import Rendezvous
from shoal.dialects.training.training_dialect import PORT_NAME, TrainingDialect
from shoal.engine import Create, TaskRef
from shoal.engine.policies import GOOD, LEAD, Bound, CompletionRule, CountCondition, ExternalDeletion, Tally
from shoal.kube.objects import Obj, annotations_of, name_of, uid_of

GROUP = "training.kubedl.io"
CONTAINER = "pytorch"
MASTER_TRAINS = "shoal.dev/master-trains"  # "true" or "false": whether the Master is part of the rendezvous

NETWORK_MODE, GIT_SYNC = "kubedl.io/network-mode", "kubedl.io/git-sync-config"

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
    container = CONTAINER
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
        ref = create.target
        assert isinstance(ref, TaskRef)
        spec, sizes = pod["spec"], create.build_context.sizes
        is_master = ref.role == MASTER
        variables = {
            "MASTER_ADDR": "localhost" if is_master else self.pod_name(manifest, TaskRef(MASTER, 0)),
            "MASTER_PORT": str(self.port(job, MASTER)),
            "RANK": str(ref.index if is_master else ref.index + 1),
            "WORLD_SIZE": str(sum(sizes.values())),
            "PYTHONUNBUFFERED": "1",
        }
        add_variables((*(spec.get("initContainers") or ()), *spec["containers"]), variables)
        trainer = find_container(spec, CONTAINER)
        if trainer is not None:
            if job.is_elastic and (not is_master or master_trains(job, manifest)):
                put_arguments_first(trainer, self._rendezvous(manifest, job, create).arguments())
            if uses_host_network(manifest):
                use_host_network(spec, trainer, PORT_NAME, host_port(uid_of(manifest), ref))
        if wanted := annotations_of(manifest).get(GIT_SYNC):
            add_git_sync(spec, _git_sync(wanted))
        _apply_spot(pod, ref, job, self.read(manifest)[0])

    def service_spec(self, manifest: Obj, ref: TaskRef) -> Obj:
        """On the host network an ordinary Service, which leads to the port that the replica has there."""
        made = super().service_spec(manifest, ref)
        if not uses_host_network(manifest):
            return made
        ports = [{**port, "targetPort": host_port(uid_of(manifest), ref)} for port in made["ports"]]
        return {"ports": ports}

    def _rendezvous(self, manifest: Obj, job: TrainingSpec, create: Create) -> Rendezvous:
        spec = self.read(manifest)[0]
        elastic = spec.elastic_policy
        assert elastic is not None, "an elastic job has a policy"
        least, most = spec_module.bounds(spec)
        extra = int(master_trains(job, manifest))
        run = create.build_context.run
        endpoint = elastic.rdzv_endpoint or f"{self.pod_name(manifest, TaskRef(WORKER, 0))}:{self.port(job, WORKER)}"
        return Rendezvous(
            elastic.rdzv_backend,
            endpoint,
            # A job that is created again under its name must not meet the closed rendezvous of the one before.
            f"{name_of(manifest)}-{uid_of(manifest)[:8]}{f'-r{run}' if run else ''}",
            str(elastic.n_proc_per_node or 1),
            least + extra,
            most + extra,
        )


def uses_host_network(manifest: Obj) -> bool:
    return annotations_of(manifest).get(NETWORK_MODE) == "host"


def _git_sync(text: str) -> GitSync:
    found = read_git_sync(text, f"metadata.annotations[{GIT_SYNC}]")
    if not isinstance(found, GitSync):
        raise ManifestInvalid(found)
    return found


def master_trains(job: TrainingSpec, manifest: Obj) -> bool:
    """Whether the Master runs the launcher too: it does where its container is that of the workers."""
    written = annotations_of(manifest).get(MASTER_TRAINS)
    if written is not None:
        return written == "true"
    parts = []
    for role in (MASTER, WORKER):
        replicas = job.find(role)
        found = find_container((replicas.template.get("spec") or {}) if replicas else {}, CONTAINER) or {}
        parts.append((found.get("image"), found.get("command"), found.get("args")))
    return parts[0] == parts[1]


def _apply_spot(pod: Obj, ref: TaskRef, job: TrainingSpec, spec: KubedlSpec) -> None:
    replicas = job.find(ref.role)
    assert replicas is not None
    spot = spec.pytorch_replica_specs[replicas.written_key].spot_replica_spec
    if spot is None or ref.index < replicas.size - spot.spot_replica_number:
        return
    pod["metadata"]["labels"] = {**spot.labels, **pod["metadata"]["labels"]}
    if spot.priority_class_name:
        pod["spec"]["priorityClassName"] = spot.priority_class_name


DIALECT = KubedlDialect()
