"""Acceptance scenarios of Volcano Jobs: from the manifest to running pods (7 to 10, 26)."""

from __future__ import annotations

from kit.pod_behavior import runs
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import SimulatedVolcano, VolcanoWorld, scenario
from shoal.cli.describe_page import DescribeContext as Surroundings
from shoal.cli.describe_page import describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.kube.objects import Obj, annotations_of, labels_of, uid_of

NO_ROOM = "needs 3 cpu, and admitted groups may request 2 in this cluster, so request less or add nodes"


def env_of(pod: Obj) -> dict[str, str]:
    """What is written plainly into the environment of a pod's first container."""
    return {e["name"]: e["value"] for e in pod["spec"]["containers"][0]["env"] if "value" in e}


@scenario(real=False)
async def test_7_without_room_the_group_waits_and_no_pod_exists(world: SimulatedVolcano) -> None:
    await world.set_room({"cpu": "2", "memory": "8Gi", "pods": "10"})
    await world.submit(vcjob("big", task(replicas=3, fate=runs(), requests={"cpu": "1"})))
    await world.until(lambda: (world.group("big").get("status") or {}).get("phase") == "Pending")
    await world.rest(30)
    assert (world.phase("big"), world.pods_of("big")) == ("Pending", {})
    (condition,) = world.group("big")["status"]["conditions"]
    assert condition["message"] == NO_ROOM
    found, group = FoundJob(world.job("big"), world.dialect), {**world.group("big"), "kind": "PodGroup"}
    told = describe_job(found, Surroundings([], [], None, world.cluster.clock.now(), (group,)))
    assert f"  The PodGroup is not admitted: {NO_ROOM}.\n" in told

    await world.set_room({"cpu": "3", "memory": "8Gi", "pods": "10"})
    await world.up("big", 3)


@scenario(kubernetes=True)
async def test_8_pods_carry_who_they_are_and_the_job_runs_when_enough_do(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task("ps", 1, fate=runs()), task("worker", 2, fate=runs())))
    await world.up("a", 3)
    job = world.job("a")
    assert sorted(world.pods) == ["a-ps-0", "a-worker-0", "a-worker-1"]
    pod = world.pods["a-worker-1"]
    assert {key: value for key, value in labels_of(pod).items() if key.startswith("volcano.sh/")} == {
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "a",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-namespace": world.namespace,
        "volcano.sh/queue-name": "default",
    }
    ours = ("kit", "shoal.dev/")
    assert {key: value for key, value in annotations_of(pod).items() if not any(each in key for each in ours)} == {
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": "a",
        "volcano.sh/queue-name": "default",
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": "a-worker",
        "scheduling.k8s.io/group-name": f"a-{uid_of(job)}",
    }
    assert (pod["spec"]["schedulerName"], world.status("a")["minAvailable"]) == (job["spec"]["schedulerName"], 3)
    assert world.group("a")["spec"] == {
        "minMember": 3,
        "minTaskMember": {"ps": 1, "worker": 2},
        "minResources": {"pods": "3", "count/pods": "3"},
        "queue": "default",
    }
    assert world.phases("a") == ["Pending", "Running"]


@scenario(kubernetes=True)
async def test_9_every_container_knows_its_index_and_its_peers(world: VolcanoWorld) -> None:
    plugins: Obj = {"env": [], "svc": []}
    tasks = task("ps", 1, fate=runs()), task("my-worker", 2, fate=runs())
    await world.submit(vcjob("a", *tasks, plugins=plugins))
    await world.up("a", 3)
    pod = world.pods["a-my-worker-1"]
    assert env_of(pod)["VC_TASK_INDEX"] == env_of(pod)["VK_TASK_INDEX"] == "1"
    referred = [e["name"] for e in pod["spec"]["containers"][0]["env"] if "configMapKeyRef" in e.get("valueFrom", {})]
    assert referred == ["VC_PS_HOSTS", "VC_PS_NUM", "VC_MY_WORKER_HOSTS", "VC_MY_WORKER_NUM"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("a-my-worker-1", "a")
    assert world.config_maps["a-svc"]["data"] == {
        "ps.host": "a-ps-0.a",
        "my_worker.host": "a-my-worker-0.a\na-my-worker-1.a",
        "VC_PS_HOSTS": "a-ps-0.a",
        "VC_PS_NUM": "1",
        "VC_MY_WORKER_HOSTS": "a-my-worker-0.a,a-my-worker-1.a",
        "VC_MY_WORKER_NUM": "2",
    }
    assert world.services["a"]["spec"]["clusterIP"] == "None"
    assert world.status("a")["controlledResources"] == {"plugin-env": "env", "plugin-svc": "svc"}


@scenario()
async def test_10_ranks_of_pytorch_count_from_the_master(world: VolcanoWorld) -> None:
    tasks = task("master", 1, fate=runs()), task("worker", 3, fate=runs())
    await world.submit(vcjob("a", *tasks, plugins={"pytorch": []}))
    await world.up("a", 4)
    seen = {name: {k: v for k, v in env_of(pod).items() if "FC" not in k} for name, pod in sorted(world.pods.items())}
    common = {"MASTER_ADDR": "a-master-0.a", "MASTER_PORT": "23456", "WORLD_SIZE": "4"}
    assert seen == {
        "a-master-0": {**common, "RANK": "0"},
        "a-worker-0": {**common, "RANK": "1"},
        "a-worker-1": {**common, "RANK": "2"},
        "a-worker-2": {**common, "RANK": "3"},
    }
    assert world.job("a")["spec"]["plugins"] == {"pytorch": [], "svc": []}


@scenario(kubernetes=True)
async def test_26_a_master_starts_after_its_workers_although_all_must_be_placeable(world: VolcanoWorld) -> None:
    tasks = task("master", 1, fate=runs(), after=["worker"]), task("worker", 2, fate=runs())
    await world.submit(vcjob("a", *tasks, minAvailable=3))
    await world.up("a", 3)
    born = {name: pods[0]["metadata"]["creationTimestamp"] for name, pods in world.births.items()}
    assert list(world.births)[-1] == "a-master-0"
    assert born["a-master-0"] >= max(born["a-worker-0"], born["a-worker-1"])
    members = sorted((g["spec"]["minMember"], sorted(g["spec"]["minTaskMember"])) for g in world.groups.values())
    assert members == [(1, ["master"]), (2, ["worker"])]
