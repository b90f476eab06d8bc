"""What a pod of Kubeflow's PyTorchJob has besides its template: variables, and of a worker an init container."""

from __future__ import annotations

from shoal.dialects.kubeflow.spec import KubeflowSpec, bounds, processes_per_node
from shoal.dialects.training.container_edits import add_variables
from shoal.dialects.training.master_wait import wait_container
from shoal.dialects.training.replicas import MASTER, WORKER, TrainingSpec, replica_name
from shoal.dialects.training.torchrun import Rendezvous
from shoal.engine import Create, TaskRef
from shoal.kube.objects import Obj

CONTAINER = "pytorch"
INIT_IMAGE = "alpine:3.10"


def set_up(pod: Obj, manifest: Obj, written: KubeflowSpec, job: TrainingSpec, create: Create) -> None:
    ref, sizes = create.target, create.build_context.sizes
    assert isinstance(ref, TaskRef)
    total, processes = sum(sizes.values()), processes_per_node(written)
    variables = {"PYTHONUNBUFFERED": "1", "PET_NPROC_PER_NODE": processes}
    if job.find(MASTER) is not None:
        rank = ref.index if ref.role == MASTER else ref.index + sizes.get(MASTER, 1)
        master = replica_name(manifest, MASTER, 0)
        address = {"MASTER_ADDR": master, "MASTER_PORT": str(job.port(MASTER, CONTAINER))}
        variables |= {**address, **{f"PET_{name}": value for name, value in address.items()}}
        variables |= {"RANK": str(rank), "PET_NODE_RANK": str(rank)}
        variables["WORLD_SIZE"] = str(total * (int(processes) if processes.isdecimal() else 1))
        if ref.role == WORKER:
            waits = wait_container("init-pytorch", INIT_IMAGE, master)
            pod["spec"]["initContainers"] = [*(pod["spec"].get("initContainers") or ()), waits]
    if written.elastic_policy is None:
        variables["PET_NNODES"] = str(total)
    else:
        variables |= _rendezvous(manifest, written, job).variables()
    add_variables(pod["spec"]["containers"], variables)


def _rendezvous(manifest: Obj, written: KubeflowSpec, job: TrainingSpec) -> Rendezvous:
    elastic, worker = written.elastic_policy, job.find(WORKER)
    assert elastic is not None, "an elastic job has a policy"
    least, most = bounds(elastic, worker.size if worker is not None else 0)
    host = elastic.rdzv_host or replica_name(manifest, WORKER, 0)
    return Rendezvous(
        elastic.rdzv_backend or "c10d",
        f"{host}:{elastic.rdzv_port or job.port(WORKER, CONTAINER)}",
        elastic.rdzv_id,
        processes_per_node(written),
        least,
        most,
        max_restarts=elastic.max_restarts,
        conf={each.key: each.value for each in elastic.rdzv_conf},
        is_standalone=bool(elastic.standalone),
    )
