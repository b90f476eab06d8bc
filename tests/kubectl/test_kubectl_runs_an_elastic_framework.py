"""The elastic story with nothing but kubectl: create, two patches, a look, and a deletion in the foreground."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kit.light_elastic_job import Pipes, light, patch_to
from kit.local_cluster import LocalCluster
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes


def documents(lines: Iterable[str]) -> Iterator[Obj]:
    """The objects of a stream of indented JSON: each ends with a brace on a line of its own."""
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            yield json.loads(text)
            text = ""


def states(framework: Obj) -> list[str]:
    """Of every task, and of the whole."""
    status = framework.get("status") or {}
    roles = (status.get("attemptStatus") or {}).get("taskRoleStatuses") or []
    tasks = [task for role in roles for task in role["taskStatuses"]]
    return [*(f"{task['attemptStatus']['podName']}={task['state']}" for task in tasks), status.get("state", "")]


@dataclass(frozen=True)
class Shell:
    """Types kubectl commands."""

    program: Path
    env: dict[str, str]

    def __call__(self, *arguments: str, given: str | None = None, code: int = 0) -> str:
        both = subprocess.STDOUT
        done = subprocess.run(
            [self.program, *arguments], env=self.env, input=given, stdout=subprocess.PIPE, stderr=both, text=True
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def framework(self) -> Obj:
        read: Obj = yaml.safe_load(self("get", "framework", "pet", "-o", "yaml"))
        return read

    def until(self, *wanted: str) -> None:
        """Watch the Framework until its tasks and itself are in these states."""
        arguments = [self.program, "get", "framework", "pet", "--watch", "-o", "json"]
        with subprocess.Popen(arguments, env=self.env, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            seen = next((each for each in documents(watching.stdout) if states(each) == list(wanted)), None)
            watching.terminate()
        assert seen is not None, "the watch ended before"


@pytest.fixture
def kubectl(program: Path, tmp_path: Path) -> Iterator[Shell]:
    cluster = LocalCluster(tmp_path / "data", "--capacity", "nvidia.com/gpu=4", "--capacity", "cpu=8")
    cluster.start()
    env = {"KUBECONFIG": str(tmp_path / "data" / "kubeconfig"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    try:
        yield Shell(program, env)
    finally:
        cluster.stop()


def running(workers: int) -> list[str]:
    pods = ["pet-etcd-0", *(f"pet-worker-{index}" for index in range(workers))]
    return [*(f"{pod}=AttemptRunning" for pod in pods), "AttemptRunning"]


def scaled(kubectl: Shell, workers: int) -> None:
    """The patch, and the wait for what it asks for."""
    output = kubectl("patch", "framework", "pet", "--type=json", "-p", json.dumps(patch_to(workers)))
    assert output == "framework.frameworkcontroller.microsoft.com/pet patched\n"
    kubectl.until(*running(workers))


def test_four_two_three_by_kubectl(kubectl: Shell, tmp_path: Path) -> None:
    with ExitStack() as stack:
        pipes = Pipes(tmp_path, stack)
        services, framework = light(pipes.command)
        file = tmp_path / "pet.yaml"
        file.write_text("---\n".join(yaml.safe_dump(each) for each in (*services, framework)))
        assert kubectl("create", "-f", str(file)).splitlines() == [
            "service/pet-etcd created",
            "service/pet-worker created",
            "framework.frameworkcontroller.microsoft.com/pet created",
        ]
        kubectl.until(*running(4))
        scaled(kubectl, 2)
        scaled(kubectl, 3)
        for index in range(3):
            pipes.release(index)
        kubectl("wait", "--for=jsonpath={.status.state}=Completed", "framework/pet", "--timeout=60s")
    left = kubectl.framework()
    attempt = left["status"]["attemptStatus"]
    assert attempt["completionStatus"]["trigger"]["message"] == (
        "SucceededTaskCount 3 has reached MinSucceededTaskCount 3 in the TaskRole"
    )
    assert [
        (role["name"], [task["attemptStatus"]["completionStatus"]["code"] for task in role["taskStatuses"]])
        for role in attempt["taskRoleStatuses"]
    ] == [("etcd", [-220]), ("worker", [0, 0, 0])]
    header, row = (line.split() for line in kubectl("get", "fw").splitlines())
    assert (header, row[:-1]) == (
        ["NAME", "STATE", "ATTEMPT", "TYPE", "CODE", "AGE"], ["pet", "Completed", "0", "Succeeded", "0"],
    )  # fmt: skip
    assert kubectl("get", "pods,configmaps", "-l", "FC_FRAMEWORK_NAME=pet", "-o", "name") == ""
    kubectl("delete", "framework", "pet", "--cascade=foreground")
    assert "NotFound" in kubectl("get", "framework", "pet", code=1)


def test_a_running_framework_is_deleted_pods_first(kubectl: Shell, tmp_path: Path) -> None:
    with ExitStack() as stack:
        _, framework = light(Pipes(tmp_path, stack).command)
        kubectl("create", "-f", "-", given=yaml.safe_dump(framework))
        kubectl.until(*running(4))
        kubectl("delete", "framework", "pet", "--cascade=foreground")
    assert kubectl("get", "frameworks,pods,configmaps", "-l", "FC_FRAMEWORK_NAME=pet", "-o", "name") == ""
    assert "NotFound" in kubectl("get", "framework", "pet", code=1)


def test_a_patch_of_another_role_is_refused_whole(kubectl: Shell, tmp_path: Path) -> None:
    with ExitStack() as stack:
        _, framework = light(Pipes(tmp_path, stack).command)
        kubectl("create", "-f", "-", given=yaml.safe_dump(framework))
        wrong = [{"op": "test", "path": "/spec/taskRoles/0/name", "value": "worker"}, *patch_to(2)[1:]]
        output = kubectl("patch", "framework", "pet", "--type=json", "-p", json.dumps(wrong), code=1)
    assert "testing value /spec/taskRoles/0/name failed" in output
    assert kubectl.framework()["spec"]["taskRoles"][1]["taskNumber"] == 4
