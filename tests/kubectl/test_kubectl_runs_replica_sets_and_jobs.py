"""ReplicaSets and batch Jobs as people of 2019 run them: create, look, scale, wait, read logs, describe, delete."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.local_cluster import LocalCluster

pytestmark = pytest.mark.processes

SERVERS = """
apiVersion: extensions/v1beta1
kind: ReplicaSet
metadata: {name: servers}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: servers}}
    spec:
      containers:
      - {name: main, image: local, command: [sh, -c, "echo serving; exec sleep 100000"]}
"""
WORK = """
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: local, command: [echo, done]}
"""


class Kubectl:
    def __init__(self, program: Path, home: Path) -> None:
        self._program = program
        self._env = {
            "KUBECONFIG": str(home / "data" / "kubeconfig"), "HOME": str(home), "PATH": os.environ["PATH"],
        }  # fmt: skip

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run([self._program, *arguments], env=self._env, input=given, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def first_line(self, pod: str) -> str:
        """Of its log, as soon as there is one: who runs may not have spoken yet."""
        arguments = [self._program, "logs", "--follow", pod]
        with subprocess.Popen(arguments, env=self._env, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            line = following.stdout.readline()
            following.terminate()
        return line


@pytest.fixture
def kubectl(program: Path, tmp_path: Path) -> Iterator[Kubectl]:
    cluster = LocalCluster(tmp_path / "data")
    cluster.start()
    try:
        yield Kubectl(program, tmp_path)
    finally:
        cluster.stop()


def cells(table: str) -> list[list[str]]:
    """Without the age, which is the last."""
    return [line.split()[:-1] for line in table.splitlines()]


def test_servers_and_work_by_kubectl(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", given=SERVERS) == "replicaset.extensions/servers created\n"
    kubectl("wait", "rs/servers", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=240s")
    assert cells(kubectl("get", "rs")) == [["NAME", "DESIRED", "CURRENT", "READY"], ["servers", "2", "2", "2"]]
    assert kubectl("apply", "-f", "-", given=WORK) == "job.batch/work created\n"
    assert kubectl("wait", "job/work", "--for=condition=complete", "--timeout=240s") == "job.batch/work condition met\n"
    head, row = kubectl("get", "jobs.batch").splitlines()
    assert head.split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert row.split()[:3] == ["work", "Complete", "2/2"]
    servers = kubectl("get", "pods", "--selector=app=servers", "--output=name").split()
    assert [kubectl.first_line(pod) for pod in servers] == ["serving\n"] * 2
    assert (kubectl("logs", "job/work"), kubectl("logs", "rs/servers")) == ("done\n", "serving\n")
    phases = sorted(line.split()[2] for line in kubectl("get", "pods", "--no-headers").splitlines())
    assert phases == ["Completed", "Completed", "Running", "Running"]

    assert kubectl("scale", "rs/servers", "--replicas=1") == "replicaset.apps/servers scaled\n"
    kubectl("wait", "rs/servers", "--for=jsonpath={.status.replicas}=1", "--timeout=240s")
    output = [" ".join(kubectl("describe", each).split()) for each in ("rs/servers", "job/work")]
    assert "Replicas: 1 current / 1 desired" in output[0]
    assert "Pods Statuses: 0 Active (0 Ready) / 2 Succeeded / 0 Failed" in output[1]

    assert kubectl("delete", "job/work", "rs/servers").splitlines() == [
        'job.batch "work" deleted from default namespace',
        'replicaset.apps "servers" deleted from default namespace',
    ]
    kubectl("wait", "pods", "--all", "--for=delete", "--timeout=240s")
    assert kubectl("get", "all", "-o", "name").split() == ["service/kubernetes"]
