"""Acceptance scenarios that a virtual world plays with faults, once more on a whole cluster of our own.

A node that does not answer is one without an agent; what a kubelet would say of an eviction is written by hand for a
pod no node has; the operator dies with its whole cluster, is refused its pods, or is not shown them.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kit.embedded_world import RealWorld
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs, would_take_its_time
from kit.scenario import NAMESPACE, World
from shoal.cluster.client import DeleteOptions
from shoal.kube.errors import forbidden
from shoal.kube.kinds import NODE, POD
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes

GRACE = "taskRoles__0__task__podGracefulDeletionTimeoutSec"
NOWHERE = {"there": "none"}


def state(world: World, name: str) -> str | None:
    return world.task(name).get("state")


def ends(world: World, name: str, which: str) -> tuple[int, str, list[str]]:
    completion = world.task(name, 0, which)["attemptStatus"]["completionStatus"]
    return completion["code"], completion["phrase"], completion["type"]["attributes"]


async def test_scenario_23_forced_deletion_where_no_node_answers(tmp_path: Path) -> None:
    async with RealWorld(tmp_path) as world:
        await world.user.create(NODE, {"metadata": {"name": "ghost"}})
        await world.submit(fw("forced", role("worker", grace=1, fate=runs(), nodeName="ghost")))
        await world.submit(fw("waits", role("worker", grace=None, fate=runs(), nodeName="ghost")))
        for name in ("forced", "waits"):
            await world.until(lambda name=name: state(world, name) == "AttemptPreparing")
            await world.delete_pod(f"{name}-worker-0")
        await world.completed("forced")
        assert (world.code("forced"), world.codes("forced")) == (-101, [-101])
        assert (state(world, "waits"), "waits-worker-0" in world.pods) == ("AttemptDeleting", True)
        await world.set("waits", **{GRACE: 1})
        await world.completed("waits")
        assert (world.codes("waits"), world.pods) == ([-101], {})


async def test_scenario_34_forbidden_vs_quota_with_real_processes(tmp_path: Path) -> None:
    async with RealWorld(tmp_path) as world:
        world.pod_refusal = forbidden(POD, "quota-worker-0", "exceeded quota: compute, requested: pods=1")
        await world.submit(fw("quota", role("worker", 2, retry=(True, 1), fate=runs())))
        await world.rest(60)
        assert {task["state"] for task in world.tasks("quota")} == {"AttemptCreationPending"}
        world.pod_refusal = None
        await world.running("quota", 2)
        assert [task["attemptStatus"]["id"] for task in world.tasks("quota")] == [0, 0]
        world.pod_refusal = forbidden(POD, "denied-worker-0", "nobody may run this")
        await world.submit(fw("denied", role("worker", retry=(True, 1))))
        await world.completed("denied")
        assert ends(world, "denied", "worker") == (-310, "PodCreationUnknownError", [])
        retries = world.task("denied")["retryPolicyStatus"]
        assert (retries["totalRetriedCount"], retries["accountableRetriedCount"]) == (1, 1)


async def test_scenario_35_evicted_oom_unmatched_as_a_kubelet_would_tell(tmp_path: Path) -> None:
    out_of_memory = {
        "name": "main", "image": "scenario", "imageID": "", "ready": False, "restartCount": 0,
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-16T04:00:00Z"}},
    }  # fmt: skip
    told: dict[str, dict[str, Any]] = {
        "evicted": {"reason": "Evicted"},
        "oom": {"containerStatuses": [out_of_memory]},
        "strange": {"reason": "Foo"},
    }
    async with RealWorld(tmp_path) as world:
        unplaced = [role(name, 1, -1, -1, fate=runs(), nodeSelector=NOWHERE) for name in told]
        await world.submit(fw("ends", *unplaced, role("killed", 1, -1, -1, fate=exits(137))))
        for name, status in told.items():
            await world.until(lambda name=name: world.task("ends", 0, name).get("state") == "AttemptPreparing")
            patch = {"status": {"phase": "Failed", **status}}
            await world.user.patch(POD, f"ends-{name}-0", NAMESPACE, patch=patch, subresource="status")
        await world.completed("ends")
        assert {name: ends(world, "ends", name) for name in (*told, "killed")} == {
            "evicted": (-1000, "PodEvicted", ["Transient"]),
            "oom": (-1200, "ContainerDockerOOMKilled", ["Permanent"]),
            "strange": (-300, "PodFailedWithoutFailedContainer", []),
            "killed": (137, "ContainerSigKillReceived", ["Transient"]),
        }


async def test_scenario_38_crash_of_the_whole_cluster_between_create_and_record(tmp_path: Path) -> None:
    async with RealWorld(tmp_path) as world:
        store, never = world._loop._writer._write_state, asyncio.Event()

        async def store_until_there_is_a_pod(*told: Any) -> None:
            if world.uids.get("crash-worker-0"):
                await never.wait()
            await store(*told)

        world._loop._writer._write_state = store_until_there_is_a_pod  # type: ignore[method-assign]
        await world.submit(fw("crash", role("worker", fate=runs())))
        await world.until(lambda: bool(world.uids["crash-worker-0"]))
        await world.restart_operator()
        await world.running("crash", 1)
        task = world.task("crash")
        assert (task["attemptStatus"]["id"], task["retryPolicyStatus"]["totalRetriedCount"]) == (0, 0)
        assert [task["attemptStatus"]["podUID"]] == world.uids["crash-worker-0"]  # adopted, not created again
        assert list(world.pods) == ["crash-worker-0"]


async def test_scenario_40_creation_timeout_of_a_pod_nobody_shows_the_operator(tmp_path: Path) -> None:
    async with RealWorld(tmp_path, config={"objectLocalCacheCreationTimeoutSec": 5}) as world:
        world.machinery.store.observers.append(lambda *_: world.hidden.update(world.uids["unseen-worker-0"][:1]))
        await world.submit(fw("unseen", role("worker", retry=(True, 0), fate=exits(0))))
        await world.until(lambda: bool(world.hidden))
        await world.user.delete(POD, "unseen-worker-0", NAMESPACE, DeleteOptions(grace_seconds=0))
        await world.completed("unseen")
        first = [task for status in world.statuses["unseen"] for task in attempts_in(status) if task["id"] == 0]
        codes = {task["completionStatus"]["code"] for task in first if task["completionStatus"]}
        assert (codes, world.code("unseen"), world.codes("unseen")) == ({-111}, 0, [0])
        assert world.task("unseen")["retryPolicyStatus"]["accountableRetriedCount"] == 0


def attempts_in(status: Obj) -> list[Obj]:
    """Of every task, as one version of a status has them."""
    roles = status["attemptStatus"]["taskRoleStatuses"]
    return [task["attemptStatus"] for each in roles for task in each["taskStatuses"]]


@pytest.mark.parametrize("reached", ["AttemptDeletionPending", "AttemptDeleting"])
async def test_scenario_39_restart_of_the_whole_cluster_during_completion(tmp_path: Path, reached: str) -> None:
    async with RealWorld(tmp_path) as world:
        await world.submit(fw("stops", role("worker", 2, fate=runs(leaves_after=5)), retry=(True, 3)))
        await world.running("stops", 2)
        await would_take_its_time(world, *world.pods)
        await world.set("stops", executionType="Stop")
        await world.until(lambda: reached in world.states["stops"])
        await world.restart_operator()
        await world.completed("stops")
        assert (world.code("stops"), world.codes("stops"), world.attempt("stops")["id"]) == (-210, [-220, -220], 0)


async def test_scenario_48_history_as_the_log_has_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="shoal.history")
    async with RealWorld(tmp_path) as world:
        await world.submit(fw("past", role("worker", retry=(True, 1), fate=exits(1)), retry=(True, 1)))
        await world.completed("past")
        await world.submit(fw("less", role("worker", 2, fate=runs())))
        await world.running("less", 2)
        await world.rescale("less", 1)
        await world.until(lambda: len(world.tasks("less")) == 1)
    lines = [record.getMessage().split(": ", 3) for record in caplog.records if record.name == "shoal.history"]
    told: dict[str, list[Any]] = {}
    for _, trigger, _, whole in lines:
        told.setdefault(trigger, []).append(msgspec.json.decode(whole))
    (retry,) = told["OnFrameworkRetry"]
    assert (retry["kind"], retry["status"]["state"], retry["status"]["attemptStatus"]["id"]) == (
        "Framework", "AttemptCompleted", 0,
    )  # fmt: skip
    assert [task["kind"] for task in told["OnTaskRetry"]] == ["Task", "Task"]
    (removed,) = told["OnTaskDeletion"]
    assert (removed["metadata"]["name"], bool(removed["metadata"]["deletionTimestamp"])) == ("less-worker-1", True)


async def test_scenario_49_pod_phase_unknown_of_a_real_pod(tmp_path: Path) -> None:
    async with RealWorld(tmp_path) as world:
        await world.submit(fw("dark", role("worker", fate=runs())))
        await world.running("dark", 1)
        before = world.task("dark")
        for number, phase in enumerate(("Unknown", "Running")):
            await world.user.patch(
                POD, "dark-worker-0", NAMESPACE, patch={"status": {"phase": phase}}, subresource="status"
            )
            # By the time a whole job has passed by, the operator has seen this.
            await world.submit(fw(f"other{number}", role("worker", fate=exits(0, after=0))))
            await world.completed(f"other{number}")
            assert world.task("dark") == before
