"""PyTorchJobs of KubeDL, by the numbers of their specification."""

from __future__ import annotations

from typing import Any

from kit.pod_behavior import Rule, exits, runs
from kit.training_jobs import kubedl, replicas
from kit.training_world import SimulatedKubedl, TrainingWorld, kubedl_scenario
from shoal.kube.objects import Obj, uid_of

ELASTIC: Obj = {
    "enableElastic": True,
    "elasticPolicy": {
        "rdzvBackend": "etcd",
        "rdzvEndpoint": "etcd-service:2379",
        "minReplicas": 1,
        "maxReplicas": 3,
        "nProcPerNode": 1,
    },
}
RUNNING = [("Created", "True", "JobCreated"), ("Running", "True", "JobRunning")]


def seed_job(**spec: Any) -> Obj:
    """Elastic, one Master and one Worker that run until they are deleted."""
    worker = replicas(1, fate=runs(), restartPolicy="OnFailure")
    worker["template"]["spec"]["containers"][0]["args"] = ["train.py", "--lr=0.1"]
    return kubedl(
        "resnet", master=replicas(fate=runs(), restartPolicy="ExitCode"), worker=worker, **{**ELASTIC, **spec}
    )


@kubedl_scenario(real=False, thorough=True)
async def test_01_objects(world: TrainingWorld) -> None:
    await world.submit(seed_job())
    await world.running("resnet", 2)
    assert sorted(world.pods) == sorted(world.services) == ["resnet-master-0", "resnet-worker-0"]
    for service in world.services.values():
        assert service["spec"]["clusterIP"] == "None"
        assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [("pytorchjob-port", 23456)]


@kubedl_scenario(real=False)
async def test_02_workers_wait_for_the_master(world: SimulatedKubedl) -> None:
    job = kubedl("a", master=replicas(fate=runs(unplaced=True)), worker=replicas(2, fate=runs()), **ELASTIC)
    await world.submit(job)
    await world.until(lambda: "a-master-0" in world.pods)
    await world.rest(30)
    assert (list(world.pods), list(world.services)) == (["a-master-0"], ["a-master-0"])


@kubedl_scenario(real=False)
async def test_03_arguments(world: SimulatedKubedl) -> None:
    await world.submit(seed_job())
    await world.running("resnet", 2)
    uid = uid_of(world.job("resnet"))
    assert world.births["resnet-worker-0"][-1]["spec"]["containers"][0]["args"] == [
        "--rdzv_backend=etcd",
        "--rdzv_endpoint=etcd-service:2379",
        f"--rdzv_id=resnet-{uid[:8]}",
        "--nproc_per_node=1",
        "--nnodes=1:3",
        "train.py",
        "--lr=0.1",
    ]
    assert "args" not in world.births["resnet-master-0"][-1]["spec"]["containers"][0]


@kubedl_scenario()
async def test_04_running_status(world: TrainingWorld) -> None:
    await world.submit(kubedl(master=replicas(fate=runs()), worker=replicas(1, fate=runs())))
    await world.running("a", 2)
    await world.until(lambda: world.replica_counts("a") == {"Master": {"active": 1}, "Worker": {"active": 1}})
    assert world.conditions("a") == RUNNING
    assert world.message("a", "Running") == "PyTorchJob a is running."


@kubedl_scenario(real=False)
async def test_19_elastic_off(world: SimulatedKubedl) -> None:
    await world.submit(seed_job(enableElastic=False))
    await world.running("resnet", 2)
    assert list(world.services) == ["resnet-master-0"]
    assert world.births["resnet-worker-0"][-1]["spec"]["containers"][0]["args"] == ["train.py", "--lr=0.1"]


@kubedl_scenario(real=False)
async def test_21_environment(world: SimulatedKubedl) -> None:
    await world.submit(kubedl(master=replicas(fate=runs()), worker=replicas(2, fate=runs())))
    await world.running("a", 3)
    common = {"MASTER_PORT": "23456", "WORLD_SIZE": "3", "PYTHONUNBUFFERED": "1"}
    assert world.environment("a-master-0") == {"MASTER_ADDR": "localhost", "RANK": "0", **common}
    assert world.environment("a-worker-1") == {"MASTER_ADDR": "a-master-0", "RANK": "2", **common}
    assert list(world.services) == ["a-master-0"]


@kubedl_scenario(real=False, thorough=True)
async def test_22_retryable_exit_codes(world: SimulatedKubedl) -> None:
    for number, code in enumerate((137, 143, 130, 138)):
        name = f"retried-{number}"
        worker = replicas(1, Rule(exits(code), attempt=0), fate=runs(), restartPolicy="ExitCode")
        await world.submit(kubedl(name, master=replicas(fate=runs()), worker=worker))
        await world.until(lambda name=name: len(set(world.uids[f"{name}-worker-0"])) == 2)  # type: ignore[misc]
        await world.running(name, 2)


@kubedl_scenario(real=False)
async def test_22_other_exit_codes_fail_the_job(world: SimulatedKubedl) -> None:
    for code in (1, 2, 3, 127, 139):
        name = f"failed-{code}"
        worker = replicas(1, fate=exits(code), restartPolicy="ExitCode")
        await world.submit(kubedl(name, master=replicas(fate=runs()), worker=worker))
        assert await world.ended(name) == "Failed"
        assert world.status(name)["completionTime"]
        assert world.message(name, "Failed") == f"PyTorchJob {name} is failed because 1 Worker replica(s) failed."


@kubedl_scenario(real=False)
async def test_24_evicted_pods_are_created_again(world: SimulatedKubedl) -> None:
    for policy in ("ExitCode", "OnFailure"):
        name = f"a-{policy.lower()}"
        evicted = Rule(exits(1, pod_reason="Evicted"), attempt=0)
        worker = replicas(1, evicted, fate=runs(), restartPolicy=policy)
        await world.submit(kubedl(name, master=replicas(fate=runs()), worker=worker, backoffLimit=1))
        await world.until(lambda name=name: len(set(world.uids[f"{name}-worker-0"])) == 2)  # type: ignore[misc]
        await world.running(name, 2)


@kubedl_scenario(real=False, thorough=True)
async def test_25_backoff(world: SimulatedKubedl) -> None:
    worker = replicas(1, fate=exits(137), restartPolicy="ExitCode")
    await world.submit(kubedl(master=replicas(fate=runs()), worker=worker, backoffLimit=2))
    assert await world.ended("a") == "Failed"
    assert world.message("a", "Failed") == "Job a has failed because it has reached the specified backoff limit"
    assert len(set(world.uids["a-worker-0"])) == 3


@kubedl_scenario(real=False)
async def test_26_deadline(world: SimulatedKubedl) -> None:
    await world.submit(kubedl(master=replicas(fate=runs()), activeDeadlineSeconds=60))
    assert await world.ended("a") == "Failed"
    assert world.message("a", "Failed") == "Job a has failed because it was active longer than specified deadline"


@kubedl_scenario(real=False)
async def test_27_ttl(world: SimulatedKubedl) -> None:
    await world.submit(kubedl(master=replicas(fate=exits(0)), ttlSecondsAfterFinished=30))
    assert await world.ended("a") == "Succeeded"
    await world.rest(29)
    assert "a" in world.frameworks
    await world.rest(2)
    assert "a" not in world.frameworks


@kubedl_scenario(real=False)
async def test_28_clean_up(world: SimulatedKubedl) -> None:
    left = {}
    for policy in ("All", "Running", "None"):
        name = f"a-{policy.lower()}"
        # The job is elastic, so that it ends while a worker that was scaled away would still run.
        master = replicas(fate=exits(0, after=5.0))
        await world.submit(kubedl(name, master=master, worker=replicas(1), cleanPodPolicy=policy))
        assert await world.ended(name) == "Succeeded"
        await world.rest(60)
        left[policy] = (list(world.pods_of(name)), [each for each in world.services if each.startswith(name)])
    assert left == {
        "All": ([], []),
        "Running": (["a-running-master-0", "a-running-worker-0"], ["a-running-master-0"]),
        "None": (["a-none-master-0", "a-none-worker-0"], ["a-none-master-0"]),
    }


@kubedl_scenario(real=False)
async def test_28_running_pods_of_a_failed_job_are_deleted(world: SimulatedKubedl) -> None:
    worker = replicas(2, Rule(exits(1), index=0), fate=runs(), restartPolicy="ExitCode")
    await world.submit(kubedl(master=replicas(fate=runs()), worker=worker))
    assert await world.ended("a") == "Failed"
    await world.until(lambda: world.pods_of("a") == {"a-worker-0": "Failed"})


@kubedl_scenario(real=False)
async def test_29_success(world: SimulatedKubedl) -> None:
    worker = replicas(2, Rule(exits(0, after=60.0), index=1), fate=exits(0))
    await world.submit(kubedl(master=replicas(fate=exits(0)), worker=worker))
    await world.until(lambda: world.pods_of("a").get("a-worker-0") == "Succeeded")
    assert await world.ended("a") == "Succeeded"
    assert world.pods_of("a")["a-worker-1"] == "Succeeded"
    assert ("Running", "True", "JobRunning") not in world.conditions("a")
    assert world.replica_counts("a") == {"Master": {"succeeded": 1}, "Worker": {"succeeded": 2}}


@kubedl_scenario(real=False)
async def test_31_one_group_per_role(world: SimulatedKubedl) -> None:
    await world.submit(seed_job())
    await world.running("resnet", 2)
    await world.resize_workers("resnet", 3)
    await world.running("resnet", 4)
    least = {name: group["spec"]["minMember"] for name, group in world.groups.items()}
    assert least == {"resnet-master": 1, "resnet-worker": 1}


@kubedl_scenario(real=False, thorough=True)
async def test_workers_come_and_go(world: TrainingWorld) -> None:
    await world.submit(seed_job())
    await world.running("resnet", 2)
    await world.resize_workers("resnet", 3)
    await world.running("resnet", 4)
    await world.resize_workers("resnet", 1)
    await world.running("resnet", 2)
    await world.until(lambda: sorted(world.services) == ["resnet-master-0", "resnet-worker-0"])
