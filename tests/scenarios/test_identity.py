"""Acceptance scenarios 42, 43, 49, 50 and 52: what pods carry, whose they are, and what becomes of odd ones."""

from __future__ import annotations

from typing import Any

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.frameworks import role as plain_role
from kit.pod_behavior import Rule, pod_with, runs
from kit.scenario import NAMESPACE, World
from shoal.cluster.client import DeleteOptions, LogOptions
from shoal.kube.kinds import POD
from shoal.kube.objects import uid_of

STAMPS = (
    "FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME", "FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_CONFIGMAP_NAME",
    "FC_POD_NAME", "FC_FRAMEWORK_UID", "FC_FRAMEWORK_ATTEMPT_ID", "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID",
    "FC_CONFIGMAP_UID", "FC_TASKROLE_UID", "FC_TASK_UID", "FC_TASK_ATTEMPT_ID",
)  # fmt: skip
VARIABLES = (*STAMPS, "FC_POD_UID", "FC_TASK_ATTEMPT_INSTANCE_UID")


def printing_pod() -> dict[str, Any]:
    pod = pod_with(Rule(runs()), hostname="{{FC_TASKROLE_NAME}}-{{FC_TASK_INDEX}}")
    pod["metadata"]["labels"] = {"pod": "{{FC_POD_NAME}}", "other": "kept"}
    pod["metadata"]["annotations"]["odd"] = "{{UNKNOWN}}"
    main = pod["spec"]["containers"][0]
    main["env"] = [{"name": "X", "value": "$(FC_TASK_INDEX)"}]
    main["command"] = ["sh", "-c", "env; exec sleep 100000"]
    pod["spec"]["initContainers"] = [{"name": "before", "image": "scenario", "command": ["env"]}]
    return pod


@scenario()
async def test_scenario_42_env_and_placeholders(world: World) -> None:
    await world.submit(fw("env", plain_role("worker", 2, pod=printing_pod())))
    await world.running("env", 2)
    pod = world.pods["env-worker-1"]
    assert pod["spec"]["hostname"] == "worker-1"
    assert pod["metadata"]["labels"]["pod"] == "env-worker-1"
    assert pod["metadata"]["annotations"]["odd"] == "{{UNKNOWN}}"
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        assert tuple(entry["name"] for entry in container["env"][:15]) == VARIABLES
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    if world.is_real:
        for container in ("before", "main"):
            env = await environment(world, "env-worker-1", container)
            assert set(VARIABLES) <= env.keys()
            assert env["FC_TASK_ATTEMPT_INSTANCE_UID"] == f"0_{uid_of(pod)}"
        assert env["X"] == "1"


async def environment(world: World, pod: str, container: str) -> dict[str, str]:
    """What the process printed; the last line of `env` is always complete, its first read need not be."""
    found: dict[str, str] = {}
    text = b""
    async for chunk in world.user.logs(pod, NAMESPACE, LogOptions(container=container, follow=True)):
        text += chunk
        found = dict(line.split("=", 1) for line in text.decode().splitlines() if "=" in line)
        if set(VARIABLES) <= found.keys() and (container != "main" or "X" in found):
            break
    return found


@scenario()
async def test_scenario_43_ownership(world: World) -> None:
    await world.submit(fw("owns", role("worker", fate=runs())))
    await world.running("owns", 1)
    framework, anchor, pod = world.frameworks["owns"], world.config_maps["owns-attempt"], world.pods["owns-worker-0"]
    assert anchor["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "frameworkcontroller.microsoft.com/v1",
            "kind": "Framework",
            "name": "owns",
            "uid": uid_of(framework),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert anchor["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owns-attempt",
            "uid": uid_of(anchor),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    task, attempt = world.task("owns"), world.attempt("owns")
    stamps = {
        "FC_FRAMEWORK_NAMESPACE": world.namespace,
        "FC_FRAMEWORK_NAME": "owns",
        "FC_TASKROLE_NAME": "worker",
        "FC_TASK_INDEX": "0",
        "FC_CONFIGMAP_NAME": "owns-attempt",
        "FC_POD_NAME": "owns-worker-0",
        "FC_FRAMEWORK_UID": uid_of(framework),
        "FC_FRAMEWORK_ATTEMPT_ID": "0",
        "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": attempt["instanceUID"],
        "FC_CONFIGMAP_UID": uid_of(anchor),
        "FC_TASKROLE_UID": attempt["taskRoleStatuses"][0]["instanceUID"],
        "FC_TASK_UID": task["instanceUID"],
        "FC_TASK_ATTEMPT_ID": "0",
    }
    shown = {name: value for name, value in pod["metadata"]["annotations"].items() if name.startswith("FC_")}
    assert shown == stamps
    assert pod["metadata"]["labels"] == {
        "FC_FRAMEWORK_NAME": "owns", "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "0",
    }  # fmt: skip


@scenario(real=False)
async def test_scenario_49_pod_phase_unknown(world: World) -> None:
    await world.submit(fw("dark", role("worker", fate=runs())))
    await world.running("dark", 1)
    before = world.task("dark")

    async def tell(phase: str) -> None:
        await world.user.patch(
            POD, "dark-worker-0", NAMESPACE, patch={"status": {"phase": phase}}, subresource="status"
        )

    await tell("Unknown")
    await world.rest(600)
    assert world.task("dark") == before
    await tell("Running")
    await world.rest(60)
    assert world.task("dark") == before


@scenario()
async def test_scenario_50_name_clash(world: World) -> None:
    foreign = {
        "metadata": {"name": "clash-worker-0"},
        "spec": {"containers": [{"name": "main", "image": "scenario", "command": ["sleep", "100000"]}]},
    }
    uid = uid_of(await world.user.create(POD, foreign, NAMESPACE))
    await world.submit(fw("clash", role("worker", 2, fate=runs())))
    await world.until(lambda: world.task("clash", 1).get("state") == "AttemptRunning")
    await world.rest(300)
    assert world.task("clash", 0)["state"] == "AttemptCreationPending"
    assert uid_of(world.pods["clash-worker-0"]) == uid
    await world.user.delete(POD, "clash-worker-0", NAMESPACE, DeleteOptions(grace_seconds=0))
    await world.running("clash", 2)
    assert [task["attemptStatus"]["id"] for task in world.tasks("clash")] == [0, 0]


@scenario()
async def test_scenario_52_late_template_edit(world: World) -> None:
    await world.submit(fw("edit", role("worker", 2, retry=(True, 0), fate=runs())))
    await world.running("edit", 2)
    before = {name: uid_of(pod) for name, pod in world.pods.items()}
    image = {"op": "replace", "path": "/spec/taskRoles/0/task/pod/spec/containers/0/image", "value": "newer"}
    await world.patch("edit", image)
    await world.rest(30)
    assert {name: uid_of(pod) for name, pod in world.pods.items()} == before
    await world.delete_pod("edit-worker-1")
    await world.until(lambda: world.task("edit", 1)["attemptStatus"]["id"] == 1 and world.are_running("edit", 2))
    images = {name: pod["spec"]["containers"][0]["image"] for name, pod in world.pods.items()}
    assert images == {"edit-worker-0": "scenario", "edit-worker-1": "newer"}
