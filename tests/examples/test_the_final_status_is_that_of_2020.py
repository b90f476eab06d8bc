"""The story of the elastic manifest, 4 → 2 → 3, with light processes: the object it leaves is the one of 2020.

The manifest is the example's, with other commands: a worker ends with success when something is written to its pipe.
Expected is, field by field, what FrameworkController left of the run that the manifest comes from, with marks in place
of ids, times and addresses. It had no `instanceUID` of roles and tasks and no `runTime` of tasks and of the whole;
later controllers have them, and so has Shoal.
"""

from __future__ import annotations

from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kit.embedded_world import RealWorld
from kit.light_elastic_job import Pipes, light, patch_to
from kit.scenario import NAMESPACE
from shoal.kube.kinds import SERVICE
from shoal.kube.objects import Obj, name_of

pytestmark = pytest.mark.processes

TIME, ID, ADDRESS = "a time", "an id", "an address"
MARKS = {"podIP": ADDRESS, "podHostIP": ADDRESS, "podNodeName": ADDRESS}
NEVER = {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}
OK = {"code": 0, "diagnostics": "Pod succeeded", "phrase": "Succeeded", "type": {"attributes": [], "name": "Succeeded"}}
CUT_OFF = {
    "code": -220,
    "diagnostics": "Stop to complete current FrameworkAttempt",
    "phrase": "FrameworkAttemptCompletion",
    "type": {"attributes": ["Permanent"], "name": "Failed"},
}
DONE = {**OK, "pod": {"containers": [{"code": 0, "name": "pytorch", "reason": "Completed"}]}}
TIMES = {"startTime": TIME, "runTime": TIME, "completionTime": TIME}


def task(role: str, index: int, completion: Obj) -> Obj:
    return {
        **TIMES,
        "index": index,
        "instanceUID": ID,
        "state": "Completed",
        "transitionTime": TIME,
        "deletionPending": False,
        "retryPolicyStatus": NEVER,
        "attemptStatus": {
            **TIMES,
            "id": 0,
            "instanceUID": ID,
            "podName": f"pet-{role}-{index}",
            "podUID": ID,
            "podNodeName": ADDRESS,
            "podIP": ADDRESS,
            "podHostIP": ADDRESS,
            "completionStatus": completion,
        },
    }


def role(name: str, *tasks: Obj) -> Obj:
    return {"name": name, "instanceUID": ID, "podGracefulDeletionTimeoutSec": 1800, "taskStatuses": list(tasks)}


FINAL = {
    **TIMES,
    "state": "Completed",
    "transitionTime": TIME,
    "retryPolicyStatus": NEVER,
    "attemptStatus": {
        **TIMES,
        "id": 0,
        "instanceUID": ID,
        "configMapName": "pet-attempt",
        "configMapUID": ID,
        "completionStatus": {
            **OK,
            "trigger": {
                "message": "SucceededTaskCount 3 has reached MinSucceededTaskCount 3 in the TaskRole",
                "taskRoleName": "worker",
                "taskIndex": 2,  # of the worker that ended last; in 2020 that was the second
            },
        },
        "taskRoleStatuses": [
            role("etcd", task("etcd", 0, CUT_OFF)),
            role("worker", *(task("worker", index, DONE) for index in range(3))),
        ],
    },
}


def marked(value: Any, key: str = "") -> Any:
    """With marks in place of what differs from run to run."""
    if isinstance(value, dict):
        return {name: marked(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner) for inner in value]
    if value and key.endswith(("Time", "UID")):
        return TIME if key.endswith("Time") else ID
    return MARKS.get(key, value) if value else value


def identities(world: RealWorld) -> dict[str, tuple[str, str]]:
    """Of every task: which instance it is, and in which pod."""
    return {
        each["attemptStatus"]["podName"]: (each["instanceUID"], each["attemptStatus"]["podUID"])
        for name in ("etcd", "worker")
        for each in world.tasks("pet", name)
    }


async def all_running(world: RealWorld, workers: int) -> dict[str, tuple[str, str]]:
    await world.until(
        lambda: (
            len(world.tasks("pet", "worker")) == workers
            and world.are_running("pet", workers, "worker")
            and world.are_running("pet", 1, "etcd")
        )
    )
    return identities(world)


async def test_four_two_three(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pipes = Pipes(tmp_path, stack)
        services, framework = light(pipes.command)
        async with RealWorld(tmp_path, capacity={"nvidia.com/gpu": "4"}) as world:
            for service in services:
                await world.user.create(SERVICE, service, NAMESPACE)
            await world.submit(deepcopy(framework))
            four = await all_running(world, 4)
            await world.patch("pet", *patch_to(2))
            two = await all_running(world, 2)
            await world.patch("pet", *patch_to(3))
            three = await all_running(world, 3)
            for index in range(3):  # within a second of each other, where the larger index counts as the later
                pipes.release(index)
                await world.until(lambda index=index: world.task("pet", index, "worker")["state"] == "Completed")
            await world.completed("pet")
            left = world.frameworks["pet"]
            kept = [name_of(each) for each in (await world.user.list(SERVICE, NAMESPACE)).items]

    assert marked(left["status"]) == FINAL
    assert two == {name: four[name] for name in ("pet-etcd-0", "pet-worker-0", "pet-worker-1")}
    assert {name: three[name] for name in two} == two
    assert not set(three["pet-worker-2"]) & set(four["pet-worker-2"])
    framework["spec"]["taskRoles"][1]["taskNumber"] = 3
    framework["spec"]["taskRoles"][1]["frameworkAttemptCompletionPolicy"]["minSucceededTaskCount"] = 3
    assert left["spec"] == {**framework["spec"], "description": ""}
    assert (world.pods, world.config_maps) == ({}, {})
    assert {"pet-etcd", "pet-worker"} <= set(kept)
    relations(left["status"])


def relations(status: Obj) -> None:
    """What ids and times have to do with each other."""
    attempt = status["attemptStatus"]
    etcd, worker = (each["taskStatuses"] for each in attempt["taskRoleStatuses"])
    assert attempt["instanceUID"] == f"0_{attempt['configMapUID']}"
    assert [each["attemptStatus"]["instanceUID"] for each in (*etcd, *worker)] == [
        f"0_{each['attemptStatus']['podUID']}" for each in (*etcd, *worker)
    ]
    assert status["startTime"] == attempt["startTime"]
    assert status["completionTime"] == status["transitionTime"] == attempt["completionTime"]
    assert etcd[0]["completionTime"] >= max(each["completionTime"] for each in worker)
    assert worker[2]["startTime"] >= worker[1]["startTime"]
