"""Deployments as people use them: the real kubectl, real processes, every command of `kubectl rollout`.

On the embedded cluster and on a real Kubernetes, whose Deployment controller says what is right.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.control_plane import binaries
from kit.local_cluster import LocalCluster

pytestmark = pytest.mark.processes

NAMESPACE = f"boards-{secrets.token_hex(4)}"
BOARD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: board, annotations: {kubernetes.io/change-cause: the first}}
spec:
  replicas: 2
  minReadySeconds: 1
  selector: {matchLabels: {app: board}}
  template:
    metadata: {labels: {app: board}}
    spec:
      containers:
      - {name: main, image: local, command: [sh, -c, "echo serving; exec sleep 100000"]}
"""


class Kubectl:
    def __init__(self, kubeconfig: str | Path, home: Path) -> None:
        self._program = [str(binaries(["kubectl"]) / "kubectl"), f"--namespace={NAMESPACE}"]
        self._env = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"]}

    def run(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._program, *words], env=self._env, capture_output=True, text=True, **more)

    def __call__(self, *words: str, given: str | None = None) -> str:
        done = self.run(*words, input=given)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def first_line(self, *words: str) -> str:
        """Of a log, as soon as there is one."""
        words = (*self._program, "logs", "--follow", *words)
        with subprocess.Popen(words, env=self._env, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            line = following.stdout.readline()
            following.terminate()
        return line

    def rolled_out(self) -> None:
        lines = self("rollout", "status", "deployment/board", "--timeout=240s").splitlines()
        assert lines[-1] == 'deployment "board" successfully rolled out'

    def revisions(self) -> list[str]:
        rows = self("rollout", "history", "deployment/board").splitlines()[2:]
        return [row.split()[0] for row in rows if row]

    def sizes(self) -> list[str]:
        """Of the ReplicaSets by revision."""
        path = r"{range .items[*]}{.metadata.annotations.deployment\.kubernetes\.io/revision}={.spec.replicas} {end}"
        return sorted(self("get", "rs", f"--output=jsonpath={path}").split())


CLUSTERS = ["embedded", pytest.param("kubernetes", marks=pytest.mark.kubernetes)]


@pytest.fixture(params=CLUSTERS)
def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubectl]:
    if request.param == "kubernetes":
        plane = request.getfixturevalue("kubernetes_plane")
        yield from in_namespace(Kubectl(plane.kubeconfig, tmp_path))
        return
    cluster = LocalCluster(tmp_path / "data")
    cluster.start()
    try:
        yield from in_namespace(Kubectl(tmp_path / "data" / "kubeconfig", tmp_path))
    finally:
        cluster.stop()


def in_namespace(kubectl: Kubectl) -> Iterator[Kubectl]:
    kubectl("create", "namespace", NAMESPACE)
    try:
        yield kubectl
    finally:
        kubectl("delete", "namespace", NAMESPACE)


def test_15_kubectl_rolls_out_and_back(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", given=BOARD) == "deployment.apps/board created\n"
    kubectl.rolled_out()
    head, row = kubectl("get", "deployments").splitlines()
    assert head.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row.split()[:4] == ["board", "2/2", "2", "2"]
    assert kubectl("wait", "deploy/board", "--for=condition=Available", "--timeout=240s")
    assert kubectl.first_line("deploy/board") == "serving\n"

    kubectl("set", "env", "deployment/board", "STEP=2")
    kubectl.rolled_out()
    assert (kubectl.revisions(), kubectl.sizes()) == (["1", "2"], ["1=0", "2=2"])
    assert "STEP:\t2" in kubectl("rollout", "history", "deployment/board", "--revision=2")
    kubectl("rollout", "undo", "deployment/board")
    kubectl.rolled_out()
    assert (kubectl.revisions(), kubectl.sizes()) == (["2", "3"], ["2=0", "3=2"])
    kubectl("rollout", "restart", "deployment/board")
    kubectl.rolled_out()
    assert kubectl.sizes() == ["2=0", "3=0", "4=2"]

    kubectl("rollout", "pause", "deployment/board")
    kubectl("set", "env", "deployment/board", "STEP=3")
    kubectl("scale", "deployment/board", "--replicas=3")
    kubectl("wait", "deploy/board", "--for=jsonpath={.status.availableReplicas}=3", "--timeout=240s")
    assert kubectl.sizes() == ["2=0", "3=0", "4=3"]
    kubectl("rollout", "resume", "deployment/board")
    kubectl.rolled_out()
    assert kubectl.sizes() == ["2=0", "3=0", "4=0", "5=3"]
    told = " ".join(kubectl("describe", "deployment/board").split())
    assert "Replicas: 3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in told
    assert "Available True MinimumReplicasAvailable Progressing True NewReplicaSetAvailable" in told
    assert "ScalingReplicaSet" in told

    kubectl("delete", "deployment/board")
    kubectl("wait", "pods", "--all", "--for=delete", "--timeout=240s")
    kubectl("wait", "rs", "--all", "--for=delete", "--timeout=240s")


def test_15_a_rollout_that_cannot_go_on_is_reported(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOARD)
    kubectl.rolled_out()
    stuck = '{"spec":{"progressDeadlineSeconds":2,"template":{"spec":{"nodeSelector":{"no":"node"}}}}}'
    kubectl("patch", "deployment/board", "--patch", stuck)
    status = kubectl.run("rollout", "status", "deployment/board", "--timeout=240s")
    assert (status.returncode, status.stderr) == (1, 'error: deployment "board" exceeded its progress deadline\n')
    assert kubectl("get", "deploy/board", "--output=jsonpath={.status.availableReplicas}") == "2"
    kubectl("rollout", "undo", "deployment/board")
    kubectl.rolled_out()


def test_15_recreate_ends_all_pods_first(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOARD.replace("  replicas: 2", "  replicas: 2\n  strategy: {type: Recreate}"))
    kubectl.rolled_out()
    kubectl("set", "env", "deployment/board", "STEP=2")
    kubectl.rolled_out()
    messages = kubectl(
        "get", "events", "--field-selector=reason=ScalingReplicaSet", "--sort-by=.metadata.creationTimestamp",
        "--output=jsonpath={range .items[*]}{.message}{\"\\n\"}{end}",
    )  # fmt: skip
    steps = [(line.split()[1], *line.split()[-3:]) for line in messages.splitlines()]
    assert sorted(steps) == [("down", "2", "to", "0"), ("up", "0", "to", "2"), ("up", "0", "to", "2")]
