"""`shoal node` with a mistake ends with one sentence that says what to do, and registers nothing."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kit.pods import machine
from shoal.cli.main import shoal
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import LEASE, NODE
from shoal.kube.objects import Obj
from shoal.kube.times import rfc3339_micro
from shoal.local.node_process import CannotJoin, check_may_join
from shoal.node.kubeconfig_node_name import Identity
from shoal.node.node_object import node_object

NOW = datetime(2030, 1, 1, tzinfo=UTC)

MISTAKES = [
    (["--taint", "lab"], "'lab' should be NAME=VALUE:EFFECT, for example lab=true:NoSchedule"),
    (["--taint", "lab=true:Sometimes"], "effects are NoSchedule, PreferNoSchedule, NoExecute"),
    (["--taint", "a b=c:NoSchedule"], "'a b=c:NoSchedule' is not a taint"),
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


def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
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


# Credentials and namespaces


@pytest.mark.parametrize(
    ("user", "groups", "node"),
    [
        ("system:node:n1", ("system:nodes", "system:authenticated"), "n1"),
        ("system:node:n1", ("system:authenticated",), ""),
        ("system:serviceaccount:a:b", ("system:nodes",), ""),
        ("admin", ("system:masters",), ""),
    ],
    ids=["a node", "outside the group", "an account in the group", "an administrator"],
)
def test_only_a_user_of_the_group_of_nodes_is_a_node(user: str, groups: tuple[str, ...], node: str) -> None:
    assert Identity(user, groups).node == node


def test_no_namespace_named_is_not_every_namespace(tmp_path: Path) -> None:
    place = ["--data", str(tmp_path / "n"), "--kubeconfig", str(kubeconfig(tmp_path, 1))]
    code, said = run(*place, "--namespaces", "")
    assert (code, "'' cannot be the name of a namespace" in said) == (2, True), said


# Names that are taken


async def taken(node: Obj | None, lease: Obj | None = None, **found: Any) -> str:
    """What is said to the agent `n1_ours` that wants to be node `n1`."""
    cluster = await EmbeddedCluster.open(":memory:")
    try:
        if node is not None:
            await cluster.create(NODE, node)
            info = {key: found.get(key, "") for key in ("machineID", "containerRuntimeVersion")}
            await cluster.patch(NODE, "n1", patch={"status": {"nodeInfo": info}}, subresource="status")
        if lease is not None:
            await cluster.create(LEASE, lease, "kube-node-lease")
        await check_may_join(cluster, "n1", "n1_ours", now=NOW)
    except CannotJoin as refused:
        return str(refused)
    finally:
        await cluster.close()
    return ""


NODE_ONE = node_object("n1", machine(), {}, "")


def held_by(holder: str, *, ago: timedelta = timedelta()) -> Obj:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 40, "renewTime": rfc3339_micro(NOW - ago)}
    return {"metadata": {"name": "n1"}, "spec": spec}


async def test_a_name_that_is_free_or_was_ours_may_be_taken() -> None:
    assert await taken(None) == ""
    assert await taken(NODE_ONE, held_by("n1_ours"), containerRuntimeVersion="shoal://0.1") == ""
    gone = held_by("n1_theirs", ago=timedelta(seconds=41))
    assert await taken(NODE_ONE, gone, containerRuntimeVersion="shoal://0.1") == ""


async def test_a_node_with_containers_is_never_taken_over() -> None:
    said = await taken(NODE_ONE, None, containerRuntimeVersion="containerd://2.1")
    assert said == (
        "there is a node n1 already, and it runs containers (containerd://2.1). "
        "Choose another name, with credentials for it."
    )


@pytest.mark.parametrize("holder", ["n1_theirs", "n1"], ids=["of another folder", "a kubelet, or of `shoal up`"])
async def test_a_node_that_another_agent_keeps_alive_is_never_taken_over(holder: str) -> None:
    said = await taken(NODE_ONE, held_by(holder, ago=timedelta(seconds=39)), containerRuntimeVersion="shoal://0.1")
    assert said.startswith(f"another agent runs as node n1 and holds its Lease as {holder}. Stop that agent")
