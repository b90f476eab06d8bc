"""Volcano Jobs and what happens less often: restarts in place, broken gangs, disruptions, partitions, closed queues."""

from __future__ import annotations

from typing import Any

import pytest

from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import SimulatedVolcano, scenario
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import name_of, uid_of
from shoal.scheduler.api.pod_groups import COMMAND, POD_GROUP, QUEUE


async def tell(world: SimulatedVolcano, name: str, **status: Any) -> None:
    """The node tells something about a pod."""
    patch = {"metadata": {"uid": uid_of(world.pods[name])}, "status": status}
    await world.gate.patch(POD, name, NAMESPACE, patch=patch, subresource="status")


def container(restarts: int, state: dict[str, Any]) -> dict[str, Any]:
    return {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": restarts, "state": state}


@scenario(real=False)
async def test_containers_that_restart_too_often_raise_task_failed(world: SimulatedVolcano) -> None:
    flaky = task(replicas=2, fate=runs(), maxRetry=3, pod={"restartPolicy": "OnFailure"})
    await world.submit(vcjob("a", flaky, policies=[policy("TaskFailed", "AbortJob")]))
    await world.up("a", 2)
    await tell(world, "a-worker-0", containerStatuses=[container(2, {"running": {}})])
    await world.rest(5)
    assert world.phase("a") == "Running"
    await tell(world, "a-worker-1", containerStatuses=[container(1, {"running": {}})])
    await world.in_phase("a", "Aborted")


@scenario(real=False)
async def test_a_gang_that_cannot_be_whole_raises_unknown_also_after_a_restart(world: SimulatedVolcano) -> None:
    await world.submit(vcjob("a", task(replicas=2, fate=runs()), policies=[policy("Unknown", "RestartJob")]))
    for count in (1, 2):
        await world.up("a", 2)
        await world.until(lambda: (world.group("a").get("status") or {}).get("phase") == "Running")
        group = world.group("a")
        await world.gate.patch(POD_GROUP, name_of(group), NAMESPACE, patch={"status": {"phase": "Unknown"}})
        await world.until(lambda count=count: world.status("a").get("retryCount") == count)
    await world.up("a", 2)
    assert world.status("a")["version"] == 2


@scenario(real=False)
async def test_a_preempted_pod_is_evicted_although_it_failed_first(world: SimulatedVolcano) -> None:
    rules = [policy("PodFailed", "TerminateJob"), policy("PodEvicted", "RestartTask")]
    await world.submit(vcjob("a", task(replicas=2, fate=runs()), policies=rules))
    await world.up("a", 2)
    ended = container(0, {"terminated": {"exitCode": 137, "finishedAt": "2030-01-01T00:00:01Z"}})
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    await tell(world, "a-worker-0", phase="Failed", conditions=[disrupted], containerStatuses=[ended])
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 2)


@scenario(real=False)
async def test_a_failure_is_answered_after_its_time_also_by_another_operator(world: SimulatedVolcano) -> None:
    worker = task(replicas=2, of={1: exits(1)}, fate=runs(), in_runs={1: runs()})
    await world.submit(vcjob("a", worker, policies=[policy("PodFailed", "RestartJob", "30s")]))
    await world.until(lambda: world.counts("a") == {"running": 1, "failed": 1})
    await world.rest(10)
    await world.restart_operator()
    await world.rest(10)
    assert world.status("a").get("retryCount", 0) == 0
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 2)


@scenario(real=False)
async def test_a_partition_restarts_whole_and_alone(world: SimulatedVolcano) -> None:
    cut = {"totalPartitions": 2, "partitionSize": 2}
    worker = task(replicas=4, fate=runs(), partitionPolicy=cut, policies=[policy("PodEvicted", "RestartPartition")])
    await world.submit(vcjob("a", worker))
    await world.up("a", 4)
    before = world.uids_of("a")
    await world.delete_pod("a-worker-3")
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 4)
    after = world.uids_of("a")
    assert {name for name in before if before[name] != after[name]} == {"a-worker-2", "a-worker-3"}


@scenario(real=False)
async def test_a_queue_that_closes_lets_nobody_in_and_opens_again(world: SimulatedVolcano) -> None:
    await world.set_room({"cpu": "1", "memory": "8Gi", "pods": "10"})
    await world.submit(vcjob("running", task(fate=runs(), requests={"cpu": "1"})))
    await world.up("running", 1)
    await world.submit(vcjob("waiting", task(fate=runs(), requests={"cpu": "1"})))
    await order_queue(world, "CloseQueue")
    await world.until(lambda: (world.queues["default"].get("status") or {}).get("state") == "Closing")
    with pytest.raises(ApiError, match="can only submit job to queue with state `Open`, it is `Closing`"):
        await world.submit(vcjob("late", task()))
    await world.set_room({"cpu": "4", "memory": "8Gi", "pods": "10"})
    await world.rest(20)
    assert (world.phase("running"), world.pods_of("waiting")) == ("Running", {})
    await order_queue(world, "OpenQueue")
    await world.up("waiting", 1)


async def order_queue(world: SimulatedVolcano, action: str) -> None:
    target = {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": "default"}
    order = {"metadata": {"generateName": "q-"}, "action": action, "target": target}
    await world.user.create(COMMAND, order, NAMESPACE)
