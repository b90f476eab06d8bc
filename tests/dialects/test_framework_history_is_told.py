"""History: one line of JSON for everything the status is about to forget."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kit.capabilities import capability
from kit.frameworks import UID, FrameworkWorld, framework, pod_of, role, running, stamped
from shoal.dialects.capabilities import HistorySnapshots, Snapshot
from shoal.dialects.framework import DIALECT, settings
from shoal.operator.job_events import log_snapshot

API = "frameworkcontroller.microsoft.com/v1"


HISTORY = capability(DIALECT, HistorySnapshots)


def told(world: FrameworkWorld) -> list[str]:
    return [snapshot.trigger for snapshot in world.told if snapshot is not None]


def two_attempts_each() -> FrameworkWorld:
    """Scenario 6: two task attempts in each of two framework attempts."""
    world = running(framework(role(retry=(True, 1)), retry=(True, 1)))
    while world.pods:
        world.tick(5)
        world.exits("worker-0", 1)
        world.settle()
        world.run()
        world.settle()
    return world


def test_scenario_48_history(caplog: pytest.LogCaptureFixture):
    world = two_attempts_each()
    with caplog.at_level("INFO", "shoal.history"):
        for snapshot in world.told:
            log_snapshot(snapshot)
    lines = caplog.messages
    objects = [json.loads(re.search(": ObjectSnapshot: (.+)", text)[1]) for text in lines]  # type: ignore[index]

    assert told(world) == ["OnTaskRetry", "OnFrameworkRetry", "OnTaskRetry"]
    assert all(text.startswith("default/fw: On") for text in lines)
    assert [(each["apiVersion"], each["kind"]) for each in objects] == [
        (API, "Task"),
        (API, "Framework"),
        (API, "Task"),
    ]
    retried = objects[1]["status"]
    assert (retried["state"], retried["attemptStatus"]["id"]) == ("AttemptCompleted", 0)
    assert retried["attemptStatus"]["completionStatus"]["code"] == 1
    assert objects[1]["spec"] == world.manifest["spec"]


def test_a_retried_task_is_told_whole():
    world = two_attempts_each()
    first: Snapshot = world.told[0]
    state = world.steps[0].state
    role_uid, task_uid = state.roles[0].instance, state.roles[0].tasks[0].instance
    run_owner = first.object["metadata"]["annotations"]["FC_CONFIGMAP_UID"]

    assert first.object["metadata"] == {
        "name": "fw-worker-0",
        "namespace": "default",
        "uid": task_uid,
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": "2026-11-16T04:00:00Z",
        "labels": {"FC_FRAMEWORK_NAME": "fw", "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "0"},
        "annotations": {
            "FC_FRAMEWORK_NAMESPACE": "default",
            "FC_FRAMEWORK_NAME": "fw",
            "FC_TASKROLE_NAME": "worker",
            "FC_TASK_INDEX": "0",
            "FC_CONFIGMAP_NAME": "fw-attempt",
            "FC_FRAMEWORK_UID": UID,
            "FC_FRAMEWORK_ATTEMPT_ID": "0",
            "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"0_{run_owner}",
            "FC_CONFIGMAP_UID": run_owner,
            "FC_TASKROLE_UID": role_uid,
        },
    }
    assert first.object["spec"] == world.manifest["spec"]["taskRoles"][0]["task"]
    status = first.object["status"]
    assert (status["state"], status["attemptStatus"]["id"]) == ("AttemptCompleted", 0)
    assert status["attemptStatus"]["completionStatus"]["code"] == 1


def test_scenario_48_scale_down_tells_the_deleted_task():
    world = running(framework(role("worker", 2)))
    world.tick(60)
    world.submit(taskRoles=[role("worker", 1)])
    world.settle()
    (snapshot,) = world.told

    assert snapshot.trigger == "OnTaskDeletion"
    assert snapshot.object["metadata"]["name"] == "fw-worker-1"
    assert snapshot.object["metadata"]["deletionTimestamp"] == "2026-11-16T04:01:00Z"
    assert snapshot.object["metadata"]["deletionGracePeriodSeconds"] == 0
    assert snapshot.object["status"]["attemptStatus"]["completionStatus"]["code"] == -230


def test_a_task_of_a_role_that_is_gone_has_no_spec():
    world = running(framework(role("a"), role("b")))
    world.submit(taskRoles=[role("b")])
    world.settle()

    assert [(snapshot.trigger, snapshot.object["spec"]) for snapshot in world.told] == [("OnTaskDeletion", None)]


def test_deleted_objects_are_told_with_their_kind():
    manifest = framework(role())
    pod = stamped(pod_of(manifest, "worker", 0))
    bare = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    bare_pod = {key: value for key, value in pod.items() if key not in ("apiVersion", "kind")}

    assert HISTORY.deletion_snapshot(bare, settings()) == Snapshot("default/fw", "OnFrameworkDeletion", manifest)
    assert HISTORY.deletion_snapshot(bare_pod, settings()) == Snapshot("default/fw", "OnPodDeletion", pod)
    assert HISTORY.deletion_snapshot({"kind": "Pod", "metadata": {"name": "x"}}, settings()) is None


SWITCHES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "framework retries": ({"framework": {"onFrameworkRetry": False}}, ["OnTaskRetry", "OnTaskRetry"]),
    "task retries": ({"task": {"onTaskRetry": False}}, ["OnFrameworkRetry"]),
}


@pytest.mark.parametrize(("switches", "left"), SWITCHES.values(), ids=list(SWITCHES))
def test_each_moment_can_be_switched_off(switches: dict[str, Any], left: list[str]):
    world = two_attempts_each()
    config = settings({"logObjectSnapshot": switches})
    again = [
        HISTORY.snapshot(world.manifest, step.state, notice, config, world.now)
        for step in world.steps
        for notice in step.notices
    ]

    assert [snapshot.trigger for snapshot in again if snapshot is not None] == left


def test_deletions_can_be_switched_off():
    manifest = framework(role())
    off = settings(
        {"logObjectSnapshot": {"framework": {"onFrameworkDeletion": False}, "pod": {"onPodDeletion": False}}}
    )

    assert HISTORY.deletion_snapshot(manifest, off) is None
    assert HISTORY.deletion_snapshot(stamped(pod_of(manifest, "worker", 0)), off) is None
