"""What a pod of KubeDL's PyTorchJob has besides its template: variables, arguments, network, code, spot settings."""

from __future__ import annotations

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.kubedl.spec import KubedlSpec, bounds
from shoal.dialects.training.container_edits import add_variables, find_container, put_arguments_first
from shoal.dialects.training.git_sync import GitSync, add_git_sync, read_git_sync
from shoal.dialects.training.host_network import host_port, use_host_network
from shoal.dialects.training.replicas import MASTER, PORT_NAME, WORKER, TrainingSpec, replica_name
from shoal.dialects.training.torchrun import Rendezvous
from shoal.engine import Create, TaskRef
from shoal.kube.objects import Obj, annotations_of, name_of, uid_of

CONTAINER = "pytorch"
NETWORK_MODE, GIT_SYNC = "kubedl.io/network-mode", "kubedl.io/git-sync-config"
MASTER_TRAINS = "shoal.dev/master-trains"  # "true" or "false": whether the Master is part of the rendezvous


def set_up(pod: Obj, manifest: Obj, written: KubedlSpec, job: TrainingSpec, create: Create) -> None:
    ref = create.target
    assert isinstance(ref, TaskRef)
    spec, sizes = pod["spec"], create.build_context.sizes
    is_master = ref.role == MASTER
    port = job.port(MASTER, CONTAINER)
    if is_master and uses_host_network(manifest):
        port = host_port(uid_of(manifest), ref)  # where its Service leads to; others use the Service
    variables = {
        "MASTER_ADDR": "localhost" if is_master else replica_name(manifest, MASTER, 0),
        "MASTER_PORT": str(port),
        "RANK": str(ref.index if is_master else ref.index + 1),
        "WORLD_SIZE": str(sum(sizes.values())),
        "PYTHONUNBUFFERED": "1",
    }
    add_variables((*(spec.get("initContainers") or ()), *spec["containers"]), variables)
    trainer = find_container(spec, CONTAINER)
    if trainer is not None:
        if job.is_elastic and (not is_master or master_trains(job, manifest)):
            put_arguments_first(trainer, _rendezvous(manifest, written, job, create.build_context.run).arguments())
        if uses_host_network(manifest):
            use_host_network(spec, trainer, PORT_NAME, host_port(uid_of(manifest), ref))
    if (wanted := git_sync_of(manifest)) is not None:
        add_git_sync(spec, wanted)
    replicas = job.find(ref.role)
    assert replicas is not None, "only roles of the spec get pods"
    spot = written.pytorch_replica_specs[replicas.written_key].spot_replica_spec
    if spot is not None and ref.index >= replicas.size - spot.spot_replica_number:
        pod["metadata"]["labels"] = {**spot.labels, **pod["metadata"]["labels"]}
        if spot.priority_class_name:
            spec["priorityClassName"] = spot.priority_class_name


def _rendezvous(manifest: Obj, written: KubedlSpec, job: TrainingSpec, run: int) -> Rendezvous:
    elastic = written.elastic_policy
    assert elastic is not None, "an elastic job has a policy"
    least, most = bounds(written)
    masters = int(master_trains(job, manifest))
    endpoint = elastic.rdzv_endpoint or f"{replica_name(manifest, WORKER, 0)}:{job.port(WORKER, CONTAINER)}"
    return Rendezvous(
        elastic.rdzv_backend,
        endpoint,
        # A job that is created again under its name must not meet the closed rendezvous of the one before.
        f"{name_of(manifest)}-{uid_of(manifest)[:8]}{f'-r{run}' if run else ''}",
        str(elastic.n_proc_per_node or 1),
        least + masters,
        most + masters,
    )


def uses_host_network(manifest: Obj) -> bool:
    return annotations_of(manifest).get(NETWORK_MODE) == "host"


def git_sync_of(manifest: Obj) -> GitSync | None:
    """What is fetched for the job. Raises ManifestInvalid."""
    text = annotations_of(manifest).get(GIT_SYNC)
    found = read_git_sync(text, f"metadata.annotations[{GIT_SYNC}]") if text else None
    if isinstance(found, list):
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
