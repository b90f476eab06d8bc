"""Acceptance scenarios of Volcano Jobs: lifecycle policies (11 to 17)."""

from __future__ import annotations

from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import SimulatedVolcano, VolcanoWorld, scenario
from shoal.kube.kinds import POD
from shoal.kube.objects import uid_of


@scenario(kubernetes=True)
async def test_11_a_pod_that_always_fails_gets_as_many_runs_as_max_retry_says(world: VolcanoWorld) -> None:
    job = vcjob("a", task(fate=exits(1)), policies=[policy("PodFailed", "RestartJob")], maxRetry=3)
    await world.submit(job)
    status = await world.in_phase("a", "Failed")
    assert (status["retryCount"], len(world.uids["a-worker-0"])) == (3, 3)
    await world.rest(10)
    assert (world.pods_of("a"), world.counts("a")) == ({"a-worker-0": "Failed"}, {"failed": 1})


@scenario()
async def test_12_max_retry_1_means_no_restart(world: VolcanoWorld) -> None:
    job = vcjob("a", task(fate=exits(1)), policies=[policy("PodFailed", "RestartJob")], maxRetry=1)
    await world.submit(job)
    await world.in_phase("a", "Failed")
    assert (world.pods_of("a"), len(world.uids["a-worker-0"])) == ({"a-worker-0": "Failed"}, 1)


@scenario()
async def test_13_a_tasks_policy_is_asked_before_the_jobs(world: VolcanoWorld) -> None:
    chief = task("chief", fate=exits(1, 2), policies=[policy("PodFailed", "CompleteJob")])
    await world.submit(vcjob("a", chief, task(fate=runs()), policies=[policy("PodFailed", "RestartJob")]))
    status = await world.in_phase("a", "Completed")
    assert (status.get("retryCount", 0), world.pods_of("a")) == (0, {"a-chief-0": "Failed"})

    chief = task("chief", fate=runs(), policies=[policy("PodFailed", "CompleteJob")])
    worker = task(in_runs={0: exits(1, 2)}, fate=runs())
    await world.submit(vcjob("b", chief, worker, policies=[policy("PodFailed", "RestartJob")]))
    await world.until(lambda: world.status("b").get("retryCount") == 1)
    await world.up("b", 2)
    assert world.status("b")["version"] == 1


@scenario()
async def test_14_an_exit_code_restarts_its_task_and_nobody_else(world: VolcanoWorld) -> None:
    flaky = task("flaky", 2, fate=runs(), policies=[policy(3, "RestartTask"), policy(137, "AbortJob")])
    await world.submit(vcjob("a", flaky, task(fate=runs())))
    await world.up("a", 3)
    before = world.uids_of("a")
    await end_with(world, "a-flaky-1", 3)
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 3)
    after = world.uids_of("a")
    assert {name: before[name] != after[name] for name in after} == {
        "a-flaky-0": True,
        "a-flaky-1": True,
        "a-worker-0": False,
    }
    assert world.status("a").get("version", 0) == 0

    await end_with(world, "a-flaky-0", 137)
    await world.in_phase("a", "Aborted")
    assert world.pods_of("a") == {"a-flaky-0": "Failed"}


async def end_with(world: VolcanoWorld, name: str, code: int) -> None:
    """The node tells that the pod's container ended with that code."""
    ended = {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": "2030-01-01T00:00:00Z"}}
    status = {"name": "main", "image": "scenario", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    patch = {
        "metadata": {"uid": uid_of(world.pods[name])},
        "status": {"phase": "Failed", "containerStatuses": [status]},
    }
    await world.user.patch(POD, name, NAMESPACE, patch=patch, subresource="status")


@scenario(real=False)
async def test_15_pending_for_too_long_aborts_and_pending_for_a_while_does_not(world: SimulatedVolcano) -> None:
    world.kubelet.step_seconds = 2  # four seconds until it runs
    slow = policy("PodPending", "AbortJob", "10s")
    await world.submit(vcjob("slow", task(fate=runs()), policies=[slow]))
    await world.up("slow", 1)
    await world.rest(20)
    assert world.phase("slow") == "Running"

    await world.submit(vcjob("stuck", task(fate=runs(unplaced=True)), policies=[slow]))
    await world.until(lambda: "stuck-worker-0" in world.pods)
    born = world.cluster.clock.now()
    await world.rest(5)
    await world.restart_operator()
    await world.in_phase("stuck", "Aborted")
    waited = (world.cluster.clock.now() - born).total_seconds()
    assert 9 <= waited < 20  # the moment a pod was made is written down in whole seconds
    assert world.phases("stuck")[-2:] == ["Aborting", "Aborted"]


@scenario()
async def test_16_a_deleted_pod_is_made_again_where_no_policy_speaks_of_it(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(replicas=2, fate=runs())))
    await world.up("a", 2)
    kept = uid_of(world.pods["a-worker-0"])
    await world.delete_pod("a-worker-1")
    await world.until(lambda: len(world.uids["a-worker-1"]) == 2)
    await world.up("a", 2)
    assert uid_of(world.pods["a-worker-0"]) == kept
    assert set(world.phases("a")) <= {"Pending", "Running"}
    assert world.status("a").get("retryCount", 0) == 0


@scenario(thorough=True, kubernetes=True, outages=False)
async def test_17_an_evicted_pod_restarts_its_task_once(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(replicas=2, fate=runs()), policies=[policy("PodEvicted", "RestartTask")]))
    await world.up("a", 2)
    before = world.uids_of("a")
    await world.delete_pod("a-worker-1")
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 2)
    await world.rest(30)
    assert {name: len(world.uids[name]) for name in before} == {"a-worker-0": 2, "a-worker-1": 2}
    assert (world.status("a")["retryCount"], world.status("a").get("version", 0)) == (1, 0)
