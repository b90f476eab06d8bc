"""PyTorchJobs of Kubeflow, by the numbers of their specification."""

from __future__ import annotations

from kit.pod_behavior import Rule, exits, runs
from kit.training_jobs import kubeflow, replicas
from kit.training_world import SimulatedKubeflow, TrainingWorld, kubeflow_scenario
from shoal.kube.objects import uid_of

ELASTIC = {"minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "c10d"}


@kubeflow_scenario(real=False, thorough=True)
async def test_33_workers_without_a_master(world: SimulatedKubeflow) -> None:
    worker = replicas(2, Rule(exits(0, after=60.0), index=1), fate=runs())
    await world.submit(kubeflow(worker=worker, elasticPolicy=ELASTIC))
    await world.running("a", 2)
    found = world.environment("a-worker-1")
    assert (found["PET_RDZV_ENDPOINT"], found["PET_NNODES"]) == ("a-worker-0:23456", "1:3")
    assert "RANK" not in found
    assert sorted(world.services) == ["a-worker-0", "a-worker-1"]
    assert await world.ended("a") == "Succeeded"


@kubeflow_scenario(thorough=False)
async def test_a_master_and_workers(world: TrainingWorld) -> None:
    await world.submit(kubeflow(master=replicas(fate=runs()), worker=replicas(2, fate=runs()), nprocPerNode="4"))
    await world.until(lambda: len(world.pods_of("a")) == 3)
    assert world.environment("a-worker-1") == {
        "PYTHONUNBUFFERED": "1",
        "PET_NPROC_PER_NODE": "4",
        "MASTER_ADDR": "a-master-0",
        "MASTER_PORT": "23456",
        "PET_MASTER_ADDR": "a-master-0",
        "PET_MASTER_PORT": "23456",
        "RANK": "2",
        "PET_NODE_RANK": "2",
        "WORLD_SIZE": "12",
        "PET_NNODES": "3",
    }
    (waits,) = world.births["a-worker-0"][-1]["spec"]["initContainers"]
    assert waits["name"] == "init-pytorch"


@kubeflow_scenario(real=False, thorough=True)
async def test_34_suspend(world: SimulatedKubeflow) -> None:
    await world.submit(kubeflow(master=replicas(fate=runs()), worker=replicas(1, fate=runs())))
    await world.running("a", 2)
    await world.patch("a", {"op": "add", "path": "/spec/runPolicy/suspend", "value": True})
    await world.until(lambda: not world.pods and not world.services and not world.groups)
    await world.until(lambda: world.phase("a") == "Suspended")
    assert ("Running", "False", "PyTorchJobSuspended") in world.conditions("a")
    assert "startTime" not in world.status("a")
    await world.patch("a", {"op": "add", "path": "/spec/runPolicy/suspend", "value": False})
    await world.running("a", 2)
    assert ("Suspended", "False", "PyTorchJobResumed") in world.conditions("a")


@kubeflow_scenario(real=False)
async def test_35_exit_code(world: SimulatedKubeflow) -> None:
    worker = replicas(1, Rule(exits(129), attempt=0), fate=runs(), restartPolicy="ExitCode")
    await world.submit(kubeflow(worker=worker))
    await world.until(lambda: len(set(world.uids["a-worker-0"])) == 2)
    await world.running("a", 1)


@kubeflow_scenario(real=False)
async def test_a_failed_pod_is_created_again_on_failure(world: SimulatedKubeflow) -> None:
    evicted = Rule(exits(1, pod_reason="Evicted"), attempt=0)
    await world.submit(kubeflow(worker=replicas(1, evicted, fate=runs())))
    await world.until(lambda: len(set(world.uids["a-worker-0"])) == 2)
    await world.running("a", 1)


@kubeflow_scenario(real=False)
async def test_without_retries_a_failed_pod_fails_the_job(world: SimulatedKubeflow) -> None:
    await world.submit(kubeflow(worker=replicas(2, Rule(exits(1), index=0), fate=runs(), restartPolicy="Never")))
    assert await world.ended("a") == "Failed"
    assert world.message("a", "Failed") == "PyTorchJob a is failed because 1 Worker replica(s) failed."


@kubeflow_scenario(real=False)
async def test_the_master_alone_decides(world: SimulatedKubeflow) -> None:
    await world.submit(kubeflow(master=replicas(fate=exits(0, after=9.0)), worker=replicas(1, fate=runs())))
    assert await world.ended("a") == "Succeeded"


@kubeflow_scenario(real=False)
async def test_one_group_follows_the_number_of_pods(world: SimulatedKubeflow) -> None:
    await world.submit(kubeflow(master=replicas(fate=runs()), worker=replicas(2, fate=runs())))
    await world.running("a", 3)
    uids = {name: uid_of(group) for name, group in world.groups.items()}
    await world.resize_workers("a", 3)
    await world.until(lambda: {g["spec"]["minMember"] for g in world.groups.values()} == {4})
    assert {name: uid_of(group) for name, group in world.groups.items()} == uids


@kubeflow_scenario(real=False)
async def test_a_job_of_another_manager_is_left_alone(world: SimulatedKubeflow) -> None:
    await world.submit(kubeflow(worker=replicas(1), run={"managedBy": "kueue.x-k8s.io/multikueue"}))
    await world.rest(60)
    assert (world.pods, world.status("a")) == ({}, {})
