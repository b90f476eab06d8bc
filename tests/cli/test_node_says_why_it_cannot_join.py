"""`shoal node` with a mistake ends with one sentence that says what to do, and registers nothing."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kit.pods import machine
from shoal.cli.joining import CannotJoin, check_may_join
from shoal.cli.main import shoal
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import LEASE, NODE
from shoal.kube.objects import Obj
from shoal.kube.times import rfc3339_micro
from shoal.node.machine import node_object

NOW = datetime(2030, 1, 1, tzinfo=UTC)

MISTAKES = [
    (["--taint", "lab"], "'lab' should be NAME=VALUE:EFFECT, for example lab=true:NoSchedule"),
    (["--taint", "lab=true:Sometimes"], "effects are NoSchedule, PreferNoSchedule, NoExecute"),
    (["--taint", "a b=c:NoSchedule"], "'a b=c:NoSchedule' is no taint"),
    (["--label", "zone"], "'zone' should be NAME=VALUE, for example zone=lab"),
    (["--label", "zone=a b"], "'zone=a b' should be NAME=VALUE"),
    (["--name", "My Node"], "--name 'My Node' cannot be the name of a node"),
    (["--capacity", "nvidia.com/gpu=half"], "'half' is not an amount"),
    (["--tls-key", __file__], "--tls-cert and --tls-key go together."),
]


def run(*words: str, **env: str) -> tuple[int, str]:
    done = CliRunner().invoke(shoal, ["node", *words], env=env)
    return done.exit_code, done.output


def kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )
    return path


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_wrong_option_is_named_with_what_would_be_right(words: list[str], sentence: str, tmp_path: Path) -> None:
    place = ["--data", str(tmp_path / "n"), "--kubeconfig", str(kubeconfig(tmp_path, 1))]
    code, said = run(*place, *words)
    assert (code, " ".join(sentence.split()) in " ".join(said.split())) == (2, True), said


def test_no_kubeconfig_at_all_is_said(tmp_path: Path) -> None:
    code, said = run("--data", str(tmp_path / "n"), KUBECONFIG="", HOME=str(tmp_path))
    assert (code, said) == (
        1,
        "Error: there is no cluster to join: neither KUBECONFIG nor ~/.kube/config names one. "
        "Name one with --kubeconfig.\n",
    )


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with ExitStack() as stack:
        held = stack.enter_context(socket.socket())
        held.bind(("127.0.0.1", 0))  # and nobody listens
        port = held.getsockname()[1]
        code, said = run("--data", str(tmp_path / "n"), "--kubeconfig", str(kubeconfig(tmp_path, port)))
    assert code == 1
    assert said.startswith("Error: ")
    assert f"127.0.0.1:{port}" in said
    assert "Traceback" not in said


# Names that are taken


async def taken(node: Obj | None, lease: Obj | None = None, **found: Any) -> str:
    """What is said to a machine with the id `m1` that wants to be node `n1`."""
    cluster = await EmbeddedCluster.open(":memory:")
    try:
        if node is not None:
            await cluster.create(NODE, node)
            info = {key: found.get(key, "") for key in ("machineID", "containerRuntimeVersion")}
            await cluster.patch(NODE, "n1", patch={"status": {"nodeInfo": info}}, subresource="status")
        if lease is not None:
            await cluster.create(LEASE, lease, "kube-node-lease")
        await check_may_join(cluster, "n1", machine(info={"machineID": "m1"}), now=NOW)
    except CannotJoin as refused:
        return str(refused)
    finally:
        await cluster.close()
    return ""


NODE_ONE = node_object("n1", machine(), {}, "")
ALIVE = {
    "metadata": {"name": "n1"},
    "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": rfc3339_micro(NOW)},
}


async def test_a_name_that_is_free_or_was_ours_may_be_taken() -> None:
    assert await taken(None) == ""
    assert await taken(NODE_ONE, ALIVE, machineID="m1", containerRuntimeVersion="shoal://0.1") == ""
    assert await taken(NODE_ONE, None, machineID="m2", containerRuntimeVersion="shoal://0.1") == ""


async def test_a_node_with_containers_is_never_taken_over() -> None:
    said = await taken(NODE_ONE, None, machineID="m1", containerRuntimeVersion="containerd://2.1")
    assert said == (
        "there is a node n1 already, and it runs containers (containerd://2.1). Choose another name with --name."
    )


async def test_a_node_that_another_machine_keeps_alive_is_never_taken_over() -> None:
    said = await taken(NODE_ONE, ALIVE, machineID="m2", containerRuntimeVersion="shoal://0.1")
    assert said == "another machine is node n1 and is alive. Choose another name with --name."
